//! The signals that ask for the end: the first one to end in order, the second at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Failure;

/// How often the end was asked for.
pub struct Signals(watch::Receiver<u64>);

/// Listens to a kind of signal, which from then on does not end the process by itself.
pub fn listen_to(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|e| Failure::other(format!("no signals: {e}")))
}

impl Signals {
    /// Listens to SIGTERM and SIGINT.
    pub fn listen() -> Result<Self, Failure> {
        let mut terminate = listen_to(SignalKind::terminate())?;
        let mut interrupt = listen_to(SignalKind::interrupt())?;
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            while !sender.is_closed() {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                    () = sender.closed() => return,
                }
                sender.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(receiver))
    }

    /// Ready when the end has been asked for so often.
    pub fn asked(&self, times: u64) -> impl Future<Output = ()> + Send + use<> {
        let mut receiver = self.0.clone();
        async move {
            let asked = receiver.wait_for(|count| *count >= times).await.is_ok();
            if !asked {
                // Nobody listens any more, which asks for nothing.
                std::future::pending::<()>().await;
            }
        }
    }
}
