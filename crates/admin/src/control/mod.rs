//! The control socket: how other processes of the same user see and steer a running instance.
//!
//! Each instance listens at `NAME-PID.sock` in the runtime directory; no manager has to be alive. One
//! JSON object a line in both directions. A request has one answer, `{"ok":…}` or `{"error":…}`; lists
//! and watching send `{"item":…}` lines before it. Only processes of the same user are heard: they are
//! inside the trust boundary, because they could as well have started the instance themselves.

pub mod client;
pub mod directory;

use serde::{Deserialize, Serialize};

/// Longest request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Longest line of an answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Most connections to one instance at once.
pub const CONNECTIONS_MAX: usize = 16;
/// How long a connection may say nothing, and may take to read an answer, in milliseconds. Watching
/// has no such end.
pub const IDLE_MS_MAX: u64 = 5_000;

/// Request to an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Its state.
    Status,
    /// Reads policy and configuration again.
    Reload,
    /// The calls that wait for approval, one item each.
    Approvals,
    /// The same, and then events: items with `asked`, `ended` or `reload_failed`.
    WatchApprovals,
    /// The calls that are allowed for a while, one item each.
    Grants,
    /// Ends grants.
    Forget {
        /// Id of the answered question; all grants if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Answers a waiting call.
    Answer {
        /// The call, or the beginning of its id.
        id: String,
        /// `allow`, `once` or `deny`.
        answer: String,
        /// Why, for the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The yes knows that not all of the call was shown.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unseen: bool,
    },
}
