//! The life of a call: described, judged, sent to one target after the other, and settled.

mod admit;
mod attempt;
mod cached;
mod describe;
mod estimate;
mod note;
mod reader;
mod relay;
mod routed;
mod whole;

use std::borrow::Cow;
use std::sync::Arc;

use dialects::Tokens;
use gate::Gate;
use gate::journal::{OpId, Usage};
use tokio::time::Instant;

use crate::budget::Budgets;
use crate::cache::ResponseCache;
use crate::prices::Prices;
use crate::provider::{Fault, Trouble};
use crate::tally::Tally;
use state::Underway;
use state::counter::RemainingBudgets;

pub(crate) use admit::{Admitted, admit, may_ask, origin};
pub(crate) use attempt::{Served, serve};
pub(crate) use cached::{answer, find_cached};
pub(crate) use describe::{describe, of_target};
pub(crate) use estimate::{ESTIMATED, estimate, is_estimated};
pub use note::settle_left;
pub(crate) use relay::{Relay, Settlement};
pub use routed::RoutedRequest;
pub(crate) use routed::{CallBounds, CallError, CallSource};
pub(crate) use whole::Whole;

/// What bounds a call and what it is judged by.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub gate: Arc<Gate>,
    /// The longest reply that is not streamed, and the longest event, in bytes.
    pub reply_bytes_max: usize,
    /// How long a reply may say nothing once it has begun, in milliseconds.
    pub stall_ms_max: u64,
    /// How long a stream may last, in milliseconds.
    pub stream_ms_max: u64,
    /// The end of the call that its caller has set; `None` for those of clients.
    pub deadline: Option<Instant>,
    /// How much callers may use, where that is bounded.
    pub budgets: Option<Budgets>,
    pub tally: Arc<Tally>,
    pub prices: Arc<Prices>,
    /// Cache of replies; `None` unless it is configured.
    pub cache: Option<Arc<ResponseCache>>,
    /// Where streams are noted while they last.
    pub underway: Option<Arc<Underway>>,
}

/// How a call was served, for headers and records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trail {
    /// The operation in the journal.
    pub op: Option<OpId>,
    /// What the call has used, as its record has it; of a stream [`Settlement`] has it.
    pub usage: Usage,
    /// `PROVIDER/MODEL` of the target that answers, or that was tried last.
    pub target: String,
    /// The reply is from the cache.
    pub is_cached: bool,
    /// How many targets and keys were tried.
    pub attempts: u32,
    /// Targets that were passed over because they are spared.
    pub spared: u32,
    /// Remaining amounts of the tightest budgets of the caller.
    pub remaining: RemainingBudgets,
    /// Hints of the request that the target was not told of.
    pub left_out: Vec<Cow<'static, str>>,
    /// What the reply has cost, in millionths of a dollar, where that is known already.
    pub cost: Option<u64>,
}

/// A call that no target has served.
#[derive(Debug)]
pub(crate) struct Unserved {
    pub fault: Fault,
    pub trail: Trail,
}

/// What was used as the journal has it.
fn usage(tokens: Tokens, cost: Option<u64>) -> Usage {
    Usage {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cached_tokens: tokens.cached,
        written_tokens: tokens.written,
        reasoning_tokens: tokens.reasoning,
        counted_tokens: tokens.counted,
        cost_micros: cost,
    }
}

/// The earlier of two times, and what it means that it has come.
fn earlier(a: (Instant, Trouble), b: (Instant, Trouble)) -> (Instant, Trouble) {
    if b.0 < a.0 { b } else { a }
}
