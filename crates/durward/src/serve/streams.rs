//! `durward run` without the name of a server: all servers of the configuration, in front of the one client of our
//! standard streams.

use std::io::Write;
use std::sync::Arc;

use gate::{Caller, Gate};
use mcp::http::StreamsOptions;
use mcp::stdio::Ending;
use tokio::sync::Notify;

use super::plan::Plan;
use super::ready::Ready;
use super::signals::Signals;
use super::{Clients, ServeArgs, Serving, code_of, serve};
use crate::config::{self, Settings};
use crate::failure::Failure;
use crate::flags::Given;
use crate::notices::Notices;
use crate::places::Places;
use crate::sign_in::{self, SignedIn};

/// How long calls under way may take to end, in milliseconds.
const DRAIN_MS: u64 = 10_000;

/// Guards all servers for the client of our own standard streams; gives the exit code.
pub fn all(
    args: &ServeArgs,
    given: &Given,
    source: config::Source,
    mut settings: Settings,
    places: &Places,
    err: &mut dyn Write,
) -> u8 {
    settings.set_policy(args.policy.as_deref(), given.policy);
    let done = Ready::of(args, &settings, places)
        .map(Ready::without_models)
        .inspect(|ready| ready.warn(err))
        .and_then(|ready| {
            let clients = Clients::Streams;
            serve(
                (args, given, source),
                &settings,
                ready,
                places,
                (clients, err),
            )
        });
    code_of(done, err)
}

impl Serving {
    /// Serves the client of our own standard streams until either side ends.
    pub(super) async fn speak(
        self,
        plan: &Plan,
        session: String,
        keys: Notices,
        (places, signed_in): (&Places, Option<SignedIn>),
    ) -> Result<Vec<Arc<Gate>>, Failure> {
        let client = net::stdio::own()
            .map_err(|e| Failure::other(format!("standard streams cannot be used: {e}")))?;
        self.record_start(plan, "serving standard streams")?;
        let failed = Arc::new(Notify::new());
        let looking_after = tokio::spawn(self.look_after(keys, failed));
        let signals = Signals::listen()?;
        let caller = signed_in.as_ref().map(|own| own.caller.clone());
        let options = StreamsOptions {
            caller: caller.unwrap_or_else(|| Caller::local(&places.user)),
            session_id: session.into(),
            drain_ms: DRAIN_MS,
        };
        let ended = tokio::select! {
            ended = self.face.speak(client, options, signals.asked(1)) => {
                ended.map_err(|e| Failure::other(e.to_string()))
            }
            failure = sign_in::end_of(signed_in.as_ref()) => Err(failure),
        };
        looking_after.abort();
        self.face.close().await;
        let ended = ended?;
        tracing::debug!(reason = ended.why().label(), "the session has ended");
        match ended {
            Ending::ServerEnded(how) => Err(Failure::other(how)),
            Ending::ClientClosed | Ending::Signal | Ending::JournalFailed => Ok(self.gates),
        }
    }
}
