//! Servers that speak the transport of 2024-11-05: a stream of events that names the address for messages.

use std::time::Duration;

use net::outbound::http::StatusCode;

use super::open::stream_of;
use super::session::HttpSession;

/// How long such a server may take to say so, in milliseconds.
const LOOK_MS_MAX: u64 = 2_000;

/// What to say of one.
pub(super) const ADVICE: &str = "the server uses the HTTP with SSE transport of 2024-11-05, which is not supported; give the URL of its Streamable HTTP endpoint, which often ends in /mcp";

/// Whether a server that takes no opening message by POST begins the older transport's stream (the specification's
/// *Backwards Compatibility*).
pub(super) async fn is_spoken(session: &HttpSession, status: StatusCode) -> bool {
    let hints = [
        StatusCode::BAD_REQUEST,
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
    ];
    if !hints.contains(&status) {
        return false;
    }
    let look = async {
        let reply = session.get(None).await.ok()?;
        let mut events = stream_of(session, reply).ok()?;
        events.first_name().await
    };
    let first = tokio::time::timeout(Duration::from_millis(LOOK_MS_MAX), look).await;
    matches!(first, Ok(Some(name)) if name == b"endpoint")
}
