//! Port forwards: what a call asks for, and those that are open.
//!
//! A forward belongs to a session and ends with it. All that it leads to is named by the call that opens it, and
//! was judged then; a dynamic forward leads nowhere else.

mod target;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::facts::{Fact, FactId, Facts, Stated};
use serde_json::{Value, json};
use toolkit::cancel::Cancel;
use toolkit::server::{Args, Failure, Unfit};

use crate::hosts::Limits;
use crate::random;
pub(crate) use target::Target;

/// Which way a forward goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A port here leads to a target that the host reaches.
    Local,
    /// A port at the host leads to a target that this machine reaches.
    Remote,
    /// A SOCKS port here leads to targets that the host reaches.
    Dynamic,
}

impl Kind {
    /// All, as calls name them.
    pub const ALL: [Self; 3] = [Self::Local, Self::Remote, Self::Dynamic];

    /// The word in calls, rules and records.
    pub fn label(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Dynamic => "dynamic",
        }
    }
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub kind: Kind,
    pub address: IpAddr,
    /// 0 takes a free one.
    pub port: u16,
    pub targets: Vec<Target>,
}

impl Asked {
    /// Reads a call.
    pub fn read(args: Args<'_>) -> Result<Self, Unfit> {
        let word = args.text("kind")?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.label() == word);
        let kind = kind.ok_or_else(|| Unfit::member("kind", "must be local, remote or dynamic"))?;
        let address = args.text("listen_address")?;
        let address: IpAddr = address.parse().map_err(|_| {
            let wrong = format!("\"{address}\" is not an IP address; names are not looked up");
            Unfit::member("listen_address", wrong)
        })?;
        // Rules see one spelling: ::ffff:0.0.0.0 listens where 0.0.0.0 does.
        let address = address.to_canonical();
        let port = u16::try_from(args.count("listen_port")?)
            .map_err(|_| Unfit::member("listen_port", "must be at most 65535"))?;
        let listed = args.get("targets").and_then(Value::as_array);
        let texts = listed.into_iter().flatten().filter_map(Value::as_str);
        let targets: Result<Vec<Target>, String> = texts.map(Target::read).collect();
        let targets = targets.map_err(|wrong| Unfit::member("targets", wrong))?;
        if targets.is_empty() || (kind != Kind::Dynamic && targets.len() > 1) {
            let wrong = "must be one HOST:PORT; a dynamic forward takes several";
            return Err(Unfit::member("targets", wrong));
        }
        Ok(Self {
            kind,
            address,
            port,
            targets,
        })
    }

    /// Where it listens, as rules see it.
    pub fn listen(&self) -> String {
        std::net::SocketAddr::new(self.address, self.port).to_string()
    }

    /// States what rules look at.
    pub fn state(&self, facts: &mut Facts) {
        let targets = self.targets.iter().map(|target| target.text().into());
        let all = [
            (FactId::Forward, Stated::from(self.kind.label())),
            (FactId::ForwardListen, self.listen().as_str().into()),
            (FactId::ForwardTargets, targets.collect()),
        ];
        for (fact, value) in all {
            let _ = facts.set(fact, Fact::Known(value));
        }
    }
}

/// What is counted of a forward, and why it ended.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Connections that are open.
    pub open: usize,
    /// Connections that there were.
    pub taken: u64,
    /// Connections that were turned away: too many, or to another target.
    pub turned_away: u64,
    /// Bytes from where it listens, and back.
    pub bytes: [u64; 2],
    pub ended: Option<&'static str>,
}

/// The same, shared with the task that serves it.
#[derive(Debug, Clone, Default)]
pub(crate) struct State(Arc<Mutex<Told>>);

impl State {
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub connections_max: usize,
    /// Without a connection for so long it ends.
    pub idle: Duration,
    /// Longest time to reach a target.
    pub connect: Duration,
}

impl Bounds {
    pub fn of(limits: &Limits) -> Self {
        Self {
            connections_max: limits.forward_connections_max.max(1),
            idle: Duration::from_millis(limits.forward_idle_ms_max),
            connect: limits.connect_wait(),
        }
    }
}

/// An open forward. Dropped, it ends, with its connections.
#[derive(Debug)]
pub(crate) struct Forward {
    asked: Asked,
    /// Where it listens in fact.
    listening: String,
    state: State,
    stop: Cancel,
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Forward {
    /// One that listens here and is served until `stop` is cancelled.
    pub fn new(asked: Asked, listening: String, state: State, stop: Cancel) -> Self {
        Self {
            asked,
            listening,
            state,
            stop,
        }
    }

    /// As it is told to its caller.
    pub fn json(&self, name: &str) -> Value {
        let told = self.state.told();
        let targets: Vec<String> = self.asked.targets.iter().map(Target::text).collect();
        json!({
            "forward": name, "kind": self.asked.kind.label(), "listening": self.listening,
            "targets": targets, "open": told.open, "taken": told.taken, "turned_away": told.turned_away,
            "bytes_sent": told.bytes[0], "bytes_received": told.bytes[1], "ended": told.ended,
        })
    }
}

/// The forwards of a session.
#[derive(Debug, Default)]
pub(crate) struct Forwards(Mutex<BTreeMap<String, Forward>>);

impl Forwards {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Forward>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for one more; those that have ended are forgotten.
    ///
    /// # Errors
    /// Where there is none.
    pub fn check_room(&self, most: usize) -> Result<(), Failure> {
        let mut all = self.all();
        if all.len() >= most {
            all.retain(|_, forward| forward.state.told().ended.is_none());
        }
        if all.len() < most {
            return Ok(());
        }
        let wrong = format!("the session has {most} forwards already; close one");
        Err(Failure::new("too_many_forwards", wrong).retryable())
    }

    /// Keeps a forward, and tells of it.
    ///
    /// # Errors
    /// Where there is no room for it any more.
    pub fn add(&self, forward: Forward, most: usize) -> Result<Value, Failure> {
        self.check_room(most)?;
        let Some(name) = random::name("fwd_") else {
            let wrong = "the system gives no random numbers";
            return Err(Failure::new("no_randomness", wrong));
        };
        let told = forward.json(&name);
        self.all().insert(name, forward);
        Ok(told)
    }

    /// All of them.
    pub fn list(&self) -> Vec<Value> {
        let all = self.all();
        all.iter()
            .map(|(name, forward)| forward.json(name))
            .collect()
    }

    /// Ends one, and tells of it.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn close(&self, name: &str) -> Result<Value, Failure> {
        let Some(forward) = self.all().remove(name) else {
            let wrong = "the session has no such forward; ssh_forward_list lists them";
            return Err(Failure::new("unknown_forward", wrong));
        };
        Ok(forward.json(name))
    }

    /// Whether something goes over one of them.
    pub fn is_in_use(&self) -> bool {
        self.all()
            .values()
            .any(|forward| forward.state.told().open > 0)
    }
}
