//! The tool server.

mod commands;
mod effects;
mod facts;
mod fan_out;
mod forward;
mod jobs;
mod listing;
mod preview;
mod run;
mod terminal;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gate::approval::change::Seen;
use gate::facts::{Fact, FactId, Facts};
use gate::paths::Reach;
use serde_json::{Value, json};
use toolkit::files::GuardedFiles;
use toolkit::measure::Measure;
use toolkit::options::{OptionDef, OptionKind, Options, Setup};
use toolkit::schema::SchemaFault;
use toolkit::server::{
    Answer, Args, Failure, Identity, Outcome, ReplySink, SessionRef, ToolCall, ToolDef, ToolServer,
    Unfit,
};

use crate::Environment;
use crate::command::Context;
use crate::config::Person;
use crate::forwards::Asked as Asking;
use crate::hosts::{Host, Hosts, Limits, Links, Secret};
use crate::jobs::Opened;
use crate::metrics::Metrics;
use crate::outputs::Kept;
use crate::paths;
use crate::pool::Pool;
use crate::recording::OpenRecordings;
use crate::sessions::{Asked, Sessions};
use crate::tools::{self, Tool};

pub(crate) use facts::state;
use run::To;

/// The option with the file of hosts.
const HOSTS: &str = "hosts";

/// The option with the bound on connections.
const CONNECTIONS_MAX: &str = "connections_max";

/// What stands beside `builtin: ssh`.
pub const OPTIONS: &[OptionDef] = &[
    OptionDef::required(
        HOSTS,
        OptionKind::File,
        "the file with the hosts and who logs in there",
    ),
    OptionDef::new(
        CONNECTIONS_MAX,
        OptionKind::Number(1..=1000),
        "",
        "most connections to one host as one user, instead of what the file of hosts says",
    ),
];

/// The server.
#[derive(Debug)]
pub struct Ssh {
    tools: Vec<ToolDef>,
    hosts: Arc<Hosts>,
    recordings: OpenRecordings,
    pool: Arc<Pool>,
    sessions: Sessions,
    outputs: Arc<Kept>,
    jobs: Arc<Opened>,
    metrics: Arc<Metrics>,
}

impl Ssh {
    /// The server of these hosts.
    ///
    /// # Errors
    /// [`SchemaFault`] where a schema in this crate is wrong, which its tests rule out.
    pub fn new(hosts: Hosts, environment: Environment) -> Result<Self, SchemaFault> {
        let hosts = Arc::new(hosts);
        Ok(Self {
            tools: tools::all()?,
            pool: Arc::new(Pool::new(Arc::clone(&hosts), environment)),
            sessions: Sessions::new(hosts.limits.sessions_max),
            hosts,
            recordings: OpenRecordings::default(),
            outputs: Arc::new(Kept::new(None)),
            jobs: Arc::default(),
            metrics: Arc::default(),
        })
    }

    /// The same, which keeps long outputs in this directory.
    #[must_use]
    pub fn keeping(self, directory: PathBuf) -> Self {
        Self {
            outputs: Arc::new(Kept::new(Some(directory))),
            ..self
        }
    }

    /// Returns the files behind the hosts file that the options name; none where that cannot be read, which ends the start.
    #[must_use]
    pub fn guarded(options: &Options, variable: impl Fn(&str) -> Option<String>) -> GuardedFiles {
        let read = options
            .path(HOSTS)
            .map(|path| Hosts::read(path, &Person::from_environment(&variable)));
        let hosts = read.and_then(Result::ok);
        hosts
            .map(|hosts| hosts.guarded().clone())
            .unwrap_or_default()
    }

    /// The server as its options say; `variable` reads the variables that the file of hosts names.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn configured(
        setup: &Setup,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let Some(path) = setup.options.path(HOSTS) else {
            return Err(format!(
                "{HOSTS} is not given: name the file with the hosts"
            ));
        };
        let person = Person::from_environment(&variable);
        let mut hosts = Hosts::read(path, &person).map_err(|fault| fault.to_string())?;
        let most = setup.options.number(CONNECTIONS_MAX);
        if let Some(most) = most.and_then(|most| usize::try_from(most).ok()) {
            hosts.limits.connections_max = most;
        }
        let values = hosts.variables().into_iter().filter_map(|name| {
            let value = variable(&name)?;
            Some((name, value))
        });
        let environment = Environment::of(values);
        let server = Self::new(hosts, environment).map_err(|fault| fault.to_string())?;
        Ok(server.keeping(setup.state.clone()))
    }

    fn limits(&self) -> &Limits {
        &self.hosts.limits
    }

    /// The host that a call is for, as far as its arguments and the open sessions tell.
    fn host(&self, args: Args<'_>) -> Option<Arc<Host>> {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        if let Some(id) = text("session_id") {
            return self.sessions.host_of(id);
        }
        let named = text("host").or_else(|| Some(text("job")?.rsplit_once(':')?.0));
        let port = args.get("port").and_then(Value::as_u64);
        self.hosts.resolve(named?, port, text("user")).cloned()
    }

    async fn connect(&self, args: Args<'_>, by: &SessionRef) -> Result<Answer, Failure> {
        let name = args.text("host")?;
        let Some(host) = self.host(args) else {
            if let Some(why) = self.hosts.unusable.get(name) {
                let wrong = format!("{name} cannot be used: {why}");
                return Err(Failure::new("unusable_host", wrong));
            }
            let wrong = format!("there is no host \"{name}\" in the operator's list");
            return Err(Failure::new("unknown_host", wrong));
        };
        if args.is_set("insecure") {
            let wrong = "host keys are always checked: insecure is not permitted";
            return Err(Failure::new("insecure_refused", wrong));
        }
        let user = &host.credential.user;
        if let Some(asked) = args
            .get("user")
            .and_then(Value::as_str)
            .filter(|asked| asked != user)
        {
            let wrong = format!("{name} is used as {user}, not as {asked}");
            return Err(Failure::new("other_user", wrong));
        }
        if let Some(port) = args
            .get("port")
            .and_then(Value::as_u64)
            .filter(|port| *port != u64::from(host.port))
        {
            let wrong = format!(
                "{name} has the port {}, not {port}; a host with the same address, this port and the same user is not in the operator's list, or there are several",
                host.port
            );
            return Err(Failure::new("other_port", wrong));
        }
        let takes = host.credential.takes_password();
        let password = args.get("password").and_then(Value::as_str);
        if password.is_some() && !takes {
            let wrong = format!("{name} takes no password from a caller: leave it out");
            return Err(Failure::new("password_refused", wrong));
        }
        let asked = Asked {
            password: password.map(|text| Secret::new(text.to_owned())),
            alone: args.is_set("alone"),
        };
        let session = self
            .sessions
            .open(by, Arc::clone(&host), asked, self.limits())?;
        // Whether it can be reached is known now, and not at the first command.
        let asked = args.get("timeout_ms").and_then(Value::as_u64);
        let most = self.limits().connect_wait();
        let wait = asked.map_or(most, |ms| most.min(Duration::from_millis(ms)));
        let to = To::from(&*session);
        let slot = tokio::time::timeout(wait, self.slot(&to)).await;
        let slot = slot.unwrap_or_else(|_| Err(run::late(&host, wait)));
        self.metrics.session(&host.name, slot.is_ok());
        match slot {
            Ok(slot) if host.links == Links::Checked => self.pool.find_home(&host, slot).await,
            Ok(_) => {}
            Err(fault) => {
                let _ = self.disconnect(&session.id, by).await;
                return Err(fault);
            }
        }
        Ok(Answer::data(json!({"session_id": &*session.id})))
    }
}

impl Ssh {
    /// Where a call's commands run at this host, and with which variables.
    fn context(&self, args: Args<'_>, host: &Host) -> Result<Context, Failure> {
        Ok(Context {
            home: self.pool.home(host),
            ..tools::context(args)?
        })
    }

    /// Ends a session, and the connections that are its alone.
    async fn disconnect(&self, id: &str, by: &SessionRef) -> Result<(), Failure> {
        let session = self.sessions.end(id, by, self.limits())?;
        if let Some(own) = &session.own {
            self.pool.close(&session.host, &own.owner).await;
        }
        Ok(())
    }
}

impl ToolServer for Ssh {
    fn identity(&self) -> Identity {
        Identity {
            name: "ssh",
            title: "SSH hosts",
            version: env!("CARGO_PKG_VERSION"),
            instructions: "Call ssh_connect with a host's name, then ssh_run_command with one program and its words. There is no shell: no pipes, no redirections, no expansion.",
        }
    }

    fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    fn describe(
        &self,
        tool: &ToolDef,
        args: Args<'_>,
        _session: &SessionRef,
        facts: &mut Facts,
    ) -> Result<(), Unfit> {
        let Some(tool) = Tool::named(tool.name) else {
            return Ok(());
        };
        // A host that nobody knows is stated as such: no rule on hosts lets it pass.
        let host = match tool {
            // The others are judged one by one, before anything runs.
            Tool::FanOut => {
                let first = tools::fan_hosts(&self.hosts, args)?.first().copied();
                first.and_then(|name| self.hosts.named(name)).cloned()
            }
            _ => self.host(args),
        };
        let home = host.as_ref().and_then(|host| self.pool.home(host));
        let host = host.map(|host| host.name.as_str().into());
        let reaches = !matches!(
            tool,
            Tool::ListSessions | Tool::PoolStats | Tool::ReadOutput
        );
        let _ = facts.set(
            FactId::Host,
            if reaches {
                host.map_or(Fact::Unknown, Fact::Known)
            } else {
                Fact::Absent
            },
        );
        facts.paths = Fact::Absent;
        facts.reach = Reach::default();
        facts.is_elsewhere = true;
        if matches!(tool, Tool::Get | Tool::Put | Tool::ListDir | Tool::Edit) {
            let asked = tools::Asked::read(args)?;
            facts.paths = Fact::Known(vec![paths::argument(asked.path)]);
        }
        if tool == Tool::ForwardOpen {
            Asking::read(args)?.state(facts);
        }
        if tool == Tool::TerminalSend {
            self.state_typed(args, facts)?;
        }
        let commands = tools::commands(tool, args)?;
        if !commands.is_empty() {
            let context = Context {
                home,
                ..tools::context(args)?
            };
            state(&commands, &context, facts);
        }
        Ok(())
    }

    async fn preview(&self, tool: &ToolDef, args: Args<'_>, session: &SessionRef) -> Option<Seen> {
        match Tool::named(tool.name) {
            Some(Tool::Put) => self.put_seen(args, session).await,
            _ => None,
        }
    }

    async fn call(&self, call: ToolCall, reply: ReplySink) -> Outcome {
        let Some(tool) = Tool::named(call.tool()) else {
            return Outcome::Failed(Failure::new("unknown_tool", "there is no such tool"));
        };
        let cancel = reply.cancel().clone();
        let result = match tool {
            Tool::Connect => self.connect(call.args(), call.session()).await,
            Tool::Disconnect => match call.args().text("session_id") {
                Ok(id) => {
                    let ended = self.disconnect(id, call.session()).await;
                    ended.map(|()| Answer::text("disconnected"))
                }
                Err(unfit) => Err(unfit.into()),
            },
            Tool::Run | Tool::Hostname => self.one(tool, &call, &reply).await,
            Tool::FanOut => self.fan_out(&call, &reply).await,
            Tool::Batch => self.batch(&call, &reply).await,
            Tool::CatFile => self.file(&call, &reply).await,
            Tool::Interfaces
            | Tool::Routes
            | Tool::Firewall
            | Tool::Qdisc
            | Tool::Connectivity
            | Tool::Compare => self.network(tool, &call, &cancel).await,
            Tool::Get | Tool::Put | Tool::ListDir | Tool::Edit => {
                self.transfer(tool, &call, &reply).await
            }
            Tool::JobStart | Tool::JobStatus | Tool::JobOutput | Tool::JobCancel => {
                self.job(tool, &call, &reply).await
            }
            Tool::ForwardOpen | Tool::ForwardList | Tool::ForwardClose => {
                self.forward(tool, &call).await
            }
            Tool::TerminalOpen | Tool::TerminalSend | Tool::TerminalRead | Tool::TerminalClose => {
                self.terminal(tool, &call, &reply).await
            }
            Tool::ReadOutput => match call.args().text("output") {
                Ok(output) => {
                    let caller = &call.session().caller;
                    self.outputs.read(caller, output, call.args()).await
                }
                Err(unfit) => Err(unfit.into()),
            },
            Tool::ListSessions => Ok(self.listed(call.session())),
            Tool::PoolStats => Ok(self.stats(call.args())),
        };
        if cancel.is_cancelled() {
            return Outcome::Cancelled;
        }
        result.into()
    }

    fn begin(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.outputs.is_there() {
            let (jobs, kept) = (Arc::clone(&self.jobs), Arc::clone(&self.outputs));
            let (pool, hosts) = (Arc::clone(&self.pool), Arc::clone(&self.hosts));
            runtime.spawn(async move { jobs.take_up(kept, pool, hosts).await });
        }
    }

    fn end(&self) {
        self.recordings.finish_all();
    }

    fn session_ended(&self, session: &SessionRef) {
        let ended = self.sessions.end_all(session);
        let ended: Vec<_> = ended.into_iter().filter(|of| of.own.is_some()).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !ended.is_empty() {
            let pool = Arc::clone(&self.pool);
            runtime.spawn(async move {
                for session in ended {
                    pool.close(&session.host, &session.id).await;
                }
            });
        }
    }

    fn caller_revoked(&self, caller: &Arc<str>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cancelled = Arc::clone(&self.jobs).cancel_all(Arc::clone(caller));
            runtime.spawn(cancelled);
        }
    }

    fn measures(&self) -> Vec<Measure> {
        let active = self.sessions.by_host(self.limits());
        let mut measures = self
            .metrics
            .measures(&active, &self.pool.counts, &self.pool.states());
        measures.extend(self.limits().measures());
        measures
    }
}
