//! Where today's build falls short of the table.
//!
//! - H2: clients of `serve` are not told that a reload made their lists untrue.
//! - H3: clients of `serve` hear nothing while a person is asked.
//! - S1: `run --url` does not cancel a call at the server that has not answered in time.
//! - S2: `run --url` records a fault of one call a second time, without its call.
//! - S3: a server's request reaches a Modern client over stdio.
//! - S4: a Modern client over stdio that listens for changes is not told of those that a reload makes.

use super::row::{Column, Red};
use super::table::frames::{
    AFTER_ARRIVED, ALLOWED, ALLOWED_AFTER, CALL_ARRIVED, CANCELLED, ECHOED, SUCCESS_AFTER,
};

/// Entries are removed as the defects are mended, and never added for anything that was right.
pub(crate) const RED_TODAY: &[Red] = &[
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
