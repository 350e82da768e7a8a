//! What can go wrong between us and an HTTP server.

use std::error::Error;
use std::fmt;
use std::io;

/// Why a request has no reply, or a reply no end.
#[derive(Debug)]
pub enum HttpFault {
    /// Nobody listens there, or the name is not known.
    Unreachable(io::Error),
    /// Connecting took too long.
    ConnectTimeout,
    /// No secure connection: a certificate that does not hold, or one of ours that is asked for.
    Tls(String),
    /// All connections are in use and none became free in time.
    Busy,
    /// The connection ended before anything of the request was written.
    NotSent,
    /// The head of the reply took too long.
    HeadTimeout,
    /// The head of the reply is longer than the bound, or has more than 100 headers.
    HeadTooLong,
    /// The body is longer than the bound.
    BodyTooLong,
    /// What came is not HTTP/1.1.
    Malformed,
    /// The connection ended in the middle.
    Broken,
}

impl HttpFault {
    /// Whether the server may have seen the request.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::ConnectTimeout | Self::Busy | Self::NotSent => false,
            // TLS 1.3 tells a client of a refused certificate only after its first request; the
            // server has not read it, but one that speaks TLS badly may have.
            Self::Tls(_)
            | Self::HeadTimeout
            | Self::HeadTooLong
            | Self::BodyTooLong
            | Self::Malformed
            | Self::Broken => true,
        }
    }

    /// Reads what the HTTP library says.
    pub(super) fn of(error: &hyper::Error) -> Self {
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(cause) = source {
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Self::Tls(tls.to_string());
            }
            if let Some(tls) = cause.downcast_ref::<io::Error>().and_then(tls_error) {
                return tls;
            }
            source = cause.source();
        }
        if error.is_parse_too_large() {
            Self::HeadTooLong
        } else if error.is_parse() {
            Self::Malformed
        } else {
            Self::Broken
        }
    }

    /// Reads what connecting says.
    pub(super) fn of_connecting(error: io::Error) -> Self {
        tls_error(&error).unwrap_or(Self::Unreachable(error))
    }
}

fn tls_error(error: &io::Error) -> Option<HttpFault> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(HttpFault::Tls(inner.to_string()))
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "cannot connect: {error}"),
            Self::ConnectTimeout => f.write_str("connecting took too long"),
            Self::Tls(error) => write!(f, "no secure connection: {error}"),
            Self::Busy => f.write_str("all connections are in use"),
            Self::NotSent => f.write_str("the connection ended before the request was sent"),
            Self::HeadTimeout => f.write_str("the reply took too long"),
            Self::HeadTooLong => f.write_str("the head of the reply is too long"),
            Self::BodyTooLong => f.write_str("the reply is too long"),
            Self::Malformed => f.write_str("the reply is not HTTP/1.1"),
            Self::Broken => f.write_str("the connection ended in the middle of the reply"),
        }
    }
}

impl Error for HttpFault {}
