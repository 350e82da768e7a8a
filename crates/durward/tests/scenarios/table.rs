//! The table. A frame stands as it goes over the wire; `frames::fill` says what the braces mean.

use super::row::Step::{
    Answer, Cancel, JournalHas, Person, Receive, Reload, Send, ServerHas, Vanish,
};
use super::row::{Column, Except, Lack, PLAIN, Row};

/// Every row, in the order of the printed table.
pub fn rows() -> &'static [Row] {
    ROWS
}

/// Every tool passes.
const ALLOW: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
/// A person is asked about every call.
const ASK: &str = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}}]}"#;
/// The client's own person is asked about every call.
const ASK_CLIENT: &str = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"},"approvers":["client"]}]}"#;
/// Tools pass, and what servers ask of clients.
const ALLOW_QUESTIONS: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},{"id":"questions","effect":"allow","conditions":{"mcp_method":["elicitation/create","sampling/createMessage","roots/list"]}}]}"#;
/// Tools pass; what servers ask of clients does not.
const DENY_QUESTIONS: &str = r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},{"id":"no-questions","effect":"deny","conditions":{"mcp_method":["elicitation/create","sampling/createMessage","roots/list"]}}]}"#;

/// The call that most rows make.
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta}}}"#;
/// The same as the server gets it.
const CALL_ARRIVED: &str = r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta}}}"#;
/// Its answer.
const ECHOED: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"x"}],"isError":false{done}}}"#;

const NO_MODERN_BATCH: &[Lack] = &[Lack {
    cells: "*/modern/*",
    why: "2026-07-28 has no batches",
}];
const NO_MODERN_ELICITATION: &[Lack] = &[Lack {
    cells: "*/modern/*",
    why: "2026-07-28 has no requests to clients; the client is asked by input_required",
}];
const NO_LEGACY_INPUT_REQUIRED: &[Lack] = &[Lack {
    cells: "*/legacy/*",
    why: "revisions before 2026-07-28 have no input_required; the client is asked by a request",
}];

const ROWS: &[Row] = &[
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
        client: &[
            r#"{"jsonrpc":"2.0","id":7.0,"result":{"content":[{"type":"text","text":"x\u0041"}],"isError":false{done}}}"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7.0},"method":"tools/call","params":{"name":"echo","arguments":{"text":"x\u0041"}{meta}}}"#,
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
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32001,"message":"refused by the policy: rule \"no-echo\" denies this call","data":{"decision":"deny","final_rule":"no-echo","matched_rules":["tools","no-echo"],"path":null,"reason":"denied_by_rule","retryable":false,"tool_name":"echo"}}}"#,
        ],
        journal: &[
            r#"decision 1 decision=deny final_rule=no-echo reason=denied_by_rule mcp_method=tools/call tool_name=echo direction=to_server request_id="a" resource_type=tool"#,
        ],
        ..PLAIN
    },
];
