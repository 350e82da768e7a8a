//! Lists, and the news that one has become untrue.

use super::super::row::Step::{Receive, Reload, Send};
use super::super::row::{Column, Except, Lack, PLAIN, Row};

/// The lists of the conformance fixtures as those of the built-in server.
const INSIDE: &[(&str, &str)] = &[
    (
        r#"{"tools":[{"name":"test_simple_text","title":"Text","description":"Returns one text.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}"#,
        r#"{{inside}"cacheScope":"private",{complete}"tools":[ECHO],"ttlMs":300000}"#,
    ),
    (
        r#"{"tools":[{"name":"test_error_handling","title":"Failure","description":"Always fails.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}"#,
        r#"{{inside}"cacheScope":"private",{complete}"tools":[ADD],"ttlMs":300000}"#,
    ),
    (
        r#"{"name":"test_simple_text","title":"Text","description":"Returns one text.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}"#,
        "ECHO",
    ),
    (
        r#"{"name":"test_error_handling","title":"Failure","description":"Always fails.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}"#,
        "ADD",
    ),
    (
        "ECHO",
        r#"{"annotations":{"openWorldHint":false,"readOnlyHint":true},"description":"Says the text back.","inputSchema":{"additionalProperties":false,"properties":{"text":{"description":"What is said back.","maxLength":1000000,"type":"string"}},"required":["text"],"type":"object"},"name":"echo","outputSchema":{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"},"title":"Echo"}"#,
    ),
    (
        "ADD",
        r#"{"annotations":{"openWorldHint":false,"readOnlyHint":true},"description":"Adds two numbers.","inputSchema":{"additionalProperties":false,"properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"type":"object"},"name":"add","outputSchema":{"properties":{"sum":{"type":"number"}},"required":["sum"],"type":"object"},"title":"Add"}"#,
    ),
    ("test_simple_text", "echo"),
    ("test_error_handling", "add"),
];

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "list_after_reload",
        about: "a client that has listed the tools is told once a reload makes its list untrue, and then lists what is so",
        policy: r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":["test_simple_text"]}}]}"#,
        server: &["conformance"],
        inside: INSIDE,
        script: &[
            Send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#),
            Receive(1),
            Reload(
                r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":["test_error_handling"]}}]}"#,
            ),
            Receive(1),
            Send(r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"test_simple_text","title":"Text","description":"Returns one text.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name":"test_error_handling","title":"Failure","description":"Always fails.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}}"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/list"}"#,
        ],
        lacks: &[Lack {
            cells: "*/modern/*",
            why: "a Modern client hears of changes by subscriptions/listen: the row below",
        }],
        ..PLAIN
    },
    Row {
        name: "subscribed_list_after_reload",
        about: "a client that listens for changes of the tools is told once a reload makes its list untrue",
        policy: r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":["test_simple_text"]}}]}"#,
        server: &["conformance"],
        inside: INSIDE,
        script: &[
            Send(
                r#"{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}{meta}}}"#,
            ),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":null{meta}}}"#,
            ),
            Receive(1),
            Reload(
                r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":["test_error_handling"]}}]}"#,
            ),
            Receive(1),
            Send(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":null{meta}}}"#,
            ),
            Receive(1),
        ],
        client: &[
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"},"notifications":{"toolsListChanged":true}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"test_simple_text","title":"Text","description":"Returns one text.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen"}}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{"tools":[{"name":"test_error_handling","title":"Failure","description":"Always fails.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]{done+cached}}}"#,
        ],
        server_got: &[
            r#"{"jsonrpc":"2.0","id":{id:"listen"},"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}{meta}}}"#,
            r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/list","params":{"cursor":null{meta}}}"#,
            r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/list","params":{"cursor":null{meta}}}"#,
        ],
        except: &[Except {
            cells: "http/*/child",
            column: Column::Server,
            expect: &[
                r#"{"jsonrpc":"2.0","id":{id:"listen"},"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}{meta}}}"#,
                r#"{"jsonrpc":"2.0","id":{id:7},"method":"tools/list","params":{"cursor":null{meta}}}"#,
                r#"{"jsonrpc":"2.0","id":{id:8},"method":"tools/list","params":{"cursor":null{meta}}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":OURS,"reason":"the client went away"}}"#,
            ],
            why: "a server that others may use is told that this subscription is over",
        }],
        lacks: &[Lack {
            cells: "*/legacy/*",
            why: "revisions before 2026-07-28 have no subscriptions/listen: the row above",
        }],
        ..PLAIN
    },
];
