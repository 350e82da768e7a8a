//! Why a request over HTTP is refused before it is a call: a closed set.

use ::http::StatusCode;
use gate::closed_set;

closed_set! {
    /// What is wrong with a request, or missing for it; `data.reason` of the answer.
    pub enum Refused {
        ContentType "content_type": "the content type must be application/json";
        ContentEncoding "content_encoding": "the body is encoded; send it as it is, without Content-Encoding";
        Accept "accept": "the client must accept application/json and text/event-stream";
        MethodNotAllowed "method_not_allowed": "this address does not support the HTTP method";
        ServerUnknown "server_unknown": "no server has this name";
        KeyReachesNoServer "key_reaches_no_server": "this key is not valid for any server here; create one that is: durward keys create NAME --scope SERVER, or without --scope for all servers";
        SessionMissing "session_missing": "the header Mcp-Session-Id is missing; open a session with initialize";
        SessionUnreadable "session_unreadable": "the header Mcp-Session-Id cannot be read";
        SessionUnknown "session_unknown": "the session does not exist or has ended; open one with initialize";
        ProtocolVersion "protocol_version": "the header MCP-Protocol-Version does not name a revision with sessions";
        StreamTaken "stream_taken": "this session's stream is read by another connection";
        EventUnknown "event_unknown": "the event id does not belong to this session";
        TooManyStreams "too_many_streams": "too many streams are open in this session; try again when some have ended";
        TooManySessions "too_many_sessions": "too many sessions are open; try again when some have ended";
        NoRandomness "no_randomness": "no session id can be made";
    }
}

impl Refused {
    /// The status of the answer.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::ContentType | Self::ContentEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Accept => StatusCode::NOT_ACCEPTABLE,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::ServerUnknown | Self::SessionUnknown => StatusCode::NOT_FOUND,
            Self::KeyReachesNoServer => StatusCode::FORBIDDEN,
            Self::SessionMissing
            | Self::SessionUnreadable
            | Self::ProtocolVersion
            | Self::EventUnknown => StatusCode::BAD_REQUEST,
            Self::StreamTaken => StatusCode::CONFLICT,
            Self::TooManyStreams | Self::TooManySessions => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoRandomness => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The JSON-RPC code of the answer.
    #[must_use]
    pub fn code(self) -> i32 {
        if self.status().is_server_error() {
            -32603
        } else {
            -32600
        }
    }

    /// Whether the same request may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }
}
