//! Calls without an answer: they wait while others are measured.

use super::socket::ControlConnection;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long it may take until all of them wait, in milliseconds.
pub(super) const GATHER_MS_MAX: u64 = 5_000;
/// How often it is looked whether they do.
const GLANCE: Duration = Duration::from_millis(2);

/// Calls that wait at one variant.
#[derive(Debug)]
pub(crate) struct WaitingCalls {
    control: ControlConnection,
    calls: u64,
}

impl WaitingCalls {
    /// Waits, so long at most, until exactly so many calls wait.
    pub(super) fn begin(
        control: ControlConnection,
        calls: usize,
        gather_ms: u64,
    ) -> Result<Self, String> {
        let calls = calls as u64;
        let mut waiting = Self { control, calls };
        let since = Instant::now();
        loop {
            let found = waiting.count()?;
            if found == calls {
                return Ok(waiting);
            }
            if since.elapsed() >= Duration::from_millis(gather_ms) {
                return Err(format!(
                    "{found} calls wait for a person where {calls} should; does a rule ask about them, and do --approval-waiting-max and --approval-pending-max allow so many"
                ));
            }
            std::thread::park_timeout(GLANCE);
        }
    }

    /// Looks whether all of them still wait.
    pub(super) fn leave(mut self) -> Result<(), String> {
        // A connection that is silent for 5 s is closed; a launch may take longer.
        self.control = self.control.again()?;
        match self.count()? {
            found if found == self.calls => Ok(()),
            found => Err(format!(
                "{found} of {} calls still wait for a person at the end",
                self.calls
            )),
        }
    }

    fn count(&mut self) -> Result<u64, String> {
        self.control.send(&json!({ "do": "status" }))?;
        let status = self.control.answer()?;
        let waiting = status.get("approvals_waiting").and_then(Value::as_u64);
        waiting.ok_or_else(|| "it does not say how many calls wait for a person".into())
    }
}
