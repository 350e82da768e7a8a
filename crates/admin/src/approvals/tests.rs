//! Instances that are played by a thread at a control socket.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use gate::approval::Question;
use gate::channel::Channel;
use serde_json::{Value, json};

use super::*;
use crate::ErrorKind;
use crate::control::directory::Socket;

/// A runtime directory with instances; removed when dropped.
struct Runtime {
    paths: [PathBuf; 1],
    sockets: Vec<Socket>,
}

impl Runtime {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("admin-run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self {
            paths: [path],
            sockets: Vec::new(),
        }
    }

    /// Adds an instance that gives the lines of `answer` to each request.
    fn add(
        &mut self,
        name: &str,
        answer: impl Fn(&Request) -> Vec<Value> + Send + Clone + 'static,
    ) {
        let mut socket = Socket::bind(&self.paths[0], name).unwrap();
        let listener = socket.take_listener().unwrap();
        self.sockets.push(socket);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, answer) = (stream.unwrap(), answer.clone());
                std::thread::spawn(move || {
                    let requests = BufReader::new(stream.try_clone().unwrap());
                    for line in requests.lines().map_while(Result::ok) {
                        let request = serde_json::from_str(&line).unwrap();
                        for line in answer(&request) {
                            // The client may have gone.
                            let _ = writeln!(stream, "{line}");
                        }
                    }
                });
            }
        });
    }

    /// Adds an instance in which these calls wait; it takes every answer but a yes that has to be confirmed.
    fn add_waiting(&mut self, name: &str, ids: &'static [&'static str]) {
        self.add(name, move |request| match request {
            Request::Approvals => {
                let items = ids.iter().map(|id| json!({ "item": { "id": id } }));
                items.chain([json!({ "ok": {} })]).collect()
            }
            Request::Answer { answer, unseen, .. } if answer == "allow" && !unseen => {
                let message = "not all of the call was shown; confirm it";
                vec![json!({ "error": { "label": NOT_ALL_SHOWN, "message": message } })]
            }
            Request::Answer { id, reason, .. } => {
                let question = json!({ "id": id, "tool_name": reason });
                vec![json!({ "ok": { "question": question, "remembered": true } })]
            }
            _ => vec![json!({ "error": { "label": "bad_request", "message": "no" } })],
        });
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.sockets.clear();
        let _ = fs::remove_dir_all(&self.paths[0]);
    }
}

fn deny() -> ApprovalAnswer {
    ApprovalAnswer {
        choice: Choice::Deny,
        reason: Some("not on a Friday".to_owned()),
        unseen: false,
    }
}

/// A question with every member.
fn question() -> Question {
    let text = |text: &str| Some(text.to_owned());
    Question {
        id: "k7f2m9qa".to_owned(),
        direction: "to_server",
        mcp_method: "tools/call".to_owned(),
        tool_name: text("write_file"),
        uri: text("file:///a"),
        path: text("/a"),
        source_path: text("/b"),
        dest_path: text("/c"),
        more_places: 2,
        arguments: text("{}"),
        change: vec!["+new".to_owned()],
        is_cut: true,
        side_effects: vec!["fs_write"],
        backend_id: "files".to_owned(),
        subject_id: "key:laptop".to_owned(),
        client_id: text("editor"),
        request_id: "7".to_owned(),
        session_id: "s".to_owned(),
        rule: "ask".to_owned(),
        description: text("writes"),
        labelled_by: vec!["fetch".to_owned()],
        approvers: vec![Channel::Cli],
        can_cache: true,
        cache_ttl_seconds: 600,
        created_at: "2026-11-21T03:38:09.123Z".to_owned(),
        timeout_seconds: 50,
        remaining_ms: 41_200,
    }
}

#[test]
fn a_question_is_read_whole_and_serialized_as_it_was_sent() {
    let sent = serde_json::to_value(question()).unwrap();
    let read: ApprovalQuestion = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), sent);
    let further: Vec<&String> = read.further.keys().collect();
    let ids = [
        "approvers",
        "created_at",
        "request_id",
        "session_id",
        "timeout_seconds",
    ];
    assert_eq!(further, ids);
    // A later version may send more.
    let mut later = sent;
    later["colour"] = json!("red");
    let read: ApprovalQuestion = serde_json::from_value(later.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), later);
}

#[test]
fn events_are_serialized_as_they_were_sent() {
    for sent in [
        json!({ "asked": question() }),
        json!({ "ended": { "id": "k7f2m9qa", "outcome": "user_denied" } }),
        json!({ "reload_failed": { "at": "now", "message": "line 3", "successful": false } }),
        json!({ "of_a_later_version": [1] }),
    ] {
        let event: ApprovalEvent = serde_json::from_value(sent.clone()).unwrap();
        let is_unknown = matches!(event, ApprovalEvent::Unknown(_));
        assert_eq!(is_unknown, sent.get("of_a_later_version").is_some());
        let event = InstanceEvent {
            socket: "/run/a.sock".into(),
            event,
        };
        let mut expect = sent;
        expect["socket"] = json!("/run/a.sock");
        assert_eq!(serde_json::to_value(&event).unwrap(), expect);
    }
}

#[test]
fn calls_of_all_instances_are_listed_and_found_by_the_beginning_of_their_ids() {
    let mut runtime = Runtime::new("list");
    runtime.add_waiting("one", &["aaa11111", "abb22222"]);
    runtime.add_waiting("two", &["ccc33333"]);
    let waiting = list(&runtime.paths);
    assert_eq!((waiting.instances, waiting.calls.len()), (2, 3));
    assert_eq!(waiting.warnings, [""; 0]);
    let call = waiting.find("ccc").unwrap();
    assert!(call.socket.to_string_lossy().contains("/two-"), "{call:?}");
    let error = waiting.find("a").unwrap_err();
    assert!(matches!(&error, AdminError::Ambiguous(ids) if ids == &["aaa11111", "abb22222"]));
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(waiting.find("zzz").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn an_instance_that_cannot_be_understood_is_a_warning() {
    let mut runtime = Runtime::new("broken");
    runtime.add("broken", |_| {
        vec![
            json!({ "item": { "tool_name": "no id" } }),
            json!({ "ok": {} }),
        ]
    });
    runtime.add("refusing", |_| {
        vec![json!({ "error": { "label": "busy", "message": "try again" } })]
    });
    runtime.add_waiting("sound", &["aaa11111"]);
    let waiting = list(&runtime.paths);
    assert_eq!((waiting.instances, waiting.calls.len()), (3, 1));
    let warnings = waiting.warnings.join("\n");
    assert!(
        warnings.contains("1 waiting calls are not ones"),
        "{warnings}"
    );
    assert!(warnings.contains("try again"), "{warnings}");
}

#[test]
fn an_answer_reaches_the_instance_that_holds_the_call() {
    let mut runtime = Runtime::new("answer");
    runtime.add_waiting("one", &["aaa11111"]);
    runtime.add_waiting("two", &["abb22222"]);
    let report = answer(&runtime.paths, "abb", &deny());
    let answered = report.outcome.unwrap();
    assert_eq!(answered.question.id, "abb");
    assert_eq!(
        answered.question.tool_name.as_deref(),
        Some("not on a Friday")
    );
    assert!(answered.remembered);
    let allow = ApprovalAnswer {
        choice: Choice::Allow,
        reason: None,
        unseen: false,
    };
    let error = answer(&runtime.paths, "abb", &allow).outcome.unwrap_err();
    assert_eq!(
        (error.label(), error.kind()),
        (NOT_ALL_SHOWN, ErrorKind::Refused)
    );
    let error = answer(&runtime.paths, "a", &deny()).outcome.unwrap_err();
    assert_eq!(error.label(), "ambiguous");
}

#[test]
fn a_reply_that_cannot_be_read_does_not_hide_that_the_call_was_answered() {
    let mut runtime = Runtime::new("reply");
    runtime.add("one", |request| match request {
        Request::Approvals => vec![json!({ "item": { "id": "aaa11111" } }), json!({ "ok": {} })],
        _ => vec![json!({ "ok": "done" })],
    });
    let error = answer(&runtime.paths, "aaa", &deny()).outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.to_string().contains("has done it"), "{error}");
}

#[test]
fn without_instances_no_call_waits() {
    let runtime = Runtime::new("none");
    assert_eq!(list(&runtime.paths).instances, 0);
    let error = answer(&runtime.paths, "abb", &deny()).outcome.unwrap_err();
    assert_eq!(
        (error.label(), error.kind()),
        ("unknown", ErrorKind::NotFound)
    );
}

#[test]
fn a_feed_delivers_the_events_of_each_instance_and_its_end() {
    let mut runtime = Runtime::new("feed");
    runtime.add("one", |_| {
        vec![
            json!({ "item": { "asked": { "id": "aaa11111" } } }),
            json!({ "item": { "ended": { "id": "aaa11111", "outcome": "user_allowed" } } }),
            json!({ "ok": {} }),
        ]
    });
    let (send, events) = sync_channel::<FeedItem>(EVENTS_MAX);
    let mut feed = ApprovalFeed::new(&runtime.paths);
    assert_eq!(feed.search(&send), [""; 0]);
    let next = || events.recv_timeout(Duration::from_secs(60)).unwrap();
    let FeedItem::Event(first) = next() else {
        panic!("no event");
    };
    assert!(matches!(first.event, ApprovalEvent::Asked(question) if question.id == "aaa11111"));
    assert!(
        matches!(next(), FeedItem::Event(event) if matches!(event.event, ApprovalEvent::Ended(_)))
    );
    let FeedItem::Ended(socket) = next() else {
        panic!("no end");
    };
    // An instance that is still known is not read a second time.
    feed.search(&send);
    assert!(events.try_recv().is_err());
    feed.forget(&socket);
}

#[test]
fn past_answers_need_a_journal() {
    let error = history(Path::new("/nowhere/journal"), 10, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
