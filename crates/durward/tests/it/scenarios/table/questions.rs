//! What servers ask of clients: by requests, and in the Modern era by results.

use super::super::row::Step::{Answer, Receive, Send};
use super::super::row::{Lack, PLAIN, Row};
use super::frames::{
    ALLOW_QUESTIONS, ALLOWED, ASKS_NOTHING, CALL, CALL_ARRIVED, DENIED_QUESTION, DENIED_REQUEST,
    DENY_QUESTIONS, NO_LEGACY_INPUT_REQUIRED, NO_MODERN_REQUESTS, SUCCESS, TOLD_OF_DENIAL,
};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "input_required_elicitation_allowed",
        about: "what a server's result asks of the client (elicitation/create) passes where a rule allows it, and the client comes back with the answer",
        policy: ALLOW_QUESTIONS,
        server: &["conformance"],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{}{meta}}}"#,
            ),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{},"inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}}}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"user_name":{"method":"elicitation/create","params":{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}{asks}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"Good day, Ada."}],"isError":false{done}}}"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{}{meta}}}"#,
            r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{},"inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}}}{meta}}}"#,
        ],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_elicitation direction=to_server request_id=7 resource_type=tool",
            "decision 2 decision=allow final_rule=questions mcp_method=elicitation/create direction=to_client request_id=7",
            "operation 2 status=Success method=elicitation/create request_id=7",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_elicitation request_id=7",
            "decision 3 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_elicitation direction=to_server request_id=8 resource_type=tool",
            "operation 3 status=Success method=tools/call tool_name=test_input_required_result_elicitation request_id=8",
        ],
        lacks: &[NO_LEGACY_INPUT_REQUIRED, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "input_required_sampling_allowed",
        about: "what a server's result asks of the client (sampling/createMessage) passes where a rule allows it, and the client comes back with the answer",
        policy: ALLOW_QUESTIONS,
        server: &["conformance"],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{}{meta}}}"#,
            ),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{},"inputResponses":{"capital_question":{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"capital_question":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}}}{asks}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"capital_question: {\"content\":{\"text\":\"Paris\",\"type\":\"text\"},\"model\":\"m\",\"role\":\"assistant\"}"}],"isError":false{done}}}"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{}{meta}}}"#,
            r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{},"inputResponses":{"capital_question":{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}}{meta}}}"#,
        ],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_sampling direction=to_server request_id=7 resource_type=tool",
            "decision 2 decision=allow final_rule=questions mcp_method=sampling/createMessage direction=to_client request_id=7",
            "operation 2 status=Success method=sampling/createMessage request_id=7",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_sampling request_id=7",
            "decision 3 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_sampling direction=to_server request_id=8 resource_type=tool",
            "operation 3 status=Success method=tools/call tool_name=test_input_required_result_sampling request_id=8",
        ],
        lacks: &[NO_LEGACY_INPUT_REQUIRED, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "input_required_roots_allowed",
        about: "what a server's result asks of the client (roots/list) passes where a rule allows it, and the client comes back with the answer",
        policy: ALLOW_QUESTIONS,
        server: &["conformance"],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_input_required_result_list_roots","arguments":{}{meta}}}"#,
            ),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"test_input_required_result_list_roots","arguments":{},"inputResponses":{"client_roots":{"roots":[{"uri":"file:///srv/work"}]}}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"client_roots":{"method":"roots/list","params":{}}}{asks}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"client_roots: {\"roots\":[{\"uri\":\"file:///srv/work\"}]}"}],"isError":false{done}}}"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"test_input_required_result_list_roots","arguments":{}{meta}}}"#,
            r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/call","params":{"name":"test_input_required_result_list_roots","arguments":{},"inputResponses":{"client_roots":{"roots":[{"uri":"file:///srv/work"}]}}{meta}}}"#,
        ],
        journal: &[
            r#"decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_list_roots direction=to_server request_id=7 resource_type=tool"#,
            "decision 2 decision=allow final_rule=questions mcp_method=roots/list direction=to_client request_id=7",
            "operation 2 status=Success method=roots/list request_id=7",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_list_roots request_id=7",
            r#"decision 3 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_list_roots direction=to_server request_id=8 path=/srv/work path_arguments=[{"places":["/srv/work"],"role":"path","scheme":"file"}] resource_type=tool"#,
            "operation 3 status=Success method=tools/call tool_name=test_input_required_result_list_roots request_id=8",
        ],
        lacks: &[NO_LEGACY_INPUT_REQUIRED, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "input_required_elicitation_denied",
        about: "what a server's result asks of the client (elicitation/create) never reaches the client where a rule denies it",
        policy: DENY_QUESTIONS,
        server: &["conformance"],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[DENIED_QUESTION],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{}{meta}}}"#,
        ],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_elicitation direction=to_server request_id=7 resource_type=tool",
            "decision 2 decision=deny final_rule=no-questions reason=denied_by_rule mcp_method=elicitation/create direction=to_client request_id=7",
            "operation 1 status=Failure reason=denied_by_rule method=tools/call tool_name=test_input_required_result_elicitation request_id=7",
        ],
        lacks: &[NO_LEGACY_INPUT_REQUIRED, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "input_required_sampling_denied",
        about: "what a server's result asks of the client (sampling/createMessage) never reaches the client where a rule denies it",
        policy: DENY_QUESTIONS,
        server: &["conformance"],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[DENIED_QUESTION],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{}{meta}}}"#,
        ],
        journal: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_sampling direction=to_server request_id=7 resource_type=tool",
            "decision 2 decision=deny final_rule=no-questions reason=denied_by_rule mcp_method=sampling/createMessage direction=to_client request_id=7",
            "operation 1 status=Failure reason=denied_by_rule method=tools/call tool_name=test_input_required_result_sampling request_id=7",
        ],
        lacks: &[NO_LEGACY_INPUT_REQUIRED, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "input_required_roots_denied",
        about: "what a server's result asks of the client (roots/list) never reaches the client where a rule denies it",
        policy: DENY_QUESTIONS,
        server: &["conformance"],
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"test_input_required_result_list_roots","arguments":{}{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[DENIED_QUESTION],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/call","params":{"name":"test_input_required_result_list_roots","arguments":{}{meta}}}"#,
        ],
        journal: &[
            r#"decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_list_roots direction=to_server request_id=7 resource_type=tool"#,
            "decision 2 decision=deny final_rule=no-questions reason=denied_by_rule mcp_method=roots/list direction=to_client request_id=7",
            "operation 1 status=Failure reason=denied_by_rule method=tools/call tool_name=test_input_required_result_list_roots request_id=7",
        ],
        lacks: &[NO_LEGACY_INPUT_REQUIRED, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_elicitation_allowed",
        about: "a server's request (elicitation/create) reaches the client in the middle of its call, and the answer the server",
        policy: ALLOW_QUESTIONS,
        server: &[
            "hostile",
            "--behaviour",
            "server-request",
            "--ask",
            "elicitation",
        ],
        script: &[
            Send(CALL),
            Receive(1),
            Answer(r#"{"action":"accept","content":{"name":"Ada"}}"#),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","method":"elicitation/create","params":{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}"},{"type":"text","text":"x"}],"isError":false}}"#,
        ],
        server_got: &[
            CALL_ARRIVED,
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","result":{"action":"accept","content":{"name":"Ada"}}}"#,
        ],
        journal: &[
            ALLOWED,
            r#"decision 2 decision=allow final_rule=questions mcp_method=elicitation/create direction=to_client request_id="mock-ask-1""#,
            r#"operation 2 status=Success method=elicitation/create request_id="mock-ask-1""#,
            SUCCESS,
        ],
        lacks: &[NO_MODERN_REQUESTS, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_sampling_allowed",
        about: "a server's request (sampling/createMessage) reaches the client in the middle of its call, and the answer the server",
        policy: ALLOW_QUESTIONS,
        server: &[
            "hostile",
            "--behaviour",
            "server-request",
            "--ask",
            "sampling",
        ],
        script: &[
            Send(CALL),
            Receive(1),
            Answer(r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}"#),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Say a word."}}],"maxTokens":16}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Paris\"},\"model\":\"m\"}"},{"type":"text","text":"x"}],"isError":false}}"#,
        ],
        server_got: &[
            CALL_ARRIVED,
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","result":{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}}"#,
        ],
        journal: &[
            ALLOWED,
            r#"decision 2 decision=allow final_rule=questions mcp_method=sampling/createMessage direction=to_client request_id="mock-ask-1""#,
            r#"operation 2 status=Success method=sampling/createMessage request_id="mock-ask-1""#,
            SUCCESS,
        ],
        lacks: &[NO_MODERN_REQUESTS, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_roots_allowed",
        about: "a server's request (roots/list) reaches the client in the middle of its call, and the answer the server",
        policy: ALLOW_QUESTIONS,
        server: &["hostile", "--behaviour", "server-request", "--ask", "roots"],
        script: &[
            Send(CALL),
            Receive(1),
            Answer(r#"{"roots":[{"uri":"file:///tmp"}]}"#),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","method":"roots/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"roots\":[{\"uri\":\"file:///tmp\"}]}"},{"type":"text","text":"x"}],"isError":false}}"#,
        ],
        server_got: &[
            CALL_ARRIVED,
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","result":{"roots":[{"uri":"file:///tmp"}]}}"#,
        ],
        journal: &[
            ALLOWED,
            r#"decision 2 decision=allow final_rule=questions mcp_method=roots/list direction=to_client request_id="mock-ask-1""#,
            r#"operation 2 status=Success method=roots/list request_id="mock-ask-1""#,
            SUCCESS,
        ],
        lacks: &[NO_MODERN_REQUESTS, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_elicitation_denied",
        about: "a server's request (elicitation/create) that a rule denies is answered for the client, which never hears of it",
        policy: DENY_QUESTIONS,
        server: &[
            "hostile",
            "--behaviour",
            "server-request",
            "--ask",
            "elicitation",
        ],
        script: &[Send(CALL), Receive(1)],
        client: &[TOLD_OF_DENIAL],
        server_got: &[CALL_ARRIVED, DENIED_REQUEST],
        journal: &[
            ALLOWED,
            r#"decision 2 decision=deny final_rule=no-questions reason=denied_by_rule mcp_method=elicitation/create direction=to_client request_id="mock-ask-1""#,
            SUCCESS,
        ],
        lacks: &[NO_MODERN_REQUESTS, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_sampling_denied",
        about: "a server's request (sampling/createMessage) that a rule denies is answered for the client, which never hears of it",
        policy: DENY_QUESTIONS,
        server: &[
            "hostile",
            "--behaviour",
            "server-request",
            "--ask",
            "sampling",
        ],
        script: &[Send(CALL), Receive(1)],
        client: &[TOLD_OF_DENIAL],
        server_got: &[CALL_ARRIVED, DENIED_REQUEST],
        journal: &[
            ALLOWED,
            r#"decision 2 decision=deny final_rule=no-questions reason=denied_by_rule mcp_method=sampling/createMessage direction=to_client request_id="mock-ask-1""#,
            SUCCESS,
        ],
        lacks: &[NO_MODERN_REQUESTS, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_roots_denied",
        about: "a server's request (roots/list) that a rule denies is answered for the client, which never hears of it",
        policy: DENY_QUESTIONS,
        server: &["hostile", "--behaviour", "server-request", "--ask", "roots"],
        script: &[Send(CALL), Receive(1)],
        client: &[TOLD_OF_DENIAL],
        server_got: &[CALL_ARRIVED, DENIED_REQUEST],
        journal: &[
            ALLOWED,
            r#"decision 2 decision=deny final_rule=no-questions reason=denied_by_rule mcp_method=roots/list direction=to_client request_id="mock-ask-1""#,
            SUCCESS,
        ],
        lacks: &[NO_MODERN_REQUESTS, ASKS_NOTHING],
        ..PLAIN
    },
    Row {
        name: "server_request_to_a_modern_client",
        about: "a server that sends a Modern client a request is told that there are none, and the client never hears of it",
        policy: ALLOW_QUESTIONS,
        server: &["hostile", "--behaviour", "server-request"],
        script: &[Send(CALL), Receive(1)],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"code\":-32601,\"message\":\"this revision has no requests of servers; return input_required\"}"},{"type":"text","text":"x"}],"isError":false{done}}}"#,
        ],
        server_got: &[
            CALL_ARRIVED,
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","error":{"code":-32601,"message":"this revision has no requests of servers; return input_required"}}"#,
        ],
        journal: &[ALLOWED, SUCCESS],
        lacks: &[
            Lack {
                cells: "*/legacy/*",
                why: "revisions before 2026-07-28 have requests of servers: the rows above",
            },
            Lack {
                cells: "*/modern/http",
                why: "a Modern server over HTTP has no way to be answered on the stream of a call",
            },
            ASKS_NOTHING,
        ],
        ..PLAIN
    },
];
