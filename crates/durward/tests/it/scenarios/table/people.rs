//! Calls that a person is asked about.

use super::super::row::Step::{Answer, Person, Receive, Send};
use super::super::row::{PLAIN, Row};
use super::frames::{
    ASK, ASK_CLIENT, CALL, CALL_ARRIVED, ECHOED, FORM, FORM_RESULT, NO_LEGACY_INPUT_REQUIRED,
    NO_MODERN_REQUESTS, READS, SUCCESS,
};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "hitl_person_allows",
        about: "a call that a person is asked about is sent once the person has said yes",
        policy: ASK,
        script: &[Send(CALL), Person("once"), Receive(1)],
        client: &[ECHOED],
        server_got: &[CALL_ARRIVED],
        journal: &[
            "decision 1 decision=hitl final_rule=ask mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=cli hitl_outcome=user_allowed resource_type=tool",
            SUCCESS,
        ],
        ..PLAIN
    },
    Row {
        name: "hitl_person_denies",
        about: "a call that a person has said no to never reaches the server",
        policy: ASK,
        script: &[Send(CALL), Person("deny"), Receive(1)],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{refused|refused: rule \"ask\" asks for a person's approval, and it was denied. Do not repeat this call unless the user asks for it.|"decision":"hitl","final_rule":"ask","matched_rules":["ask"],"path":null,"reason":"approval_denied","retryable":false,"tool_name":"echo"|}}"#,
        ],
        journal: &[
            "decision 1 decision=hitl final_rule=ask reason=approval_denied mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=cli hitl_outcome=user_denied resource_type=tool",
        ],
        ..PLAIN
    },
    Row {
        name: "hitl_progress",
        about: "a client whose call has a progress token hears that a person is being asked",
        policy: ASK,
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta+token}}}"#,
            ),
            Receive(1),
            Person("once"),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.000001,"message":"waiting for a person's approval, N s left; answer with: durward approvals watch"}}"#,
            ECHOED,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}{meta+sent}}}"#,
        ],
        journal: &[
            "decision 1 decision=hitl final_rule=ask mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=cli hitl_outcome=user_allowed resource_type=tool",
            SUCCESS,
        ],
        red_wait_s: 12,
        ..PLAIN
    },
    Row {
        name: "hitl_client_elicitation",
        about: "the client's own person is asked by elicitation, and says yes",
        policy: ASK_CLIENT,
        script: &[
            Send(CALL),
            Receive(1),
            Answer(r#"{"action":"accept","content":{"answer":"allow once"}}"#),
            Receive(1),
        ],
        client: &[FORM, ECHOED],
        server_got: &[CALL_ARRIVED],
        journal: &[
            "decision 1 decision=hitl final_rule=ask mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=client hitl_outcome=user_allowed resource_type=tool",
            SUCCESS,
        ],
        inside: READS,
        lacks: &[NO_MODERN_REQUESTS],
        ..PLAIN
    },
    Row {
        name: "hitl_client_elicitation_declined",
        about: "the client's own person is asked by elicitation, and declines",
        policy: ASK_CLIENT,
        script: &[
            Send(CALL),
            Receive(1),
            Answer(r#"{"action":"decline"}"#),
            Receive(1),
        ],
        client: &[
            FORM,
            r#"{"jsonrpc":"2.0","id":7,"result":{refused|refused: rule \"ask\" asks for a person's approval, and it was denied. Do not repeat this call unless the user asks for it.|"decision":"hitl","final_rule":"ask","matched_rules":["ask"],"path":null,"reason":"approval_denied","retryable":false,"tool_name":"echo"|}}"#,
        ],
        journal: &[
            "decision 1 decision=hitl final_rule=ask reason=approval_denied mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=client hitl_outcome=user_denied resource_type=tool",
        ],
        inside: READS,
        lacks: &[NO_MODERN_REQUESTS],
        ..PLAIN
    },
    Row {
        name: "hitl_client_input_required",
        about: "the client's own person is asked by input_required, and says yes",
        policy: ASK_CLIENT,
        script: &[
            Send(CALL),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"requestState":"{state}","inputResponses":{"durward_approval":{"action":"accept","content":{"answer":"allow once"}}}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            FORM_RESULT,
            r#"{"jsonrpc":"2.0","id":8,"result":{echoed:x}}"#,
        ],
        server_got: &[CALL_ARRIVED],
        journal: &[
            "decision 1 decision=hitl final_rule=ask mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=client hitl_outcome=user_allowed resource_type=tool",
            SUCCESS,
        ],
        inside: READS,
        lacks: &[NO_LEGACY_INPUT_REQUIRED],
        ..PLAIN
    },
    Row {
        name: "hitl_client_input_required_denied",
        about: "the client's own person is asked by input_required, and says no",
        policy: ASK_CLIENT,
        script: &[
            Send(CALL),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"requestState":"{state}","inputResponses":{"durward_approval":{"action":"accept","content":{"answer":"deny"}}}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            FORM_RESULT,
            r#"{"jsonrpc":"2.0","id":8,"result":{refused|refused: rule \"ask\" asks for a person's approval, and it was denied. Do not repeat this call unless the user asks for it.|"decision":"hitl","final_rule":"ask","matched_rules":["ask"],"path":null,"reason":"approval_denied","retryable":false,"tool_name":"echo"|}}"#,
        ],
        journal: &[
            "decision 1 decision=hitl final_rule=ask reason=approval_denied mcp_method=tools/call tool_name=echo direction=to_server request_id=7 hitl_cache_hit=false hitl_channel=client hitl_outcome=user_denied resource_type=tool",
        ],
        inside: READS,
        lacks: &[NO_LEGACY_INPUT_REQUIRED],
        ..PLAIN
    },
];
