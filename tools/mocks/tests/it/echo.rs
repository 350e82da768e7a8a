use crate::common::{Directory, mock, ready};
use mcp::client::Era;
use serde_json::json;
use std::time::Duration;

#[test]
fn echo_returns_its_text_in_every_era() {
    for era in Era::ALL {
        let mut client = ready(&["echo"], era);
        for text in [
            "",
            "plain",
            "\" \\ \n \u{1F600} \u{0}",
            &"long ".repeat(40_000),
        ] {
            let reply = client.call_tool("echo", json!({"text": text})).unwrap();
            assert_eq!(reply.text(), Some(text), "{era:?}");
            assert!(!reply.is_tool_error());
        }
    }
}

#[test]
fn the_spelling_of_a_text_survives() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"arguments":{"text":"\u0041\/b\ud83d\ude00"},"name":"echo"}}"#;
    client.process().send_line(call.as_bytes()).unwrap();
    let reply = client.response("9").unwrap();
    assert!(
        reply.line().contains(r#""text":"\u0041\/b\ud83d\ude00""#),
        "{}",
        reply.line()
    );
}

#[test]
fn sized_has_the_chosen_size() {
    let mut client = ready(&["echo", "--reply-bytes", "77"], Era::Modern);
    for (arguments, bytes) in [
        (json!({}), 77),
        (json!({"bytes": 0}), 0),
        (json!({"bytes": 3_000_000}), 3_000_000),
    ] {
        let reply = client.call_tool("sized", arguments).unwrap();
        assert_eq!(reply.text().unwrap().len(), bytes);
    }
}

#[test]
fn delayed_answers_are_overtaken_and_come_in_order_of_their_time() {
    let mut client = ready(&["echo"], Era::Legacy("2025-06-18"));
    for (id, delay_us) in [("1000", 2_000_000), ("1001", 1_000_000), ("1002", 0)] {
        let params = json!({"name": "delayed", "arguments": {"text": id, "delay_us": delay_us}});
        client.send_request_as(id, "tools/call", params).unwrap();
    }
    for id in ["1002", "1001", "1000"] {
        assert_eq!(client.response(id).unwrap().text(), Some(id));
    }
}

#[test]
fn delay_us_delays_every_call() {
    let mut client = ready(&["echo", "--delay-us", "1500000"], Era::Modern);
    let call = client
        .send_request(
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "late"}}),
        )
        .unwrap();
    let list = client.send_request("tools/list", json!({})).unwrap();
    client.response(&list).unwrap();
    assert_eq!(client.response(&call).unwrap().text(), Some("late"));
}

#[test]
fn a_cancelled_call_is_not_answered() {
    let mut client = ready(&["echo"], Era::Legacy("2025-11-25"));
    for (id, delay_us) in [("70", 1_500_000), ("71", 2_000_000)] {
        let params = json!({"name": "delayed", "arguments": {"text": id, "delay_us": delay_us}});
        client.send_request_as(id, "tools/call", params).unwrap();
    }
    client
        .notify(
            "notifications/cancelled",
            &json!({"requestId": 70, "reason": "enough"}),
        )
        .unwrap();
    // A response to 70 would be an error here: it names another id.
    assert_eq!(client.response("71").unwrap().text(), Some("71"));
}

#[test]
fn bad_arguments_are_tool_errors_that_name_the_fault() {
    let mut client = ready(&["echo"], Era::Modern);
    let cases = [
        ("echo", json!({}), "missing field `text`"),
        ("echo", json!({"text": 1}), "text is not a string"),
        ("echo", json!({"text": null}), "text is not a string"),
        (
            "echo",
            json!({"text": "a", "more": 1}),
            "unknown field `more`",
        ),
        (
            "echo",
            json!({"text": "a", "delay_us": 1}),
            "unknown field `delay_us`",
        ),
        (
            "delayed",
            json!({"text": "a", "delay_us": 600_000_001u64}),
            "more than 600000000",
        ),
        (
            "delayed",
            json!({"text": "a", "delay_us": -1}),
            "invalid value",
        ),
        (
            "sized",
            json!({"bytes": 67_108_865u64}),
            "more than 67108864",
        ),
        ("sized", json!({"bytes": "1"}), "invalid type"),
    ];
    for (tool, arguments, complaint) in cases {
        let reply = client.call_tool(tool, arguments.clone()).unwrap();
        assert!(reply.is_tool_error(), "{tool} {arguments}");
        assert!(
            reply.text().unwrap().contains(complaint),
            "{tool} {arguments}: {:?}",
            reply.text()
        );
    }
}

#[test]
fn arguments_and_names_of_the_wrong_type_are_protocol_errors() {
    let mut client = ready(&["echo"], Era::Modern);
    let cases = [
        json!({"name": "nope", "arguments": {}}),
        json!({"name": 5, "arguments": {}}),
        json!({"arguments": {}}),
        json!({"name": "echo", "arguments": [1]}),
        json!({"name": "echo", "arguments": "text"}),
    ];
    for params in cases {
        assert_eq!(
            client
                .request("tools/call", params.clone())
                .unwrap()
                .error_code(),
            Some(-32602),
            "{params}"
        );
    }
}

#[test]
fn prompts_and_resources_exist() {
    for era in [Era::Legacy("2024-11-05"), Era::Modern] {
        let mut client = ready(&["echo"], era);
        let prompts = client.request("prompts/list", json!({})).unwrap();
        assert_eq!(prompts.result().unwrap()["prompts"][0]["name"], "greeting");
        let prompt = client
            .request(
                "prompts/get",
                json!({"name": "greeting", "arguments": {"name": "Ann"}}),
            )
            .unwrap();
        assert_eq!(
            prompt.result().unwrap()["messages"][0]["content"]["text"],
            "Say hello to Ann."
        );
        let resources = client.request("resources/list", json!({})).unwrap();
        let uri = resources.result().unwrap()["resources"][0]["uri"].clone();
        let resource = client
            .request("resources/read", json!({"uri": uri}))
            .unwrap();
        assert_eq!(
            resource.result().unwrap()["contents"][0]["text"],
            "every word comes back"
        );
        let templates = client
            .request("resources/templates/list", json!({}))
            .unwrap();
        assert_eq!(
            templates.result().unwrap()["resourceTemplates"][0]["name"],
            "word"
        );
        let word = client
            .request("resources/read", json!({"uri": "mock://echo/word/tree"}))
            .unwrap();
        assert_eq!(word.result().unwrap()["contents"][0]["text"], "tree");
    }
}

#[test]
fn unknown_prompts_and_resources_have_the_code_of_their_era() {
    for (era, code) in [(Era::Legacy("2025-11-25"), -32002), (Era::Modern, -32602)] {
        let mut client = ready(&["echo"], era);
        let resource = client
            .request("resources/read", json!({"uri": "mock://echo/nope"}))
            .unwrap();
        assert_eq!(resource.error_code(), Some(code));
        let prompt = client
            .request("prompts/get", json!({"name": "nope"}))
            .unwrap();
        assert_eq!(prompt.error_code(), Some(-32602));
    }
}

#[test]
fn record_holds_every_frame_as_it_came() {
    let directory = Directory::new();
    let file = directory.join("record");
    let mut client = ready(&["echo", "--record", &file], Era::Legacy("2025-11-25"));
    let frames = [
        r#"{"jsonrpc":"2.0", "id":7.0,"method":"tools/call","params":{"name":"\u0065cho","arguments":{"text":"x"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        "no message",
        r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#,
    ];
    for frame in frames {
        client.process().send_line(frame.as_bytes()).unwrap();
    }
    for _ in 0..3 {
        client.process().read_line().unwrap();
    }
    let recorded = std::fs::read_to_string(&file).unwrap();
    let recorded: Vec<&str> = recorded.lines().collect();
    assert!(
        recorded[0].contains(r#""method":"initialize""#),
        "{recorded:?}"
    );
    assert!(
        recorded[1].contains("notifications/initialized"),
        "{recorded:?}"
    );
    assert_eq!(recorded[2..], frames);
}

#[test]
fn count_holds_a_line_for_every_call_that_arrived() {
    let directory = Directory::new();
    let file = directory.join("count");
    let mut client = ready(&["echo", "--count", &file], Era::Legacy("2025-03-26"));
    client.call_tool("echo", json!({"text": "a"})).unwrap();
    client.call_tool("nope", json!({})).unwrap();
    client
        .notify(
            "tools/call",
            &json!({"name": "echo", "arguments": {"text": "no id"}}),
        )
        .unwrap();
    client
        .process()
        .send_line(br#"[{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"echo"}}]"#)
        .unwrap();
    client.process().read_line().unwrap();
    client.request("tools/list", json!({})).unwrap();
    let counted = std::fs::read_to_string(&file).unwrap();
    let expected = [
        r#"{"name":"echo","arguments":{"text":"a"}}"#,
        r#"{"name":"nope","arguments":{}}"#,
        r#"{"name":"echo","arguments":{"text":"no id"}}"#,
        r#"{"name":"echo","arguments":null}"#,
    ];
    assert_eq!(counted.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn an_uncountable_call_does_not_act() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let mut client = ready(&["echo", "--count", "/dev/full"], Era::Modern);
    assert_eq!(
        client
            .call_tool("echo", json!({"text": "a"}))
            .unwrap()
            .error_code(),
        Some(-32603)
    );
}

#[test]
fn unusable_options_end_the_process_with_a_reason() {
    let cases: [(&[&str], &str); 5] = [
        (&["echo", "--count", "/nope/nope"], "cannot use /nope/nope"),
        (&["files", "--root", "/nope/nope"], "cannot use /nope/nope"),
        (
            &["files", "--root", "/", "--any-root"],
            "cannot be used with",
        ),
        (&["hostile"], "--behaviour"),
        (
            &["hostile", "--behaviour", "twice", "--at", "0"],
            "0 is not in 1..",
        ),
    ];
    for (args, reason) in cases {
        let mut client = mock(args);
        let status = client
            .process()
            .wait_within(Duration::from_secs(20))
            .unwrap()
            .expect("it ends");
        assert_eq!(status.code(), Some(2), "{args:?}");
        let said = client.process().read_line().unwrap_err().to_string();
        let stderr = client.process().stderr();
        assert!(
            stderr.contains(reason) || said.contains(reason),
            "{args:?}: {stderr}"
        );
    }
}
