//! The tool server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gate::facts::{Fact, FactId, Facts};
use gate::paths::Reach;
use serde_json::{Value, json};
use toolkit::cancel::Cancel;
use toolkit::measure::Measure;
use toolkit::options::{OptionDef, OptionKind, Setup};
use toolkit::schema::SchemaFault;
use toolkit::server::{
    Answer, Args, Failure, Identity, Outcome, ReplySink, SessionRef, ToolCall, ToolDef, ToolServer,
    Unfit,
};

use crate::Environment;
use crate::command::{Command, Part};
use crate::config::Person;
use crate::hosts::{Host, Hosts, Limits, Secret};
use crate::metrics::Metrics;
use crate::outputs::Kept;
use crate::paths;
use crate::pool::{Pool, SlotFault};
use crate::sessions::{Session, Sessions};
use crate::tools::{self, Tool};
use crate::upstream::{self, End, Ended};

/// The option with the file of hosts.
const HOSTS: &str = "hosts";

/// What stands beside `builtin: ssh`.
pub const OPTIONS: &[OptionDef] = &[OptionDef::required(
    HOSTS,
    OptionKind::File,
    "the file with the hosts and who logs in there",
)];

/// The server.
#[derive(Debug)]
pub struct Ssh {
    tools: Vec<ToolDef>,
    hosts: Arc<Hosts>,
    pool: Arc<Pool>,
    sessions: Sessions,
    outputs: Kept,
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
            hosts,
            sessions: Sessions::default(),
            outputs: Kept::new(None),
            metrics: Arc::default(),
        })
    }

    /// The same, which keeps long outputs in this directory.
    #[must_use]
    pub fn keeping(self, directory: PathBuf) -> Self {
        Self {
            outputs: Kept::new(Some(directory)),
            ..self
        }
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
        let home = variable("HOME").map(PathBuf::from);
        let person = Person {
            home: home.unwrap_or_default(),
            user: variable("USER")
                .or_else(|| variable("LOGNAME"))
                .unwrap_or_default(),
            agent: variable("SSH_AUTH_SOCK").map(PathBuf::from),
        };
        let hosts = Hosts::read(path, &person).map_err(|fault| fault.to_string())?;
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
        match args.get("session_id").and_then(Value::as_str) {
            Some(id) => self.sessions.host_of(id),
            None => self.hosts.named(args.get("host")?.as_str()?).cloned(),
        }
    }

    async fn connect(&self, args: Args<'_>, by: &SessionRef) -> Result<Answer, Failure> {
        let name = args.text("host")?;
        let Some(host) = self.hosts.named(name) else {
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
            let wrong = format!("{name} has the port {}, not {port}", host.port);
            return Err(Failure::new("other_port", wrong));
        }
        let takes = host.credential.proof == crate::hosts::Proof::Caller;
        let password = args.get("password").and_then(Value::as_str);
        if password.is_some() && !takes {
            let wrong = format!("{name} takes no password from a caller: leave it out");
            return Err(Failure::new("password_refused", wrong));
        }
        let password = password.map(|text| Secret::new(text.to_owned()));
        let session = self
            .sessions
            .open(by, Arc::clone(host), password, self.limits())?;
        // Whether it can be reached is known now, and not at the first command.
        let slot = self.slot(&session).await;
        self.metrics.session(&host.name, slot.is_ok());
        if let Err(fault) = slot {
            let _ = self.sessions.end(&session.id, by, self.limits());
            return Err(fault);
        }
        Ok(Answer::data(json!({"session_id": &*session.id})))
    }

    async fn slot(&self, session: &Session) -> Result<crate::pool::Slot, Failure> {
        let given = session
            .password
            .as_ref()
            .map(|password| (&session.id, password));
        self.pool
            .slot(&session.host, given)
            .await
            .map_err(|fault| failure(&session.host, fault))
    }

    /// The host of a session, to be asked where paths lead.
    fn asking<'a>(
        &'a self,
        session: &'a Session,
    ) -> paths::Asking<'a, impl Future<Output = Result<crate::pool::Slot, Failure>>> {
        paths::Asking {
            host: &session.host,
            slot: self.slot(session),
            wait: self.limits().queue_wait(),
        }
    }

    /// Runs one command. What runs is stopped where this is dropped.
    async fn run(
        &self,
        session: &Session,
        order: upstream::Order,
        cancel: &Cancel,
    ) -> Result<Ended, Failure> {
        let slot = tokio::select! {
            slot = self.slot(session) => slot?,
            () = cancel.cancelled() => return Err(Failure::new("cancelled", "the command was cancelled before it was sent; it did not run")),
        };
        let Some((channel, taken)) = slot.take() else {
            return Err(Failure::new("connection_lost", "the channel is gone").retryable());
        };
        let stop = Stop(Cancel::default());
        let told = stop.0.clone();
        let again = Again::of(self, session, order.mark.clone());
        // On a task of its own: killing it takes longer than anybody waits for a call that was given up.
        let (metrics, host) = (Arc::clone(&self.metrics), Arc::clone(&session.host));
        let running = tokio::spawn(async move {
            let mut ended = upstream::run(channel, order, told).await;
            metrics.command(&host.name, ended.end == End::Exited(0), ended.time);
            again.kill(&mut ended.end).await;
            if let Some(left) = ended.open.take() {
                tokio::spawn(async move {
                    left.closed().await;
                    drop(taken);
                });
            }
            ended
        });
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = cancel.cancelled() => {
                stop.0.cancel();
                running.await
            }
        };
        ended.map_err(|_| Failure::new("internal", "the command's task failed"))
    }

    async fn one(&self, tool: Tool, call: &ToolCall, reply: &ReplySink) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let commands = tools::commands(tool, args)?;
        let opened = self.asking(&session).opened(commands, reply).await?;
        let Some(command) = opened.commands.first() else {
            return Err(Failure::new("unfit_arguments", "there is no command"));
        };
        let mut order = tools::order(command.argv(), args, &session.host, self.limits())?;
        order.spill = self.outputs.spill(&call.session().caller);
        let ended = self.run(&session, order, reply.cancel()).await?;
        if tool == Tool::Hostname {
            tools::answer(&ended)?;
            let name = String::from_utf8_lossy(&ended.stdout.bytes)
                .trim()
                .to_owned();
            return match ended.end {
                End::Exited(0) => Ok(Answer::data(json!({"hostname": name}))),
                _ => Err(
                    Failure::new("command_failed", "the host did not tell its name").with(
                        "stderr",
                        String::from_utf8_lossy(&ended.stderr.bytes).trim(),
                    ),
                ),
            };
        }
        let mut answer = tools::answer(&ended)?;
        if let (Some(data), false) = (&mut answer.structured, opened.elsewhere.is_empty()) {
            data.insert("opened".into(), opened.elsewhere.into());
        }
        Ok(answer)
    }

    async fn file(&self, call: &ToolCall, reply: &ReplySink) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let asked = tools::FileAsked::read(args)?;
        let commands = tools::commands(Tool::CatFile, args)?;
        let opened = self.asking(&session).opened(commands, reply).await?;
        let argv = opened.commands.first().map_or(&[][..], Command::argv);
        let Some(place) = argv.last() else {
            return Err(Failure::new("unfit_arguments", "there is no path"));
        };
        let guarded = opened
            .is_checked
            .then(|| paths::guarded(asked.bytes_read(), place));
        let argv = guarded.as_deref().unwrap_or(argv);
        let mut order = tools::order(argv, args, &session.host, self.limits())?;
        order.bounds.stream_bytes_max = usize::try_from(asked.most).unwrap_or(usize::MAX);
        let ended = self.run(&session, order, reply.cancel()).await?;
        tools::of_file(&asked, place, &ended)
    }

    async fn network(
        &self,
        tool: Tool,
        call: &ToolCall,
        cancel: &Cancel,
    ) -> Result<Answer, Failure> {
        let args = call.args();
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let commands = tools::commands(tool, args)?;
        let orders: Result<Vec<_>, Failure> = commands
            .iter()
            .map(|command| tools::order(command.argv(), args, &session.host, self.limits()))
            .collect();
        let runs = orders?
            .into_iter()
            .map(|order| self.run(&session, order, cancel));
        let ended = tools::together(runs).await;
        tools::of_network(tool, args, &session, ended)
    }

    async fn batch(&self, call: &ToolCall, reply: &ReplySink) -> Result<Answer, Failure> {
        let (args, cancel) = (call.args(), reply.cancel());
        let session =
            self.sessions
                .take(args.text("session_id")?, call.session(), self.limits())?;
        let commands = tools::commands(Tool::Batch, args)?;
        let opened = self
            .asking(&session)
            .opened(commands.clone(), reply)
            .await?;
        let orders: Result<Vec<_>, Failure> = opened
            .commands
            .iter()
            .map(|command| tools::order(command.argv(), args, &session.host, self.limits()))
            .collect();
        let (orders, total) = (orders?, commands.len());
        let mut results = Vec::new();
        let mut all = true;
        if args.is_set("stop_on_error") {
            for (command, order) in commands.iter().zip(orders) {
                let (result, success) =
                    tools::of_batch(command, self.run(&session, order, cancel).await);
                results.push(result);
                all &= success;
                if !success {
                    break;
                }
            }
        } else {
            let runs = orders
                .into_iter()
                .map(|order| self.run(&session, order, cancel));
            for (command, ended) in commands.iter().zip(crate::tools::together(runs).await) {
                let (result, success) = tools::of_batch(command, ended);
                results.push(result);
                all &= success;
            }
        }
        Ok(Answer::data(json!({
            "executed": results.len(), "results": results, "total": total, "all_success": u8::from(all),
        })))
    }

    fn listed(&self, by: &SessionRef) -> Answer {
        let sessions: Vec<Value> = self
            .sessions
            .of(by, self.limits())
            .iter()
            .map(|session| {
                json!({
                    "session_id": &*session.id, "host": session.host.name, "user": session.host.credential.user,
                    "created_at": session.created_ms, "in_use": u8::from(session.is_in_use()),
                })
            })
            .collect();
        Answer::data(json!({"count": sessions.len(), "sessions": sessions}))
    }

    fn stats(&self, args: Args<'_>) -> Answer {
        let count = |which: fn(&crate::pool::Counts) -> &std::sync::atomic::AtomicU64| {
            which(&self.pool.counts).load(Ordering::Relaxed)
        };
        let global = json!({
            "hits": count(|c| &c.hits), "misses": count(|c| &c.misses), "creates": count(|c| &c.creates),
            "expires": count(|c| &c.expires), "health_fails": count(|c| &c.health_fails),
        });
        let lanes = self.pool.states();
        if let Some(host) = args.get("host").and_then(Value::as_str) {
            let pool = lanes.iter().find(|lane| lane.host == host);
            let pool =
                pool.map(|lane| json!({"key": lane.key, "total": lane.total, "idle": lane.idle}));
            return Answer::data(match pool {
                Some(pool) => json!({"stats": {"global": global, "pool": pool}}),
                None => json!({"stats": {"global": global}}),
            });
        }
        let pools: serde_json::Map<String, Value> = lanes
            .into_iter()
            .map(|lane| {
                let state = json!({"total": lane.total, "idle": lane.idle, "channels_max": lane.channels_max, "waiting": lane.waiting});
                (lane.key, state)
            })
            .collect();
        Answer::data(json!({"stats": {"global": global, "pools": pools}}))
    }
}

/// What it takes to kill a command over another channel.
struct Again {
    pool: Arc<Pool>,
    host: Arc<Host>,
    given: Option<(Arc<str>, Secret)>,
    mark: Option<upstream::Mark>,
}

impl Again {
    fn of(server: &Ssh, session: &Session, mark: Option<upstream::Mark>) -> Self {
        let password = session.password.clone();
        Self {
            pool: Arc::clone(&server.pool),
            host: Arc::clone(&session.host),
            given: password.map(|password| (Arc::clone(&session.id), password)),
            mark,
        }
    }

    /// Kills a command whose end was not seen, where it can be found.
    async fn kill(self, end: &mut End) {
        let (End::TimedOut { seen } | End::Cancelled { seen }, Some(mark)) = (end, self.mark)
        else {
            return;
        };
        if *seen {
            return;
        }
        let given = self
            .given
            .as_ref()
            .map(|(owner, password)| (owner, password));
        if let Ok(slot) = self.pool.slot(&self.host, given).await
            && let Some((channel, _taken)) = slot.take()
        {
            *seen = mark.kill(channel).await;
        }
    }
}

/// Stops what runs when nobody waits for it any more.
struct Stop(Cancel);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.cancel();
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
        let host = self.host(args).map(|host| host.name.as_str().into());
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
        let commands = tools::commands(tool, args)?;
        if !commands.is_empty() {
            state(&commands, facts);
        }
        Ok(())
    }

    async fn call(&self, call: ToolCall, reply: ReplySink) -> Outcome {
        let Some(tool) = Tool::named(call.tool()) else {
            return Outcome::Failed(Failure::new("unknown_tool", "there is no such tool"));
        };
        let cancel = reply.cancel().clone();
        let result = match tool {
            Tool::Connect => self.connect(call.args(), call.session()).await,
            Tool::Disconnect => {
                let ended = call.args().text("session_id").map_err(Failure::from);
                ended
                    .and_then(|id| self.sessions.end(id, call.session(), self.limits()))
                    .map(|()| Answer::text("disconnected"))
            }
            Tool::Run | Tool::Hostname => self.one(tool, &call, &reply).await,
            Tool::Batch => self.batch(&call, &reply).await,
            Tool::CatFile => self.file(&call, &reply).await,
            Tool::Interfaces
            | Tool::Routes
            | Tool::Firewall
            | Tool::Qdisc
            | Tool::Connectivity
            | Tool::Compare => self.network(tool, &call, &cancel).await,
            Tool::ReadOutput => self.outputs.read(&call.session().caller, call.args()).await,
            Tool::ListSessions => Ok(self.listed(call.session())),
            Tool::PoolStats => Ok(self.stats(call.args())),
        };
        if cancel.is_cancelled() {
            return Outcome::Cancelled;
        }
        result.into()
    }

    fn session_ended(&self, session: &SessionRef) {
        self.sessions.end_all(session);
    }

    fn measures(&self) -> Vec<Measure> {
        let active = self.sessions.by_host(self.limits());
        self.metrics
            .measures(&active, &self.pool.counts, &self.pool.states())
    }
}

/// States what commands are: the facts that rules look at.
pub(crate) fn state(commands: &[Command], facts: &mut Facts) {
    let mut argv: Vec<Arc<str>> = Vec::new();
    let mut operands: Vec<Arc<str>> = Vec::new();
    let mut places = Vec::new();
    for command in commands {
        if !argv.is_empty() {
            argv.push(gate::facts::COMMANDS_APART.into());
        }
        argv.extend(command.argv().iter().map(|word| Arc::from(word.as_str())));
        for operand in command.uses().operands {
            operands.push(operand.text.into());
            if operand.part == Part::Path {
                places.push(paths::argument(operand.text));
            }
        }
    }
    let program = match commands {
        [one] => Fact::Known(one.program().into()),
        // Several programs: a rule about one of them cannot know.
        _ => Fact::Unknown,
    };
    let uses: Vec<_> = commands.iter().map(Command::uses).collect();
    // Of all that they do, the worst; `Operation` is in that order.
    let worst = uses
        .iter()
        .max_by_key(|uses| (uses.operation, uses.side_effects.len()));
    if let Some(worst) = worst {
        facts.operation = Some(worst.operation);
        facts.side_effects = Some(worst.side_effects);
    }
    let _ = facts.set(FactId::Program, program);
    let _ = facts.set(FactId::Argv, Fact::Known(argv.into_iter().collect()));
    let _ = facts.set(
        FactId::Operands,
        Fact::Known(operands.into_iter().collect()),
    );
    // What it is let pass by is a rule about commands, not that it reads.
    let _ = facts.set(FactId::ReadsOnly, Fact::Known("no".into()));
    facts.paths = if places.is_empty() {
        Fact::Absent
    } else {
        Fact::Known(places)
    };
}

fn failure(host: &Host, fault: SlotFault) -> Failure {
    match fault {
        SlotFault::Connect(fault) => {
            let failure = Failure::new(fault.code, fault.wrong);
            if fault.retryable {
                failure.retryable()
            } else {
                failure
            }
        }
        SlotFault::QueueFull(most) => {
            let wrong = format!("{most} calls wait for {} already; try again", host.name);
            Failure::new("queue_full", wrong).retryable()
        }
        SlotFault::QueueWait(waited) => {
            let wrong = format!(
                "no channel to {} was free for {} ms; the command did not run",
                host.name,
                waited.as_millis()
            );
            Failure::new("queue_timed_out", wrong).retryable()
        }
        SlotFault::Refused(why) => {
            let wrong = format!("{} takes no commands on this login: {why}", host.name);
            Failure::new("refused_by_server", wrong)
        }
    }
}
