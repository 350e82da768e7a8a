//! An MCP server behind Streamable HTTP, in both eras.
//!
//! [`HttpUpstream`] is one server: its connections and bounds. [`HttpSession`] is one session with it.
//! [`Exchange`] is one message sent and all that comes back on it. [`Remote`] is what a link speaks to.

mod exchange;
mod listen;
mod older;
mod open;
mod outline;
mod probe;
mod remote;
mod renew;
mod session;
mod tools;

use std::sync::Mutex;

use net::outbound::http as outbound;

pub use exchange::{Exchange, Incoming};
pub(crate) use remote::Remote;
pub use session::HttpSession;

/// Bounds and identity of an HTTP client. Built by the binary, spent here.
pub type ClientOptions = outbound::HttpOptions;
/// What proves to the server who we are.
pub type Credential = outbound::Credential;
/// A checked URL.
pub type Target = outbound::Target;
/// Certificates and keys.
pub type TlsOptions = outbound::TlsOptions;
/// What is wrong with a URL.
pub type TargetFault = outbound::TargetFault;
/// Headers by name.
pub type Headers = outbound::HeaderMap;
/// The name of a header.
pub type HeaderName = outbound::HeaderName;
/// Why certificates or keys cannot be used.
pub type TlsFault = outbound::TlsFault;

/// Most bytes of an error's body that are read, to see whether it is a message.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long a short message may take to be accepted, in milliseconds.
const ASIDE_MS_MAX: u64 = 30_000;
/// How long a server that cannot be connected to is tried again, in milliseconds: a restart. Nothing
/// was sent then, so this is no second try of the call.
const RECONNECT_MS_MAX: u64 = 2_000;
/// First pause between two tries, in milliseconds; it doubles.
const RECONNECT_PAUSE_MS: u64 = 50;

/// One server.
#[derive(Debug)]
pub struct HttpUpstream {
    client: outbound::HttpClient,
    /// How long the head of a call's reply may take, in milliseconds.
    call_ms_max: u64,
    /// What is known of its tools, by whichever session.
    tools: Mutex<tools::Tools>,
}

impl HttpUpstream {
    /// A server at `target`. Nothing is opened yet.
    ///
    /// # Errors
    /// Where certificates or keys cannot be used.
    pub fn new(
        target: Target,
        options: &ClientOptions,
        call_ms_max: u64,
    ) -> Result<Self, TlsFault> {
        Ok(Self {
            client: outbound::HttpClient::new(target, options)?,
            call_ms_max,
            tools: Mutex::default(),
        })
    }

    /// Where it is, without what may be secret.
    #[must_use]
    pub fn place(&self) -> String {
        self.client.target().to_string()
    }

    /// To be called now and then: closes connections that were not used for long.
    pub fn reap(&self) {
        self.client.reap();
    }
}
