//! Service of the tools, and the context of a call.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use gate::journal::OpId;
use pbpk::run::{OspVersion, UnknownRelease};
use toolkit::Cancel;
use toolkit::options::Setup;
use toolkit::server::{Args, ReplySink};

use crate::BACKEND;
use crate::audit::{self, EventQuery};
use crate::fault::{Fault, Kind};
use crate::jobs::{EndedJobs, JobPool, OspsuiteInfo, OspsuiteLauncher, ResultKeeper, probe};
use crate::metrics::CallMetrics;
use crate::models::{ModelFolders, ModelLibrary};
use crate::options::{ParsedOptions, configured, over_r};
use crate::session::SessionStore;

/// How long it is believed what R said of itself.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// State that the tools share.
pub struct SimulationService {
    /// Where models may lie.
    pub folders: ModelFolders,
    /// Models that were read.
    pub library: Arc<ModelLibrary>,
    /// What callers have loaded.
    pub sessions: SessionStore,
    /// The parsed options.
    pub configured: ParsedOptions,
    /// Record of ended jobs.
    pub ended: Arc<EndedJobs>,
    /// Counters of requests.
    pub metrics: CallMetrics,
    audit: audit::JournalReader,
    setup: Setup,
    pool: Mutex<Option<JobPool>>,
    /// What R said of itself, and when.
    told: Mutex<Option<(Instant, OspsuiteInfo)>>,
}

/// One call.
pub struct CallContext<'a> {
    /// The server.
    pub service: &'a SimulationService,
    /// Who calls.
    pub caller: &'a Arc<str>,
    /// The groups that the caller belongs to.
    pub groups: &'a [Arc<str>],
    /// Set when the caller has gone.
    pub cancel: Cancel,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    /// Its name in the journal, if it has one.
    pub op: Option<OpId>,
    /// The model file that the call was judged for.
    judged: Option<&'a str>,
    reply: RefCell<ReplySink>,
}

impl<'a> CallContext<'a> {
    /// Returns a call of this caller, which is answered there.
    #[must_use]
    pub fn new(service: &'a SimulationService, caller: &'a Arc<str>, reply: ReplySink) -> Self {
        Self {
            service,
            caller,
            groups: &[],
            cancel: reply.cancel().clone(),
            now_ms: service.now_ms(),
            op: None,
            judged: None,
            reply: RefCell::new(reply),
        }
    }

    /// Returns the same for a caller who belongs to these groups.
    #[must_use]
    pub fn of_groups(self, groups: &'a [Arc<str>]) -> Self {
        Self { groups, ..self }
    }

    /// Returns the release of OSP that the arguments name, or the server's.
    ///
    /// # Errors
    /// [`Fault`] if there is no such release.
    pub fn osp_version(&self, args: Args<'_>) -> Result<OspVersion, Fault> {
        match args.text("ospVersion") {
            Ok(name) => name.parse().map_err(|unknown: UnknownRelease| {
                Fault::input("ospVersion", unknown.to_string()).code("value_error")
            }),
            Err(_) => Ok(self.service.configured.osp_version),
        }
    }

    /// Returns the same for a call that was judged for this model file.
    #[must_use]
    pub fn judged_for(self, judged: Option<&'a str>) -> Self {
        Self { judged, ..self }
    }

    /// Returns the same for a call of this name in the journal.
    #[must_use]
    pub fn with_name(self, op: OpId) -> Self {
        Self {
            op: Some(op),
            ..self
        }
    }

    /// Checks that this is the model file that the call was judged for: another may have been loaded under the same id
    /// since, or a link may have changed.
    ///
    /// # Errors
    /// [`Kind::Conflict`] if it is another one.
    pub fn is_judged(&self, model: &Path) -> Result<(), Fault> {
        if self.judged == Some(&*model.to_string_lossy()) {
            return Ok(());
        }
        let wrong = "the call was judged for another model file than the one that is there now";
        Err(Fault::new(Kind::Conflict, wrong).hint("make the call again"))
    }

    /// Reports the progress of the call to the caller.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.reply.borrow_mut().progress(done, total, Some(message));
    }
}

/// The servers of this process by name, for the face that sends what is too large for the result of a tool.
static SERVED: Mutex<Vec<(Arc<str>, Weak<SimulationService>)>> = Mutex::new(Vec::new());

/// Returns the server of this name that was made last.
pub(crate) fn last_served(peer: &str) -> Option<Arc<SimulationService>> {
    let all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = all.iter().rev().filter(|(name, _)| &**name == peer);
    own.filter_map(|(_, service)| service.upgrade()).next()
}

impl SimulationService {
    /// Returns the service of a server with this set-up; others find it by its name. Opens nothing.
    #[must_use]
    pub fn new(setup: Setup) -> Arc<Self> {
        let configured = configured(&setup.options);
        let service = Arc::new(Self {
            folders: ModelFolders::new(setup.options.paths("models")),
            library: Arc::default(),
            sessions: SessionStore::new(configured.simulations_max, configured.idle_ms),
            configured,
            ended: Arc::default(),
            metrics: CallMetrics::default(),
            audit: audit::JournalReader::default(),
            setup,
            pool: Mutex::default(),
            told: Mutex::default(),
        });
        let mut all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, service)| service.strong_count() > 0);
        all.push((Arc::clone(&service.setup.peer), Arc::downgrade(&service)));
        service
    }

    /// Returns the store of results; opened at the first need.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be opened.
    pub fn keeper(&self) -> Result<Arc<ResultKeeper>, Fault> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = &*pool {
            return Ok(Arc::clone(pool.keeper()));
        }
        let opened = JobPool::open(
            &self.setup,
            self.configured.settings,
            (Arc::clone(&self.library), self.over_r()),
            Arc::clone(&self.ended),
        )?;
        let keeper = Arc::clone(opened.keeper());
        *pool = Some(opened);
        Ok(keeper)
    }

    /// How R is started, if it solves the models.
    #[must_use]
    pub fn over_r(&self) -> Option<OspsuiteLauncher> {
        over_r(&self.setup.options)
    }

    /// Returns whether a worker process can compute; over R, what that says of itself, which is good for a minute.
    ///
    /// # Errors
    /// The fault, as a sentence.
    pub fn probe(&self) -> Result<Option<OspsuiteInfo>, String> {
        let Some(how) = self.over_r() else {
            return probe(&self.setup.program, None);
        };
        // Others wait meanwhile: each probe starts an R.
        let mut known = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, told)) = &*known
            && at.elapsed() < TOLD_FOR
        {
            return Ok(Some(told.clone()));
        }
        let told = probe(&self.setup.program, Some(&how))?;
        *known = told.clone().map(|told| (Instant::now(), told));
        Ok(told)
    }

    /// What solves the models, by its name in answers.
    ///
    /// # Errors
    /// [`Kind::EnvironmentMissing`] where R cannot.
    pub fn backend(&self) -> Result<&'static str, Fault> {
        if self.over_r().is_none() {
            return Ok(BACKEND);
        }
        let told = self
            .probe()
            .map_err(|why| Fault::new(Kind::EnvironmentMissing, why))?;
        Ok(told.map_or(BACKEND, |told| told.name()))
    }

    /// Returns the journal's events of this server's calls, the newest first.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read, is damaged, or is being read.
    pub fn events(&self, asked: &EventQuery) -> Result<serde_json::Value, Fault> {
        self.audit
            .events(&self.setup.journal, &self.setup.peer, asked)
    }

    /// Now, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.setup.clock.wall_ms()
    }

    /// Returns a name that cannot be guessed.
    ///
    /// # Errors
    /// [`Fault`] if the system has no randomness.
    pub fn name(&self, prefix: &str) -> Result<String, Fault> {
        let mut bytes = [0; 16];
        (self.setup.random)(&mut bytes).map_err(|error| {
            Fault::new(
                Kind::InternalError,
                format!("the system has no randomness: {error}"),
            )
        })?;
        Ok(format!("{prefix}-{}", crate::models::hex(&bytes)))
    }
}

#[cfg(test)]
mod tests;
