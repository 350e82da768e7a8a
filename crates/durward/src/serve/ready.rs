//! All that is found out before `durward serve` opens a journal or a socket; `durward check` asks the same.

use std::io::Write;

use gate::identity::KeyRing;
use state::directory::check_private;

use super::ServeArgs;
use super::plan::Plan;
use crate::certificates::Certificates;
use crate::config::Settings;
use crate::config::values::Listen;
use crate::failure::Failure;
use crate::places::Places;
use crate::policy::source::{PolicySource, Protected, ShippedPolicy, narrow_policy};
use crate::providers;
use admin::control::directory::Directory;

/// What is served, and by which rules: nothing in the configuration stands against it.
pub struct Ready {
    pub plan: Plan,
    pub policies: Vec<Loaded>,
    /// Our own certificates, of which none has ended.
    pub certificates: Certificates,
}

impl Ready {
    /// Puts it together. Nothing is made, started or connected to.
    ///
    /// # Errors
    /// What is wrong with the configuration, or with what it names.
    pub fn of(args: &ServeArgs, settings: &Settings, places: &Places) -> Result<Self, Failure> {
        Self::even_without_servers(args, settings, places).and_then(|ready| {
            Ok(Self {
                plan: ready.plan.with_servers()?,
                ..ready
            })
        })
    }

    /// The same for a configuration that may have no server: those of the command line may come yet.
    ///
    /// # Errors
    /// As [`Ready::of`].
    pub fn even_without_servers(
        args: &ServeArgs,
        settings: &Settings,
        places: &Places,
    ) -> Result<Self, Failure> {
        let plan = Plan::of(args, settings, places)?;
        let policies = policies(&plan, settings, places)?;
        directories(places)?;
        need_keys(&plan, settings, places)?;
        listens(&plan.listen)?;
        for server in &plan.servers {
            server
                .launch()
                .check(&server.name, places)
                .map_err(|failure| failure.about(&format!("the server \"{}\"", server.name)))?;
        }
        providers::check_budgets(settings, places)?;
        let certificates = Certificates::of_serve(args.tls_cert.as_ref(), settings);
        certificates.check()?;
        Ok(Self {
            plan,
            policies,
            certificates,
        })
    }

    /// The same with no more connections than there are file descriptors for; says so where that is
    /// fewer than usual.
    pub fn within(self, files_max: u64, err: &mut dyn Write) -> Self {
        Self {
            plan: self.plan.within(files_max, err),
            ..self
        }
    }

    /// The same for clients of tool servers alone.
    pub fn without_models(mut self) -> Self {
        self.plan.models = None;
        self
    }

    /// Tells of what is served all the same: a server whose program is not there, and rules that nobody chose.
    pub fn warn(&self, err: &mut dyn Write) {
        // Standard error that is gone keeps nobody from serving.
        for server in &self.plan.servers {
            if let Some(missing) = server.launch().missing_program() {
                let _ = writeln!(
                    err,
                    "durward: warning: the server \"{}\": {missing}",
                    server.name
                );
            }
        }
        for (source, _) in &self.policies {
            if let PolicySource::Shipped(shipped) = source {
                let summary = shipped.summary();
                let _ = match shipped {
                    ShippedPolicy::Starter => {
                        writeln!(err, "durward: no --policy given, {summary}")
                    }
                    ShippedPolicy::Ssh => {
                        let names = self.plan.names(source);
                        writeln!(err, "durward: {names}: no policy given, {summary}")
                    }
                };
            }
        }
    }
}

/// A socket in the file system needs a directory, and a path that the system takes.
fn listens(place: &Listen) -> Result<(), Failure> {
    let Listen::Socket(path) = place else {
        return Ok(());
    };
    let wrong = |why: &str| {
        Err(Failure::configuration(format!(
            "cannot listen on {place}: {why}"
        )))
    };
    if std::os::unix::net::SocketAddr::from_pathname(path).is_err() {
        return wrong("the path is too long for a socket");
    }
    match path.parent().is_some_and(std::path::Path::is_dir) {
        true => Ok(()),
        false => wrong("the directory does not exist"),
    }
}

/// Directories that are there already have to be this user's alone.
fn directories(places: &Places) -> Result<(), Failure> {
    for directory in [&places.state, &places.journal()] {
        if directory.exists() {
            check_private(directory).map_err(Failure::journal)?;
        }
    }
    let runtime = places
        .runtime
        .first()
        .ok_or_else(|| Failure::configuration("there is no runtime directory"))?;
    match Directory::open(runtime) {
        Ok(_) => Ok(()),
        Err(unusable) if unusable.is_missing() => Ok(()),
        Err(unusable) => Err(Failure::configuration(unusable.to_string())),
    }
}

/// Nobody from elsewhere comes in without a key.
fn need_keys(plan: &Plan, settings: &Settings, places: &Places) -> Result<(), Failure> {
    let in_use = KeyRing::in_use(&places.keys()).map_err(|error| Failure::of_keys(&error))?;
    // Where there are accounts, nobody is answered without a token or a key.
    let has_accounts = plan.models.is_some() && settings.models.accounts.is_some();
    if in_use || plan.require_key || has_accounts || settings.identity.is_on() {
        return Ok(());
    }
    if plan.listen.is_local() {
        let is_socket = matches!(plan.listen, Listen::Socket(_));
        if is_socket || net::http::server::users_can_be_known() {
            return Ok(());
        }
        return Err(Failure::configuration(format!(
            "without keys only this user's own processes are answered, but this system cannot tell whose process connects to {}\n  hint: create a key with durward keys create, or listen at unix:PATH",
            plan.listen
        )));
    }
    Err(Failure::configuration(format!(
        "{} can be reached from other machines, and without keys anybody could call it from there\n  hint: listen on 127.0.0.1, or create a key with durward keys create",
        plan.listen
    )))
}

/// A policy, and where it came from.
pub type Loaded = (PolicySource, gate::policy::Policy);

/// Every policy that the plan names. Everything that can be wrong with the rules is said before the
/// journal begins a segment.
fn policies(plan: &Plan, settings: &Settings, places: &Places) -> Result<Vec<Loaded>, Failure> {
    let mut policies = Vec::new();
    for source in plan.policies() {
        let policy = source.load(Protected::AsRun, places);
        let policy = policy.and_then(|policy| narrow_policy(policy, &settings.agents));
        policies.push((source, policy.map_err(Failure::configuration)?));
    }
    Ok(policies)
}
