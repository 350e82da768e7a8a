//! The instance's end of the control socket.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use admin::approvals::ForgottenGrants;
use admin::control::{CONNECTIONS_MAX, IDLE_MS_MAX, REQUEST_BYTES_MAX, Request};
use admin::models::RestingKey;
use admin::status::{InstanceStatus, ServingStatus};
use gate::Gate;
use gate::approval::{Answer, Channel, Choice, Outcome};
use gate::journal::{Level, Record, System, SystemEvent};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use crate::instance_state::InstanceState;
use crate::reload::Handle;

/// How long accepting pauses after it failed (no descriptors left), in milliseconds.
const ACCEPT_PAUSE_MS: u64 = 250;

/// What the instance tells of itself.
#[derive(Debug)]
pub struct Control {
    /// The door.
    pub gate: Arc<Gate>,
    /// The server that is guarded.
    pub server: String,
    /// Where its state is.
    pub state_dir: String,
    /// Our user, who is whoever may connect.
    pub user: String,
    /// When the instance started, UTC.
    pub since: String,
    /// Who takes up what has changed.
    pub reload: Handle,
    /// What is reported of it beside its calls.
    pub state: InstanceState,
    /// What there is beside that, where there is more than one server.
    pub serving: Option<Serving>,
}

/// Most keys of model providers that are listed as resting.
const RESTING_MAX: usize = 256;

/// What `durward serve` tells of itself.
pub struct Serving {
    /// Where clients reach it.
    pub address: String,
    /// Sessions and server processes now.
    pub counts: Box<dyn Fn() -> (usize, usize) + Send + Sync>,
    /// Keys of model providers that rest, by provider.
    pub resting_keys: Box<dyn Fn() -> Vec<(String, Vec<models::RestingKey>)> + Send + Sync>,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Listens until it is dropped. Every connection is served beside the calls, never before them.
pub async fn serve(listener: std::os::unix::net::UnixListener, control: Arc<Control>) {
    let Ok(listener) = listener
        .set_nonblocking(true)
        .and_then(|()| UnixListener::from_std(listener))
    else {
        tracing::error!("cannot listen on the control socket; nobody can approve calls");
        return;
    };
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let seat = Seat::take(&open);
                tokio::spawn(connection(stream, seat, Arc::clone(&control)));
            }
            Err(error) => {
                tracing::warn!("control socket: {error}");
                tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            }
        }
    }
}

/// One of the places for connections; free again when dropped.
struct Seat {
    open: Arc<AtomicUsize>,
    number: usize,
}

impl Seat {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        Self {
            number: open.fetch_add(1, Ordering::Relaxed),
            open: Arc::clone(open),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The two halves of a connection.
struct Peer {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

async fn connection(stream: UnixStream, seat: Seat, control: Arc<Control>) {
    let user = stream.peer_cred().map(|peer| peer.uid());
    let (reader, writer) = stream.into_split();
    let mut peer = Peer {
        reader: BufReader::new(reader),
        writer,
    };
    // A peer that went away is told nothing.
    let _ = match user {
        Ok(user) if user == rustix::process::geteuid().as_raw() => {
            if seat.number < CONNECTIONS_MAX {
                peer.serve(&control).await
            } else {
                peer.say(&refused("busy", "too many connections; try again"))
                    .await
            }
        }
        Ok(user) => {
            tracing::warn!(
                user,
                "a process of another user was refused at the control socket"
            );
            let message = "only processes of the same user may use the control socket";
            peer.say(&refused("another_user", message)).await
        }
        Err(error) => Err(error),
    };
}

impl Peer {
    async fn serve(&mut self, control: &Control) -> io::Result<()> {
        loop {
            let idle = Duration::from_millis(IDLE_MS_MAX);
            let Ok(line) = tokio::time::timeout(idle, self.line()).await else {
                return Ok(());
            };
            let request = match line? {
                None => return Ok(()),
                Some(line) => serde_json::from_slice::<Request>(&line),
            };
            let answer = match request {
                Ok(Request::WatchApprovals) => return self.watch(control).await,
                Ok(Request::Approvals) => {
                    let waiting = control.gate.approvals().list();
                    for question in &waiting {
                        self.say(&item(&json!(question))).await?;
                    }
                    ok(&json!({ "waiting": waiting.len() }))
                }
                Ok(Request::Grants) => {
                    let grants = control.gate.approvals().granted_calls();
                    for grant in &grants {
                        self.say(&item(&json!(grant))).await?;
                    }
                    ok(&json!({ "grants": grants.len() }))
                }
                Ok(Request::Reload) => match control.reload.ask().await {
                    Ok(in_force) => ok(&in_force),
                    Err(message) => refused("not_reloaded", &message),
                },
                Ok(request) => control.answer(request),
                Err(error) => refused("bad_request", &error.to_string()),
            };
            self.say(&answer).await?;
        }
    }

    /// The next line; `None` at the end. A line beyond the bound is answered and ends the connection.
    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let bytes_max = REQUEST_BYTES_MAX as u64 + 1;
        (&mut self.reader)
            .take(bytes_max)
            .read_until(b'\n', &mut line)
            .await?;
        if line.len() > REQUEST_BYTES_MAX {
            self.say(&refused("too_long", "a request has at most 64 KiB"))
                .await?;
            return Ok(None);
        }
        Ok((!line.is_empty()).then_some(line))
    }

    async fn say(&mut self, answer: &Value) -> io::Result<()> {
        let mut line = answer.to_string().into_bytes();
        line.push(b'\n');
        let idle = Duration::from_millis(IDLE_MS_MAX);
        tokio::time::timeout(idle, self.writer.write_all(&line)).await?
    }

    /// Tells of every question that comes and every one that ends, until the peer closes.
    async fn watch(&mut self, control: &Control) -> io::Result<()> {
        let approvals = control.gate.approvals();
        let mut shown: HashSet<String> = HashSet::new();
        let mut reloads = control.state.reloads.subscribe();
        reloads.mark_changed();
        loop {
            if reloads.has_changed().unwrap_or(false) {
                let status = reloads.borrow_and_update().clone();
                if status
                    .failure()
                    .is_some_and(|failure| !failure.is_announced_elsewhere)
                {
                    self.say(&item(&json!({ "reload_failed": status.outcome() })))
                        .await?;
                }
            }
            let seen = approvals.version();
            let waiting = approvals.list();
            for question in &waiting {
                if shown.insert(question.id.clone()) {
                    self.say(&item(&json!({ "asked": question }))).await?;
                }
            }
            let ended: Vec<String> = shown
                .iter()
                .filter(|id| !waiting.iter().any(|q| q.id == **id))
                .cloned()
                .collect();
            for id in ended {
                shown.remove(&id);
                let how = approvals.outcome(&id).unwrap_or(Outcome::TimedOut);
                let ended = json!({ "ended": { "id": id, "outcome": how.to_string() } });
                self.say(&item(&ended)).await?;
            }
            tokio::select! {
                _ = approvals.changed(seen) => {}
                _ = reloads.changed() => reloads.mark_changed(),
                byte = self.reader.read_u8() => return byte.map(|_| ()),
            }
        }
    }
}

/// An answer that ends a request.
fn ok(value: &Value) -> Value {
    json!({ "ok": value })
}

/// An answer that refuses a request: a closed label and a sentence.
fn refused(label: &str, message: &str) -> Value {
    json!({ "error": { "label": label, "message": message } })
}

/// One of several parts of an answer.
fn item(value: &Value) -> Value {
    json!({ "item": value })
}

/// Returns the keys of model providers that rest. No key is among them: each is named by its place in the configuration.
fn resting(all: Vec<(String, Vec<models::RestingKey>)>) -> Vec<RestingKey> {
    let of_provider = |(provider, keys): (String, Vec<models::RestingKey>)| {
        let key = move |own: models::RestingKey| RestingKey {
            provider: Some(provider.clone()),
            key: own.number,
            model: own.model,
            reason: Some(own.why.label().to_owned()),
            left_s: own.left_ms.div_ceil(1_000),
        };
        keys.into_iter().map(key)
    };
    all.into_iter()
        .flat_map(of_provider)
        .take(RESTING_MAX)
        .collect()
}

impl Control {
    /// Answers what needs one line.
    fn answer(&self, request: Request) -> Value {
        match request {
            Request::Status => {
                let approvals = self.gate.approvals();
                let serving = self.serving.as_ref().map(|serving| {
                    let (sessions, processes) = (serving.counts)();
                    ServingStatus {
                        address: Some(serving.address.clone()),
                        sessions,
                        processes,
                        resting_keys: resting((serving.resting_keys)()),
                    }
                });
                let world = self.gate.world();
                let mut status = InstanceStatus {
                    server: Some(self.server.clone()),
                    serving,
                    state_dir: Some(self.state_dir.clone()),
                    pid: std::process::id(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    since: self.since.clone(),
                    policy_version: Some(world.version.clone()),
                    policy_digest: world.policy.digest().to_owned(),
                    approvals_waiting: approvals.waiting() as u64,
                    approvals_remembered: approvals.grants() as u64,
                    healthy: !self.gate.has_failed() && self.state.detail().is_none(),
                    ..InstanceStatus::default()
                };
                self.state.add_to(&mut status);
                ok(&json!(status))
            }
            Request::Answer {
                id,
                answer,
                reason,
                unseen,
            } => self.decide(&id, &answer, reason, unseen),
            // These have more than one line, or have to wait; whoever reads the requests answers them.
            Request::Forget { id } => self.forget(id.as_deref()),
            Request::Approvals | Request::WatchApprovals | Request::Grants | Request::Reload => {
                refused("bad_request", "not here")
            }
        }
    }

    /// Ends grants and records that in the journal.
    fn forget(&self, id: Option<&str>) -> Value {
        let approvals = self.gate.approvals();
        let forgotten = match id {
            Some(id) => approvals.forget_grant(id),
            None => approvals.forget(),
        };
        if forgotten > 0 {
            let message = match id {
                Some(id) => format!("the grant {id}, by {}", self.user),
                None => format!("all {forgotten} grants, by {}", self.user),
            };
            let record = System {
                level: Some(Level::Info),
                backend_id: Some(&self.server),
                message: Some(&message),
                ..System::of(SystemEvent::ApprovalsForgotten)
            };
            // A journal that fails here fails the gate: no call passes without a question either.
            if let Err(error) = self.gate.record(&Record::System(&record)) {
                tracing::error!(reason = error.label(), "{error}");
            }
        }
        ok(&json!(ForgottenGrants {
            forgotten: forgotten as u64
        }))
    }

    fn decide(&self, id: &str, answer: &str, reason: Option<String>, unseen: bool) -> Value {
        let Some(choice) = Choice::parse(answer) else {
            return refused(
                "bad_request",
                "the answer is not one of allow, session, once, deny",
            );
        };
        let answer = Answer {
            choice,
            channel: Channel::Cli,
            approver: self.user.clone(),
            reason,
            unseen,
        };
        match self.gate.approvals().answer(id, answer) {
            Ok(question) => {
                let remembers = matches!(choice, Choice::Allow | Choice::Session);
                let remembered = remembers && question.can_cache;
                ok(&json!({ "question": question, "remembered": remembered }))
            }
            Err(declined) => refused(declined.label(), &declined.to_string()),
        }
    }
}
