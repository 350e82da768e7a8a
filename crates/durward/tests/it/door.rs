//! Calls in process: the example runs, and each scenario leaves the records of a client's own call.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate::approval::{Answer, Channel, Choice};
use gate::{Caller, World};
use mcp::http::door::{ToolEvent, ToolOutcome};
use models::door::ModelEvent;
use net::http::server::{Handler, Listener, Request, Response, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolkit::door::{ApprovalWish, CallContext, CallEnd, RunBudget};
use toolkit::face::Face as _;

#[expect(dead_code, reason = "its `main` is for `cargo run --example door`")]
#[path = "../../examples/door.rs"]
mod example;

use example::Site;

const POLICY: &str = r#"{"rules":[
    {"id":"calls","effect":"allow","conditions":{"tool_name":["echo","wait"]}},
    {"id":"no-sums","effect":"deny","conditions":{"tool_name":"add"}},
    {"id":"models","effect":"allow","conditions":{"resource_type":"model"}}]}"#;
const ASK: &str = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}},
    {"id":"ask-models","effect":"hitl","conditions":{"resource_type":"model"}}]}"#;
const AGENTS: &str = r#"{"rules":[
    {"id":"readers","effect":"allow","conditions":{"tool_name":"*","agent":"lib*"}},
    {"id":"models","effect":"allow","conditions":{"resource_type":"model","agent":"lib*"}}]}"#;

/// Serves a site over HTTP to the caller of the door.
struct Edge(Arc<mcp::http::Face>, Arc<models::Face>);

impl Handler for Edge {
    async fn handle(&self, request: Request) -> Response {
        match request.head.uri.path() {
            "/mcp" => self.0.handle("echo", &caller(), request).await,
            _ => self.1.handle(Ok(caller()), request).await,
        }
    }
}

fn caller() -> Caller {
    Caller::local("me")
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

/// A call, as both ways make it.
#[derive(Clone, Copy)]
enum Made {
    Tool(&'static str, &'static str),
    Model(&'static str),
}

/// What happens to a call while it is under way.
#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    Nothing,
    Answered(Choice),
    /// Its client leaves after the first sign of progress.
    Left,
}

struct Scenario {
    name: &'static str,
    policy: &'static str,
    call: Made,
    meanwhile: Meanwhile,
    timeout_ms: u64,
    adapt: fn(&mut World),
    /// The kind of end and the reason that the door gives.
    end: (&'static str, Option<&'static str>),
}

const PLAIN: Scenario = Scenario {
    name: "allowed",
    policy: POLICY,
    call: Made::Tool("echo", r#"{"text":"hi"}"#),
    meanwhile: Meanwhile::Nothing,
    timeout_ms: 60_000,
    adapt: |_| {},
    end: ("done", None),
};

fn scenarios() -> Vec<Scenario> {
    let wait = Made::Tool("wait", r#"{"ms":60000}"#);
    let no_calls = |world: &mut World| {
        world.limits.tool_calls_max = 0;
        world.limits.tool_then = gate::limits::Then::Refuse;
    };
    vec![
        PLAIN,
        Scenario {
            name: "denied",
            call: Made::Tool("add", r#"{"a":1,"b":2}"#),
            end: ("denied", Some("denied_by_rule")),
            ..PLAIN
        },
        Scenario {
            name: "no rule",
            policy: AGENTS,
            end: ("denied", Some("no_rule_allows")),
            ..PLAIN
        },
        Scenario {
            name: "limited",
            adapt: no_calls,
            end: ("limited", Some("tool_rate_limited")),
            ..PLAIN
        },
        Scenario {
            name: "asked and approved",
            policy: ASK,
            meanwhile: Meanwhile::Answered(Choice::Allow),
            ..PLAIN
        },
        Scenario {
            name: "asked and refused",
            policy: ASK,
            meanwhile: Meanwhile::Answered(Choice::Deny),
            end: ("denied", Some("approval_denied")),
            ..PLAIN
        },
        Scenario {
            name: "cancelled",
            call: wait,
            meanwhile: Meanwhile::Left,
            end: ("cancelled", None),
            ..PLAIN
        },
        Scenario {
            name: "time of the server",
            call: wait,
            timeout_ms: 300,
            end: ("timed_out", Some("upstream_timeout")),
            ..PLAIN
        },
        Scenario {
            name: "model allowed",
            call: Made::Model(
                r#"{"model":"mock/plain","messages":[{"role":"user","content":"hi"}]}"#,
            ),
            ..PLAIN
        },
        Scenario {
            name: "model streamed",
            call: Made::Model(
                r#"{"model":"mock/plain","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
            ),
            ..PLAIN
        },
        Scenario {
            name: "model denied",
            policy: AGENTS,
            call: Made::Model(r#"{"model":"mock/plain","messages":[]}"#),
            end: ("denied", Some("no_rule_allows")),
            ..PLAIN
        },
        Scenario {
            name: "model approved",
            policy: ASK,
            call: Made::Model(r#"{"model":"mock/plain","messages":[]}"#),
            meanwhile: Meanwhile::Answered(Choice::Allow),
            ..PLAIN
        },
        Scenario {
            name: "provider fails",
            call: Made::Model(r#"{"model":"mock/fault-500","messages":[]}"#),
            end: ("upstream_failed", Some("provider_error")),
            ..PLAIN
        },
    ]
}

/// The members of records that do not depend on time, ids and the program that calls.
fn comparable(records: &[Value]) -> Vec<Value> {
    const MEMBERS: [&str; 20] = [
        "event",
        "decision",
        "reason",
        "final_rule",
        "matched_rules",
        "mcp_method",
        "tool_name",
        "resource_type",
        "subject_id",
        "backend_id",
        "direction",
        "era",
        "hitl_outcome",
        "hitl_approver_id",
        "status",
        "error_code",
        "usage",
        "arguments_digest",
        "unknown_facts",
        "facts",
    ];
    let project = |record: &Value| {
        let kept = MEMBERS
            .iter()
            .filter_map(|name| Some((*name, record.get(name)?)));
        json!(kept.collect::<std::collections::BTreeMap<_, _>>())
    };
    records.iter().map(project).collect()
}

/// Answers the first question of a site.
async fn answer(site: &Site, choice: Choice) {
    loop {
        if let Some(question) = site.gate.approvals().list().first() {
            let answer = Answer {
                choice,
                approver: "p".into(),
                channel: Channel::Cli,
                reason: None,
                unseen: false,
            };
            site.gate.approvals().answer(&question.id, answer).unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn through_the_door(site: &Site, scenario: &Scenario) -> CallEnd {
    let context = CallContext::of(caller());
    match scenario.call {
        Made::Tool(tool, arguments) => {
            let mut call = site.tools.call_tool_with(&context, "echo", tool, arguments);
            loop {
                match call.next().await.unwrap() {
                    ToolEvent::End(outcome) => return outcome.call.end,
                    ToolEvent::Progress(_) if scenario.meanwhile == Meanwhile::Left => {
                        return CallEnd::Cancelled;
                    }
                    _ => {}
                }
            }
        }
        Made::Model(body) => {
            let headers = http::HeaderMap::new();
            let endpoint = dialects::Endpoint::Chat;
            let call = site
                .models
                .complete_body(&context, endpoint, body.as_bytes(), &headers);
            let mut call = call.await;
            loop {
                if let ModelEvent::End(outcome) = call.next().await.unwrap() {
                    return outcome.call.end;
                }
            }
        }
    }
}

async fn through_the_edge(at: SocketAddr, scenario: &Scenario) {
    let (path, headers, body) = match scenario.call {
        Made::Tool(tool, arguments) => {
            let headers = format!(
                "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
            );
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"progressToken":"p"}}}}}}"#
            );
            ("/mcp", headers, body)
        }
        Made::Model(body) => ("/v1/chat/completions", String::new(), body.to_owned()),
    };
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    loop {
        let count = stream.read_buf(&mut read).await.unwrap();
        let has_begun = String::from_utf8_lossy(&read).contains("notifications/progress");
        if count == 0 || (has_begun && scenario.meanwhile == Meanwhile::Left) {
            return;
        }
    }
}

/// Returns how many calls have an operation record.
fn ended(site: &Site) -> u64 {
    let outcomes = site.gate.tallied().outcomes;
    outcomes.iter().map(|(_, count)| count).sum()
}

/// Runs a scenario and returns its records; through the door also its end.
async fn run(scenario: &Scenario, is_door: bool) -> (Option<CallEnd>, Vec<Value>) {
    let way = if is_door { "in" } else { "out" };
    let name = format!("{}-{way}", scenario.name.replace(' ', "-"));
    let site = Site::new(&name, scenario.policy, scenario.timeout_ms, scenario.adapt).unwrap();
    let answering = async {
        if let Meanwhile::Answered(choice) = scenario.meanwhile {
            answer(&site, choice).await;
        }
    };
    let end = if is_door {
        let (end, ()) = tokio::join!(through_the_door(&site, scenario), answering);
        Some(end)
    } else {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let edge = Arc::new(Edge(Arc::clone(&site.tools), Arc::clone(&site.models)));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = serve(
            Listener::from(listener),
            net::http::server::Options::default(),
            edge,
            async move { drop(stopped.await) },
            std::future::pending(),
        );
        let serving = tokio::spawn(serving);
        let face = Arc::clone(&site.tools);
        let looking_after = tokio::spawn(async move {
            loop {
                face.look_after();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        tokio::join!(through_the_edge(at, scenario), answering);
        if scenario.meanwhile == Meanwhile::Left {
            // The client has gone; its call ends on a task of the edge.
            while ended(&site) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        looking_after.abort();
        drop(stop);
        serving.await.unwrap();
        None
    };
    (end, site.records().await.unwrap())
}

#[test]
fn a_call_in_process_leaves_the_records_of_a_clients_call() {
    for scenario in scenarios() {
        let (end, inside) = block_on(run(&scenario, true));
        let (_, outside) = block_on(run(&scenario, false));
        let end = end.unwrap();
        let name = scenario.name;
        assert_eq!((end.word(), end.reason()), scenario.end, "{name}: {end:?}");
        assert!(!outside.is_empty(), "{name}: no records");
        assert_eq!(comparable(&inside), comparable(&outside), "{name}");
    }
}

#[test]
fn the_example_makes_a_call_of_each_kind() {
    let records = block_on(example::run()).unwrap();
    let ended: Vec<(&str, &str)> = records
        .iter()
        .filter_map(|record| {
            let status = record.get("status")?.as_str()?;
            Some((record["run_id"].as_str()?, status))
        })
        .collect();
    let run = "example-1";
    assert_eq!(
        ended,
        [(run, "Success"), (run, "Success"), (run, "Cancelled")]
    );
    let decided = |record: &&Value| record["event"] == "policy_decision";
    let decisions: Vec<&Value> = records.iter().filter(decided).collect();
    let model_op = &decisions[0]["op"];
    assert!(decisions[0].get("parent_op").is_none());
    assert_eq!(decisions[1]["parent_op"], *model_op);
    assert_eq!(decisions[2]["parent_op"], *model_op);
    for decision in decisions {
        assert_eq!(decision["agent"], "librarian", "{decision}");
    }
}

#[test]
fn the_outcome_names_the_operation_of_its_record() {
    block_on(async {
        for arguments in [r#"{"text":"hi"}"#, r#"{"a":1,"b":2}"#] {
            let is_allowed = arguments.contains("text");
            let tool = if is_allowed { "echo" } else { "add" };
            let site = Site::new(&format!("op-{tool}"), POLICY, 60_000, |_| {}).unwrap();
            let context = CallContext::of(caller());
            let outcome = end_of(&site, &context, tool, arguments).await;
            assert_eq!(outcome.call.end.is_done(), is_allowed);
            let op = outcome.call.op.unwrap().to_string();
            let refused = outcome.answer.is_some_and(|answer| answer.is_tool_error);
            assert_eq!(
                refused, !is_allowed,
                "a refusal is told to a model as a result"
            );
            let records = site.records().await.unwrap();
            assert!(
                records.iter().all(|record| record["op"] == op),
                "{records:?}"
            );
        }
    });
}

async fn end_of(
    site: &Site,
    context: &CallContext,
    tool: &str,
    arguments: &str,
) -> Box<ToolOutcome> {
    let mut call = site.tools.call_tool_with(context, "echo", tool, arguments);
    loop {
        if let ToolEvent::End(outcome) = call.next().await.unwrap() {
            return outcome;
        }
    }
}

#[test]
fn a_question_is_an_event_or_ends_the_call_as_its_caller_wishes() {
    block_on(async {
        let site = Site::new("question", ASK, 60_000, |_| {}).unwrap();
        let mut context = CallContext::of(caller());
        let arguments = r#"{"text":"hi"}"#;
        let mut call = site
            .tools
            .call_tool_with(&context, "echo", "echo", arguments);
        let Some(ToolEvent::Question(question)) = call.next().await else {
            panic!("no question");
        };
        assert_eq!(question.rule, "ask");
        drop(call);
        context.approval = ApprovalWish::Withdraw;
        let outcome = end_of(&site, &context, "echo", arguments).await;
        assert_eq!(outcome.call.end.reason(), Some("approval_withdrawn"));
        let records = site.records().await.unwrap();
        let outcomes: Vec<&Value> = records.iter().map(|own| &own["hitl_outcome"]).collect();
        assert_eq!(outcomes, ["withdrawn", "withdrawn"]);
    });
}

#[test]
fn what_is_no_call_ends_as_that() {
    block_on(async {
        let site = Site::new("none", POLICY, 60_000, |_| {}).unwrap();
        let mut context = CallContext::of(caller());
        for (arguments, kind) in [
            ("{", "malformed"),
            ("[]", "malformed"),
            (r#"{"a":1,"a":2}"#, "malformed"),
        ] {
            let outcome = end_of(&site, &context, "echo", arguments).await;
            assert_eq!(outcome.call.end.word(), kind, "{arguments}");
        }
        // Arguments cannot become other members of the request.
        let smuggled = r#"{"text":"hi"},"name":"add""#;
        let outcome = end_of(&site, &context, "echo", smuggled).await;
        assert_eq!(outcome.call.end.word(), "malformed");
        context.caller.servers = Some(Arc::from(["other".into()]));
        let outcome = end_of(&site, &context, "echo", r#"{"text":"hi"}"#).await;
        assert_eq!(outcome.call.end.reason(), Some("server_unknown"));
        context.caller.servers = None;
        let listed = site.tools.list_tools(&context, "echo").await.unwrap();
        let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["echo", "wait"], "denied tools are not listed");
        assert!(
            listed
                .iter()
                .all(|tool| tool.definition["inputSchema"].is_object())
        );
    });
}

#[test]
fn a_run_spends_no_more_than_its_own_limit() {
    block_on(async {
        let site = Site::new("budget", POLICY, 60_000, |_| {}).unwrap();
        let mut context = CallContext::of(caller());
        context.budget = Some(RunBudget {
            account: "r".into(),
            tokens: Some(250),
            cost_micros: None,
        });
        let body = r#"{"model":"mock/plain","max_tokens":150,"messages":[{"role":"user","content":"hi"}]}"#;
        let mut words = Vec::new();
        let mut used = 0;
        for _ in 0..40 {
            let headers = http::HeaderMap::new();
            let endpoint = dialects::Endpoint::Chat;
            let call = site
                .models
                .complete_body(&context, endpoint, body.as_bytes(), &headers);
            let mut call = call.await;
            while let Some(event) = call.next().await {
                if let ModelEvent::End(outcome) = event {
                    let usage = outcome.usage;
                    used += usage.input_tokens.unwrap_or(0) + usage.output_tokens.unwrap_or(0);
                    words.push((outcome.call.end.word(), outcome.call.end.reason()));
                }
            }
        }
        assert_eq!(words[0], ("done", None));
        assert_eq!(words.last(), Some(&("limited", Some("budget_spent"))));
        assert!((1..=250).contains(&used), "{used}");
        site.records().await.unwrap();
    });
}

#[test]
fn a_deadline_ends_also_a_wait_for_a_person() {
    block_on(async {
        let site = Site::new("late", ASK, 60_000, |_| {}).unwrap();
        let end = Instant::now() + Duration::from_millis(200);
        let context = CallContext::of(caller()).until(end);
        let outcome = end_of(&site, &context, "echo", r#"{"text":"hi"}"#).await;
        assert_eq!(outcome.call.end.reason(), Some("deadline_over"));
        let records = site.records().await.unwrap();
        assert_eq!(records[0]["hitl_outcome"], "withdrawn");
    });
}
