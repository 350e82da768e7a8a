//! Where today's build falls short of the table.
//!
//! - H1: a Modern result's `inputRequests` reach a client over stdio unjudged and unrecorded.
//! - H2: clients of `serve` are not told that a reload made their lists untrue.
//! - H3: clients of `serve` hear nothing while a person is asked.
//! - H4: `run --url` records the transport of a child.
//! - S1: `run --url` does not cancel a call at the server that has not answered in time.
//! - S2: `run --url` records a fault of one call a second time, without its call.
//! - S3: a server's request reaches a Modern client over stdio.
//! - S4: a Modern client over stdio that listens for changes is not told of those that a reload makes.

use super::row::{Column, OPERATIONS, Red};
use super::table::frames::{
    AFTER_ARRIVED, ALLOWED, ALLOWED_AFTER, CALL_ARRIVED, CANCELLED, ECHOED, SUCCESS_AFTER,
};

/// Entries are removed as the defects are mended, and never added for anything that was right.
pub const RED_TODAY: &[Red] = &[
    Red {
        defect: "H1",
        row: "input_required_elicitation_allowed",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_elicitation direction=to_server request_id=7 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_elicitation request_id=7",
            "decision 2 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_elicitation direction=to_server request_id=8 resource_type=tool",
            "operation 2 status=Success method=tools/call tool_name=test_input_required_result_elicitation request_id=8",
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_sampling_allowed",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_sampling direction=to_server request_id=7 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_sampling request_id=7",
            "decision 2 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_sampling direction=to_server request_id=8 resource_type=tool",
            "operation 2 status=Success method=tools/call tool_name=test_input_required_result_sampling request_id=8",
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_roots_allowed",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            r#"decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_list_roots direction=to_server request_id=7 operations=["read"] resource_type=tool"#,
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_list_roots request_id=7",
            r#"decision 2 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_list_roots direction=to_server request_id=8 operations=["read"] resource_type=tool"#,
            "operation 2 status=Success method=tools/call tool_name=test_input_required_result_list_roots request_id=8",
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_elicitation_denied",
        cells: "stdio/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"user_name":{"method":"elicitation/create","params":{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}{asks}}}"#,
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_elicitation_denied",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_elicitation direction=to_server request_id=7 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_elicitation request_id=7",
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_sampling_denied",
        cells: "stdio/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"capital_question":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}}}{asks}}}"#,
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_sampling_denied",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            "decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_sampling direction=to_server request_id=7 resource_type=tool",
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_sampling request_id=7",
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_roots_denied",
        cells: "stdio/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"inputRequests":{"client_roots":{"method":"roots/list","params":{}}}{asks}}}"#,
        ],
    },
    Red {
        defect: "H1",
        row: "input_required_roots_denied",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            r#"decision 1 decision=allow final_rule=tools mcp_method=tools/call tool_name=test_input_required_result_list_roots direction=to_server request_id=7 operations=["read"] resource_type=tool"#,
            "operation 1 status=Success method=tools/call tool_name=test_input_required_result_list_roots request_id=7",
        ],
    },
    Red {
        defect: "H2",
        row: "list_after_reload",
        cells: "http/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name": "test_simple_text", "title": "Text", "description": "Returns one text.", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}}]}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name": "test_error_handling", "title": "Failure", "description": "Always fails.", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}}]}}"#,
        ],
    },
    Red {
        defect: "H2",
        row: "subscribed_list_after_reload",
        cells: "http/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name": "test_simple_text", "title": "Text", "description": "Returns one text.", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}}]{done+cached}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name": "test_error_handling", "title": "Failure", "description": "Always fails.", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}}]{done+cached}}}"#,
        ],
    },
    Red {
        defect: "H3",
        row: "hitl_progress",
        cells: "http/*/*",
        column: Column::Client,
        today: &[ECHOED],
    },
    Red {
        defect: "H4",
        row: OPERATIONS,
        cells: "stdio/*/http",
        column: Column::Marks,
        today: &[r#"operation transport="stdio""#],
    },
    Red {
        defect: "S1",
        row: "timeout",
        cells: "stdio/legacy/http",
        column: Column::Server,
        today: &[CALL_ARRIVED, AFTER_ARRIVED],
    },
    Red {
        defect: "S2",
        row: "timeout",
        cells: "stdio/*/http",
        column: Column::Journal,
        today: &[
            ALLOWED,
            "operation 1 status=Failure reason=upstream_timeout method=tools/call tool_name=echo request_id=7 error_code=-32603",
            ALLOWED_AFTER,
            SUCCESS_AFTER,
            "system upstream_timeout message=no detail",
        ],
    },
    Red {
        defect: "S2",
        row: "server_dies",
        cells: "stdio/*/http",
        column: Column::Journal,
        today: &[
            ALLOWED,
            "operation 1 status=Failure reason=upstream_broken method=tools/call tool_name=echo request_id=7 error_code=-32603",
            "system upstream_broken message=no detail",
        ],
    },
    Red {
        defect: "S3",
        row: "server_request_to_a_modern_client",
        cells: "stdio/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","id":"mock-ask-1","method":"elicitation/create","params":{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}"#,
        ],
    },
    Red {
        defect: "S3",
        row: "server_request_to_a_modern_client",
        cells: "stdio/*/*",
        column: Column::Server,
        today: &[CALL_ARRIVED],
    },
    Red {
        defect: "S3",
        row: "server_request_to_a_modern_client",
        cells: "stdio/*/*",
        column: Column::Journal,
        today: &[
            ALLOWED,
            r#"decision 2 decision=allow final_rule=questions mcp_method=elicitation/create direction=to_client request_id="mock-ask-1""#,
            CANCELLED,
            r#"operation 2 status=Cancelled method=elicitation/create request_id="mock-ask-1""#,
        ],
    },
    Red {
        defect: "S4",
        row: "subscribed_list_after_reload",
        cells: "stdio/*/*",
        column: Column::Client,
        today: &[
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name": "test_simple_text", "title": "Text", "description": "Returns one text.", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}}]{done+cached}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name": "test_error_handling", "title": "Failure", "description": "Always fails.", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object"}}]{done+cached}}}"#,
        ],
    },
];
