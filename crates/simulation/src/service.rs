//! What the tools work with, and what a call is to them.

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
use crate::audit::{self, Asked};
use crate::fault::{Fault, Kind};
use crate::jobs::{Ended, Keeper, Ospsuite, Pool, Told, probe};
use crate::metrics::Metrics;
use crate::models::{Folders, Library};
use crate::options::{Configured, configured, over_r};
use crate::session::Sessions;

/// How long it is believed what R said of itself.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// What the tools work with.
pub struct Service {
    /// Where models may lie.
    pub folders: Folders,
    /// Models that were read.
    pub library: Arc<Library>,
    /// What callers have loaded.
    pub sessions: Sessions,
    /// What the options say.
    pub configured: Configured,
    /// What is known of jobs that have ended.
    pub ended: Arc<Ended>,
    /// What was asked, counted.
    pub metrics: Metrics,
    audit: audit::Reader,
    setup: Setup,
    pool: Mutex<Option<Pool>>,
    /// What R said of itself, and when.
    told: Mutex<Option<(Instant, Told)>>,
}

/// One call.
pub struct Context<'a> {
    /// The server.
    pub service: &'a Service,
    /// Who calls.
    pub caller: &'a Arc<str>,
    /// The groups that the caller belongs to.
    pub groups: &'a [Arc<str>],
    /// Set when nobody waits any more.
    pub cancel: Cancel,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    /// Its name in the journal, where it has one.
    pub op: Option<OpId>,
    /// The model file that the call was judged for.
    judged: Option<&'a str>,
    reply: RefCell<ReplySink>,
}

impl<'a> Context<'a> {
    /// A call of this caller, which is answered there.
    #[must_use]
    pub fn new(service: &'a Service, caller: &'a Arc<str>, reply: ReplySink) -> Self {
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

    /// The same for a caller who belongs to these groups.
    #[must_use]
    pub fn of_groups(self, groups: &'a [Arc<str>]) -> Self {
        Self { groups, ..self }
    }

    /// Returns the release of OSP that the arguments name, or the server's.
    ///
    /// # Errors
    /// [`Fault`] where there is no such release.
    pub fn osp_version(&self, args: Args<'_>) -> Result<OspVersion, Fault> {
        match args.text("ospVersion") {
            Ok(name) => name.parse().map_err(|unknown: UnknownRelease| {
                Fault::input("ospVersion", unknown.to_string()).code("value_error")
            }),
            Err(_) => Ok(self.service.configured.osp_version),
        }
    }

    /// The same for a call that was judged for this model file.
    #[must_use]
    pub fn judged_for(self, judged: Option<&'a str>) -> Self {
        Self { judged, ..self }
    }

    /// The same for a call of this name in the journal.
    #[must_use]
    pub fn named(self, op: OpId) -> Self {
        Self {
            op: Some(op),
            ..self
        }
    }

    /// Whether this is the model file that the call was judged for: another may have been loaded under the same id, or
    /// a link may lead elsewhere, since.
    ///
    /// # Errors
    /// [`Kind::Conflict`] where it is another one.
    pub fn is_judged(&self, model: &Path) -> Result<(), Fault> {
        if self.judged == Some(&*model.to_string_lossy()) {
            return Ok(());
        }
        let wrong = "the call was judged for another model file than the one that is there now";
        Err(Fault::new(Kind::Conflict, wrong).hint("make the call again"))
    }

    /// Tells the caller how far the call has come.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.reply.borrow_mut().progress(done, total, Some(message));
    }
}

/// The servers of this process by name, for the face that sends what is too large for the result of a tool.
static SERVED: Mutex<Vec<(Arc<str>, Weak<Service>)>> = Mutex::new(Vec::new());

/// The server of this name that was made last.
pub(crate) fn served(peer: &str) -> Option<Arc<Service>> {
    let all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = all.iter().rev().filter(|(name, _)| &**name == peer);
    own.filter_map(|(_, service)| service.upgrade()).next()
}

impl Service {
    /// What a server of this set-up works with; others find it by its name. Opens nothing.
    #[must_use]
    pub fn new(setup: Setup) -> Arc<Self> {
        let configured = configured(&setup.options);
        let service = Arc::new(Self {
            folders: Folders::new(setup.options.paths("models")),
            library: Arc::default(),
            sessions: Sessions::new(configured.simulations_max, configured.idle_ms),
            configured,
            ended: Arc::default(),
            metrics: Metrics::default(),
            audit: audit::Reader::default(),
            setup,
            pool: Mutex::default(),
            told: Mutex::default(),
        });
        let mut all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, service)| service.strong_count() > 0);
        all.push((Arc::clone(&service.setup.peer), Arc::downgrade(&service)));
        service
    }

    /// What is kept between calls; opened at the first need.
    ///
    /// # Errors
    /// [`Fault`] where it cannot be opened.
    pub fn keeper(&self) -> Result<Arc<Keeper>, Fault> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = &*pool {
            return Ok(Arc::clone(pool.keeper()));
        }
        let opened = Pool::open(
            &self.setup,
            self.configured.settings,
            (Arc::clone(&self.library), self.over_r()),
            Arc::clone(&self.ended),
        )?;
        let keeper = Arc::clone(opened.keeper());
        *pool = Some(opened);
        Ok(keeper)
    }

    /// How R is started, where it solves the models.
    #[must_use]
    pub fn over_r(&self) -> Option<Ospsuite> {
        over_r(&self.setup.options)
    }

    /// Whether a worker process can compute; over R, what that says of itself, which is good for a minute.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub fn probe(&self) -> Result<Option<Told>, String> {
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

    /// What the journal has of this server's calls, the newest first.
    ///
    /// # Errors
    /// [`Fault`] where it cannot be read, is not as it was written, or is being read.
    pub fn events(&self, asked: &Asked) -> Result<serde_json::Value, Fault> {
        self.audit
            .events(&self.setup.journal, &self.setup.peer, asked)
    }

    /// Now, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.setup.clock.wall_ms()
    }

    /// A name that nobody can guess.
    ///
    /// # Errors
    /// [`Fault`] where the system has no randomness.
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
