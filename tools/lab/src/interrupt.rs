//! Ctrl-C: the measurement stops at the next call and writes what there is.

use crate::error::LabError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Whether an end was asked for, for those who wait for an answer: a signal comes to the whole process.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Returns whether an end was requested in this process.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Acquire)
}

/// Whether an end was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    /// Listens for SIGINT and SIGTERM from now on, on a thread of its own.
    pub(crate) fn listen() -> Result<Self, LabError> {
        let failed = |source| LabError::System {
            what: "listen for signals",
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(failed)?;
        let (mut interrupt, mut terminate) = {
            let _within = runtime.enter();
            (
                signal(SignalKind::interrupt()).map_err(failed)?,
                signal(SignalKind::terminate()).map_err(failed)?,
            )
        };
        let asked = Self::default();
        let flag = asked.clone();
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            flag.0.store(true, Ordering::Release);
            ASKED.store(true, Ordering::Release);
        });
        Ok(asked)
    }

    /// Returns whether an end was asked for.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
