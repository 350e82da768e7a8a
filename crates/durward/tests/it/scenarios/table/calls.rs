//! Calls as such: allowed, denied, with progress, and in batches.

use super::super::row::Step::{Receive, Send};
use super::super::row::{Column, Except, Lack, PLAIN, Row};
use super::frames::{AFTER, AFTER_ARRIVED, AFTER_ECHOED, ALLOW, ALLOWED, ECHOED, SUCCESS};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "allow",
        about: "a call that a rule allows reaches the server once, as it was written, and its answer comes back under the client's spelling of the id",
        policy: ALLOW,
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x\u0041"}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[r#"{"jsonrpc":"2.0","id":7.0,"result":{echoed:xA}}"#],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7.0},"method":"tools/call","params":{"name":"echo","arguments":{"text":"xA"}{meta}}}"#,
        ],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=echo direction=to_server request_id=7.0 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=echo request_id=7.0",
        ],
        ..PLAIN
    },
    Row {
        name: "deny",
        about: "a call that a rule denies never reaches the server, and the client is told the rule",
        policy: r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},{"id":"no-echo","effect":"deny","conditions":{"tool_name":"echo"}}]}"#,
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":"a","result":{refused|refused by the policy: rule \"no-echo\" denies this call. The same call will be refused again: do something else, or tell the user what you need and why.|"decision":"deny","final_rule":"no-echo","matched_rules":["tools","no-echo"],"path":null,"reason":"denied_by_rule","retryable":false,"tool_name":"echo"|}}"#,
        ],
        journal: &[
            r#"decision 1 decision=deny final_rule=no-echo reason=denied_by_rule mcp_method=tools/call tool_name=echo direction=to_server request_id="a" resource_type=tool"#,
        ],
        ..PLAIN
    },
    Row {
        name: "server_progress",
        about: "a server's progress reaches the client under the token that the client chose, before the answer",
        policy: ALLOW,
        server: &[
            "hostile",
            "--behaviour",
            "notify-flood",
            "--notifications",
            "2",
        ],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta+token}}}"#,
            ),
            Receive(3),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2}}"#,
            ECHOED,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta+sent}}}"#,
        ],
        journal: &[ALLOWED, SUCCESS],
        lacks: &[Lack {
            cells: "*/*/builtin",
            why: "the built-in server tells of its progress once a second: the row below",
        }],
        ..PLAIN
    },
    Row {
        name: "builtin_progress",
        about: "a built-in server's progress reaches the client under the token that the client chose, before the answer",
        policy: ALLOW,
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{"ms":1000}{meta+token}}}"#,
            ),
            Receive(2),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":1,"message":"waiting, in seconds"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{{inside}"content":[{"text":"{\"waited_ms\":N}","type":"text"}],{complete}"structuredContent":{"waited_ms":OURS}}}"#,
        ],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=wait direction=to_server request_id=7 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=wait request_id=7",
        ],
        lacks: &[
            Lack {
                cells: "*/*/child",
                why: "the mock's progress is the row above",
            },
            Lack {
                cells: "*/*/http",
                why: "the mock's progress is the row above",
            },
        ],
        ..PLAIN
    },
    Row {
        name: "batch",
        about: "each message of a batch is judged by itself, and one array answers all of its requests",
        policy: r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"echo"}}]}"#,
        legacy: "2025-03-26",
        script: &[
            Send(
                r#"[{"jsonrpc":"2.0","id":70,"method":"ping"},{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"echo","arguments":{"text":"one"}}},{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"silent"}}},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"sized","arguments":{"bytes":3}}}]"#,
            ),
            Receive(1),
        ],
        client: &[
            r#"[{"jsonrpc":"2.0","id":"b","result":{refused|refused by the policy: no rule allows this call. The same call will be refused again: do something else, or tell the user what you need and why.|"decision":"deny","final_rule":"default","matched_rules":[],"path":null,"reason":"no_rule_allows","retryable":false,"tool_name":"sized"|}},{"jsonrpc":"2.0","id":70,"result":{}},{"jsonrpc":"2.0","id":71,"result":{echoed:one}}]"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:70},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{id:71},"method":"tools/call","params":{"name":"echo","arguments":{"text":"one"}}}"#,
        ],
        journal: &[
            "decision decision=allow final_rule=tools mcp_method=tools/call tool_name=echo direction=to_server request_id=71 resource_type=tool",
            r#"decision decision=deny final_rule=default reason=no_rule_allows mcp_method=tools/call tool_name=sized direction=to_server request_id="b" resource_type=tool"#,
            "operation status=Success method=tools/call tool_name=echo request_id=71",
            "system client_notification_dropped message=a notification of an unknown kind was dropped",
        ],
        unordered: true,
        lacks: &[Lack {
            cells: "*/modern/*",
            why: "2026-07-28 has no batches",
        }],
        ..PLAIN
    },
    Row {
        name: "batch_refused",
        about: "a batch is refused as a whole where the revision has none, and the next call works",
        policy: ALLOW,
        script: &[
            Send(
                r#"[{"jsonrpc":"2.0","id":70,"method":"ping"},{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"echo","arguments":{"text":"one"}}},{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"silent"}}},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"sized","arguments":{"bytes":3}}}]"#,
            ),
            Receive(1),
            Send(AFTER),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the agreed protocol revision has no batches; send the messages one by one at byte 0","data":{"byte":0,"reason":"batch_not_allowed"}}}"#,
            AFTER_ECHOED,
        ],
        server_got: &[AFTER_ARRIVED],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=echo direction=to_server request_id=8 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=echo request_id=8",
            "system batch_not_allowed message=the agreed protocol revision has no batches; send the messages one by one",
        ],
        except: &[
            Except {
                cells: "*/legacy/*",
                column: Column::Client,
                expect: &[
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the session's protocol revision has no batches; send the messages one by one at byte 0","data":{"byte":0,"reason":"batch_not_allowed"}}}"#,
                    AFTER_ECHOED,
                ],
                why: "a session has a revision, which is what has no batches",
            },
            Except {
                cells: "*/legacy/*",
                column: Column::Journal,
                expect: &[
                    "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=echo direction=to_server request_id=8 resource_type=tool",
                    "operation 1 status=Success method=tools/call tool_name=echo request_id=8",
                    "system batch_not_allowed message=the session's protocol revision has no batches; send the messages one by one",
                ],
                why: "a session has a revision, which is what has no batches",
            },
            Except {
                cells: "http/*/*",
                column: Column::Status,
                expect: &["400", "200"],
                why: "a body that cannot be read is a bad request",
            },
        ],
        ..PLAIN
    },
];
