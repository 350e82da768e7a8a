//! Trying a server out: a gate with a journal of its own before it, as in the product, without a client or a
//! transport. For the tests of servers (feature `trial`).

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gate::approval::Shown;
use gate::facts::{Fact, Facts, ResourceType};
use gate::inspect::Inspected;
use gate::journal::audit::{Filter, each};
use gate::journal::{Journal, JournalOptions, Keys, SyncPolicy};
use gate::policy::Policy;
use gate::{Admission, Call, Caller, Clock, ControlKind, Gate, Pass as _, PeerId, Spent, World};
use serde_json::{Value, json};

use crate::mcp::{Arrival, Builtin, BuiltinSession, Carries, Exchange, Message, Unsent};
use crate::server::{DynToolServer, SessionRef};

/// Lets everything pass.
const OPEN_POLICY: &str =
    r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#;

/// A frame without a transport, and what it says where somebody has read it.
#[derive(Debug, Clone)]
pub struct Raw(pub Vec<u8>, pub Option<Message>);

impl Carries for Raw {
    fn message(&self) -> Option<&Message> {
        self.1.as_ref()
    }

    fn frame(&self) -> &[u8] {
        &self.0
    }

    fn into_message(self) -> Option<Message> {
        self.1
    }
}

impl Shown for Raw {
    fn arguments(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn weight(&self) -> usize {
        self.0.len()
    }
}

struct Time(Instant);

impl Clock for Time {
    fn wall_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0))
    }

    fn mono_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A server behind a gate.
pub struct Trial {
    gate: Gate,
    builtin: Arc<Builtin>,
    journal: Arc<Journal>,
    directory: PathBuf,
    ids: AtomicU64,
}

impl Trial {
    /// Puts a server behind a gate that judges by this policy; without one everything passes.
    ///
    /// # Errors
    /// Whatever stands in the way: the definitions, the policy or the journal.
    pub fn new(
        server: Arc<dyn DynToolServer>,
        policy: Option<&str>,
    ) -> Result<Self, Box<dyn Error>> {
        Self::within(server, policy, gate::limits::Limits::default())
    }

    /// The same within these limits.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn within(
        server: Arc<dyn DynToolServer>,
        policy: Option<&str>,
        limits: gate::limits::Limits,
    ) -> Result<Self, Box<dyn Error>> {
        static TRIALS: AtomicU64 = AtomicU64::new(0);
        let number = TRIALS.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("trial-{}-{number}", std::process::id()));
        let mut byte = 0_u8;
        let mut random = move |bytes: &mut [u8]| {
            for to in bytes {
                byte = byte.wrapping_mul(5).wrapping_add(113);
                *to = byte;
            }
        };
        let keys = Keys::ephemeral(&mut random);
        let options = JournalOptions {
            sync: SyncPolicy::Never,
            ..JournalOptions::default()
        };
        let clock: Arc<dyn Clock> = Arc::new(Time(Instant::now()));
        let journal = Arc::new(Journal::open(
            &directory,
            &keys,
            options,
            [7; 16],
            clock.wall_ms(),
            &mut random,
        )?);
        let world = World {
            policy: Policy::load(policy.unwrap_or(OPEN_POLICY), None, &[])?,
            version: "v1".into(),
            limits,
            approval: gate::approval::Options::default(),
            inspect: Arc::default(),
            flow: Arc::default(),
        };
        let id = PeerId::server(server.identity().name);
        Ok(Self {
            gate: Gate::new(world, Arc::clone(&journal), clock, 7),
            journal,
            builtin: Builtin::new(id, server)?,
            directory,
            ids: AtomicU64::new(0),
        })
    }

    /// Closes the journal, and reads the records of calls. Nothing passes any more after that.
    ///
    /// # Errors
    /// Where the journal cannot be closed or read.
    pub fn records(&self) -> Result<Vec<Value>, Box<dyn Error>> {
        self.journal
            .close(Time(Instant::now()).wall_ms(), "trial")?;
        let mut records: Vec<Value> = Vec::new();
        each(&self.directory, &Filter::default(), &mut |body| {
            let record: Option<Value> = serde_json::from_slice(body).ok();
            records.extend(record.filter(|record| record.get("op").is_some()));
        })?;
        Ok(records)
    }

    /// The server.
    #[must_use]
    pub fn builtin(&self) -> &Arc<Builtin> {
        &self.builtin
    }

    /// A session of this caller.
    #[must_use]
    pub fn session(&self, caller: &str) -> BuiltinSession {
        self.builtin.session(SessionRef {
            id: format!("session of {caller}").into(),
            caller: caller.into(),
            groups: Arc::default(),
            shares: false,
        })
    }

    /// The protocol's own traffic, spent for `at`.
    ///
    /// # Errors
    /// Where the pass is not good at its own destination, which cannot be.
    pub fn spent(&self, frame: &str, at: &PeerId) -> Result<Spent<Raw>, &'static str> {
        let request = Raw(frame.as_bytes().to_vec(), None);
        let pass = self.gate.control(ControlKind::List, at, request);
        let spent = pass.spend(at).map_err(|_| "the pass is for another peer")?;
        Ok(spent.0)
    }

    /// Sends a frame that is the protocol's own traffic.
    ///
    /// # Errors
    /// [`Unsent`] in words.
    pub fn send(&self, session: &BuiltinSession, frame: &str) -> Result<Exchange, String> {
        let spent = self.spent(frame, self.builtin.id())?;
        let sent = session.request(spent);
        sent.map_err(|unsent: Unsent<Raw>| format!("{:?}", unsent.why))
    }

    /// A call as a Modern client writes it.
    fn frame(&self, tool: &str, arguments: &Value) -> Value {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {
                "name": tool, "arguments": arguments,
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}
                }
            }
        })
    }

    /// A trial has no rules of `inspect:`.
    fn inspect(&self, raw: Raw) -> Inspected<Raw> {
        let inspected = self
            .gate
            .inspect(raw, |_, raw| Ok::<_, Infallible>((raw, None)));
        let Ok(inspected) = inspected;
        inspected
    }

    /// Calls a tool as a Modern client does; gives the result of the reply. `Err` is a refusal of the gate,
    /// or an error of the protocol.
    ///
    /// # Errors
    /// What was refused, in words.
    pub async fn call(
        &self,
        session: &BuiltinSession,
        caller: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, String> {
        let frame = self.frame(tool, &arguments);
        let mut facts = Facts {
            method: "tools/call".into(),
            tool_name: Fact::Known(tool.to_owned()),
            backend_id: self.builtin.id().name().to_owned(),
            resource_type: Some(ResourceType::Tool),
            ..Facts::default()
        };
        let about = SessionRef {
            id: "trial".into(),
            caller: caller.into(),
            groups: Arc::default(),
            shares: false,
        };
        let frame = frame.to_string().into_bytes();
        let mut message = self.builtin.parse(&frame, about);
        // A call that cannot be described is answered with a failure, and judged by what is known.
        let _ = self.builtin.describe(&message, &mut facts);
        self.builtin.note_judged(&mut message, &facts);
        let call = Call {
            caller: Caller::local(caller),
            facts: facts.into(),
            origin: Box::default(),
            targets: self.builtin.id().into(),
            request: self.inspect(Raw(frame, Some(message))),
        };
        let permit = match self.gate.admit(call).await {
            Admission::Permit(permit) => permit,
            Admission::Pending(_) => return Err("a person has to be asked".into()),
            Admission::Refused(refusal) => return Err(refusal.to_string()),
        };
        let (spent, mut flight) = permit
            .spend(self.builtin.id())
            .map_err(|_| "the permit is for another peer")?;
        let mut exchange = session
            .request(spent)
            .map_err(|unsent| format!("{:?}", unsent.why))?;
        let mut reply = None;
        while let Some(arrival) = exchange.next().await {
            match arrival {
                Arrival::Reply(told) => reply = Some(told.bytes),
                Arrival::News(_) => {}
                Arrival::Found(found) => {
                    let judged = found.judged_by(&mut flight);
                    judged.map_err(|refusal| refusal.to_string())?;
                }
            }
        }
        flight.finish(gate::Outcome::default());
        let reply = reply.ok_or("no reply")?;
        let reply: Value = serde_json::from_slice(&reply).map_err(|error| error.to_string())?;
        match (reply.get("result"), reply.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (_, error) => Err(error.map_or_else(|| "no result".into(), ToString::to_string)),
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
