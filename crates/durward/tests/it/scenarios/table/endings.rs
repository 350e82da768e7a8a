//! Calls that end otherwise than by an answer.

use super::super::row::Step::{Cancel, JournalHas, Receive, Send, ServerHas, Vanish};
use super::super::row::{Column, Except, PLAIN, Row};
use super::frames::{
    AFTER, AFTER_ARRIVED, AFTER_ECHOED, ALLOW, ALLOWED, ALLOWED_AFTER, CALL, CALL_ARRIVED,
    CANCELLED, NEVER_DIES, SUCCESS_AFTER, WAITS,
};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "cancel",
        about: "a call that the client cancels is cancelled at the server, and the next call works",
        policy: ALLOW,
        server: &["hostile", "--behaviour", "never"],
        script: &[
            Send(CALL),
            ServerHas("tools/call"),
            Cancel("7"),
            JournalHas("status", "Cancelled"),
            Send(AFTER),
            Receive(1),
        ],
        client: &[AFTER_ECHOED],
        server_got: &[
            CALL_ARRIVED,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            AFTER_ARRIVED,
        ],
        journal: &[ALLOWED, CANCELLED, ALLOWED_AFTER, SUCCESS_AFTER],
        except: &[
            Except {
                cells: "http/legacy/*",
                column: Column::Server,
                expect: &[
                    CALL_ARRIVED,
                    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":OURS,"reason":"the client cancelled"}}"#,
                    AFTER_ARRIVED,
                ],
                why: "the number of the request is ours, so the notification is too",
            },
            Except {
                cells: "http/modern/child",
                column: Column::Server,
                expect: &[
                    CALL_ARRIVED,
                    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":OURS,"reason":"the client went away"}}"#,
                    AFTER_ARRIVED,
                ],
                why: "a Modern client over HTTP cancels by closing the stream of its call",
            },
            Except {
                cells: "*/modern/http",
                column: Column::Server,
                expect: &[CALL_ARRIVED, AFTER_ARRIVED],
                why: "a Modern server over HTTP is told by the end of the connection",
            },
            Except {
                cells: "http/legacy/*",
                column: Column::Status,
                expect: &["202", "202", "200"],
                why: "a call that was cancelled has no answer",
            },
            Except {
                cells: "http/modern/*",
                column: Column::Status,
                expect: &["none", "200"],
                why: "the client closed the connection of its call",
            },
        ],
        inside: WAITS,
        ..PLAIN
    },
    Row {
        name: "timeout",
        about: "a call that the server does not answer in time is answered for it and cancelled there, and the next call works",
        policy: ALLOW,
        server: &["hostile", "--behaviour", "never"],
        flags: &["--call-timeout", "1"],
        script: &[Send(CALL), Receive(1), Send(AFTER), Receive(1)],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the server did not answer in time; what it has done is not known","data":{"reason":"upstream_timeout","retryable":false}}}"#,
            AFTER_ECHOED,
        ],
        server_got: &[
            CALL_ARRIVED,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{id:7},"reason":"timeout"}}"#,
            AFTER_ARRIVED,
        ],
        journal: &[
            ALLOWED,
            "operation 1 status=Failure reason=upstream_timeout method=tools/call tool_name=echo request_id=7 error_code=-32603",
            ALLOWED_AFTER,
            SUCCESS_AFTER,
        ],
        except: &[Except {
            cells: "*/modern/http",
            column: Column::Server,
            expect: &[CALL_ARRIVED, AFTER_ARRIVED],
            why: "a Modern server over HTTP is told by the end of the connection",
        }],
        inside: WAITS,
        ..PLAIN
    },
    Row {
        name: "server_dies",
        about: "the call that a server dies of is answered for it",
        policy: ALLOW,
        server: &["hostile", "--behaviour", "die"],
        script: &[Send(CALL), Receive(1)],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the server ended before it answered; what it had done by then is not known","data":{"reason":"upstream_died","retryable":false}}}"#,
        ],
        server_got: &[CALL_ARRIVED],
        journal: &[
            ALLOWED,
            "operation 1 status=Failure reason=upstream_died method=tools/call tool_name=echo request_id=7 error_code=-32603",
        ],
        except: &[
            Except {
                cells: "*/*/http",
                column: Column::Client,
                expect: &[
                    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the connection broke before the server answered; what it has done is not known","data":{"reason":"upstream_broken","retryable":false}}}"#,
                ],
                why: "over HTTP only the end of the connection is seen",
            },
            Except {
                cells: "*/*/http",
                column: Column::Journal,
                expect: &[
                    ALLOWED,
                    "operation 1 status=Failure reason=upstream_broken method=tools/call tool_name=echo request_id=7 error_code=-32603",
                ],
                why: "over HTTP only the end of the connection is seen",
            },
            Except {
                cells: "stdio/*/child",
                column: Column::Exit,
                expect: &["1"],
                why: "`run` ends with the process that it guards, and says so",
            },
        ],
        lacks: &[NEVER_DIES],
        ..PLAIN
    },
    Row {
        name: "client_dies",
        about: "the call of a client that is gone is over, and so recorded",
        policy: ALLOW,
        server: &["hostile", "--behaviour", "never"],
        script: &[Send(CALL), ServerHas("tools/call"), Vanish],
        server_got: &[CALL_ARRIVED],
        journal: &[ALLOWED, CANCELLED],
        except: &[
            Except {
                cells: "http/legacy/*",
                column: Column::Server,
                expect: &[
                    CALL_ARRIVED,
                    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":OURS,"reason":"the session has ended"}}"#,
                ],
                why: "a session outlives its connections; when it ends, a server that others may use is told",
            },
            Except {
                cells: "http/modern/child",
                column: Column::Server,
                expect: &[
                    CALL_ARRIVED,
                    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":OURS,"reason":"the client went away"}}"#,
                ],
                why: "a server that others may use is told",
            },
            Except {
                cells: "http/*/*",
                column: Column::Status,
                expect: &["none"],
                why: "the client closed the connection of its call",
            },
        ],
        inside: WAITS,
        ..PLAIN
    },
];
