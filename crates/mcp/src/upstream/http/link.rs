//! Makes frames of exchanges, for a session that reads frames: one task an exchange, one queue.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use gate::PeerId;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use wire::Era;
use wire::id::IdKey;

use super::outline::Outline;
use super::{Exchange, HttpSession, Incoming};
use crate::frames::Failure;
use crate::upstream::{Arrival, Frame};

/// Most frames of the server that wait to be read; further ones wait in their connections.
const QUEUE_FRAMES_MAX: usize = 16;
/// Most messages under way; the client is not read while there are more.
const TASKS_MAX: usize = 1_280;

/// One client's way to a server over HTTP.
pub struct Link {
    session: Arc<HttpSession>,
    tasks: JoinSet<()>,
    /// Calls under way, so that they can be given up.
    calls: HashMap<IdKey, AbortHandle>,
    sender: mpsc::Sender<Came>,
    receiver: mpsc::Receiver<Came>,
    ready: VecDeque<Came>,
    /// The frame that was given out last.
    current: Vec<u8>,
    /// False while the server may not have been told that the session is initialised: messages that
    /// overtook that one would be refused.
    initialized: watch::Sender<bool>,
}

/// What the tasks tell the session.
enum Came {
    Frame(Vec<u8>),
    Failed(String, Failure),
    Odd(&'static str, String),
    Ended(IdKey, tokio::task::Id),
}

impl Link {
    /// A way to the server of `session`.
    #[must_use]
    pub fn new(session: Arc<HttpSession>) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_FRAMES_MAX);
        Self {
            session,
            tasks: JoinSet::new(),
            calls: HashMap::new(),
            sender,
            receiver,
            ready: VecDeque::new(),
            current: Vec::new(),
            initialized: watch::Sender::new(true),
        }
    }

    /// The name that passes for its server are made out to.
    pub(in crate::upstream) fn id(&self) -> &PeerId {
        self.session.id()
    }

    pub(in crate::upstream) fn send(&mut self, frame: Frame) {
        while self.tasks.try_join_next().is_some() {}
        let outline = Outline::of(&frame.0);
        if let Some(key) = &outline.cancels {
            if let Some(call) = self.calls.remove(key) {
                call.abort();
            }
            if self.session.era() == Some(Era::Modern) {
                // There, the closed stream is the cancellation.
                return;
            }
        }
        let key = outline.id.as_ref().map(|(_, key)| key.clone());
        let opens = outline.method == "notifications/initialized";
        let exchange = self.session.outlined(outline, frame);
        let task = Task {
            exchange,
            sender: self.sender.clone(),
            key: key.clone(),
        };
        if opens {
            self.initialized.send_replace(false);
            let (initialized, session) = (self.initialized.clone(), Arc::clone(&self.session));
            let sender = self.sender.clone();
            self.tasks.spawn(async move {
                task.run().await;
                initialized.send_replace(true);
                listen(session, sender).await;
            });
            return;
        }
        let mut initialized = self.initialized.subscribe();
        let call = self.tasks.spawn(async move {
            // Fails only where the link is gone, and the task with it.
            drop(initialized.wait_for(|done| *done).await);
            task.run().await;
        });
        if let Some(key) = key {
            self.calls.insert(key, call);
        }
    }

    /// Waits for something to come. Cancel-safe.
    pub(in crate::upstream) async fn fill(&mut self) -> io::Result<bool> {
        if let Some(came) = self.receiver.recv().await {
            self.ready.push_back(came);
        }
        while let Ok(came) = self.receiver.try_recv() {
            self.ready.push_back(came);
        }
        Ok(true)
    }

    pub(in crate::upstream) fn next(&mut self) -> Option<Arrival<'_>> {
        loop {
            match self.ready.pop_front()? {
                Came::Ended(key, task) => {
                    // A client may use an id again, for a call that is now another task.
                    if self.calls.get(&key).is_some_and(|call| call.id() == task) {
                        self.calls.remove(&key);
                    }
                }
                Came::Frame(frame) => {
                    self.current = frame;
                    return Some(Arrival::Frame(&self.current));
                }
                Came::Failed(id, failure) => return Some(Arrival::Failed(id, failure)),
                Came::Odd(event, message) => return Some(Arrival::Odd(event, message)),
            }
        }
    }

    pub(in crate::upstream) fn is_congested(&self) -> bool {
        self.tasks.len() >= TASKS_MAX
    }

    pub(in crate::upstream) fn tick(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.session.upstream.reap();
    }

    pub(in crate::upstream) async fn stop(&mut self) {
        self.tasks.shutdown().await;
        self.session.close().await;
    }
}

struct Task {
    exchange: Exchange,
    sender: mpsc::Sender<Came>,
    key: Option<IdKey>,
}

impl Task {
    /// Carries one exchange to its end. A sender that fails means that the link is gone.
    async fn run(self) {
        let Self {
            mut exchange,
            sender,
            key,
        } = self;
        while let Some(incoming) = exchange.next().await {
            let came = match incoming {
                Incoming::Message(frame) => Came::Frame(on_one_line(frame)),
                Incoming::Response(reply) => Came::Frame(on_one_line(reply.frame)),
                Incoming::Odd(event, message) => Came::Odd(event, message.to_owned()),
                Incoming::Failed(failure) => match exchange.id() {
                    Some(id) => Came::Failed(id.to_owned(), failure),
                    None => Came::Odd("client_message_lost", lost(&failure)),
                },
            };
            if sender.send(came).await.is_err() {
                return;
            }
        }
        if let Some(key) = key {
            drop(sender.send(Came::Ended(key, tokio::task::id())).await);
        }
        exchange.finish().await;
    }
}

/// What is said of a notification or answer that the server did not take.
pub(crate) fn lost(failure: &Failure) -> String {
    let mut text = format!(
        "a message without an id did not reach the server: {}",
        failure.fault.sentence()
    );
    if let Some(detail) = &failure.detail {
        text.push_str(": ");
        text.push_str(detail);
    }
    text
}

async fn listen(session: Arc<HttpSession>, sender: mpsc::Sender<Came>) {
    let (sink, mut frames) = mpsc::channel(1);
    let forward = async {
        while let Some(frame) = frames.recv().await {
            if sender.send(Came::Frame(on_one_line(frame))).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(session.listen(sink), forward);
}

/// A message that was written over several lines becomes one line: in JSON a line end is white space.
fn on_one_line(mut frame: Vec<u8>) -> Vec<u8> {
    for byte in &mut frame {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    frame
}
