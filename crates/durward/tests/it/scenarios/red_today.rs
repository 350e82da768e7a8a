//! Where today's build falls short of the table.
//!
//! - H2: Modern clients of `serve` that listen for changes are not told that a reload made their lists untrue.
//! - S1: `run --url` may not cancel a call at the server that has not answered in time: two deadlines race, and
//!   only one of them cancels.
//! - S4: a Modern client over stdio that listens for changes is not told of those that a reload makes.
//! - S5: `serve` that is told to end may end before it has cancelled a call at a server over HTTP.

use super::row::{Column, Red};
use super::table::frames::{AFTER_ARRIVED, CALL_ARRIVED};

/// Entries are removed as the defects are mended, and never added for anything that was right.
pub(crate) const RED_TODAY: &[Red] = &[
    Red {
        defect: "H2",
        row: "subscribed_list_after_reload",
        cells: "http/*/*",
        column: Column::Client,
        sometimes: false,
        today: &[
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"test_simple_text","title":"Text","description":"Returns one text.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name":"test_error_handling","title":"Failure","description":"Always fails.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}}"#,
        ],
    },
    Red {
        defect: "S1",
        row: "timeout",
        cells: "stdio/legacy/http",
        column: Column::Server,
        sometimes: true,
        today: &[CALL_ARRIVED, AFTER_ARRIVED],
    },
    Red {
        defect: "S4",
        row: "subscribed_list_after_reload",
        cells: "stdio/*/*",
        column: Column::Client,
        sometimes: false,
        today: &[
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"test_simple_text","title":"Text","description":"Returns one text.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name":"test_error_handling","title":"Failure","description":"Always fails.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}}"#,
        ],
    },
    Red {
        defect: "S5",
        row: "client_dies",
        cells: "http/legacy/http",
        column: Column::Server,
        sometimes: true,
        today: &[CALL_ARRIVED],
    },
];
