//! One store, many views: a server whose jobs, outputs and cursors are seen through the protocol,
//! as simulations and commands on other hosts will show them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::jobs::{Bounds, End, JobId, Jobs, NewJob, Recovery};
use crate::outputs::{OutputBounds, Outputs, shown};
use crate::results::Cursors;
use crate::server::{
    Answer, Args, Failure, Identity, Outcome, ReplySink, ToolCall, ToolDef, ToolServer,
};
use crate::store::Store;
use crate::store::tests::Place;
use crate::trial::Trial;

const NOW: i64 = 1_795_232_289_123;

struct Counting {
    tools: Vec<ToolDef>,
    jobs: Jobs,
    outputs: Outputs,
    cursors: Cursors,
}

fn failed(error: &dyn std::error::Error, label: &'static str) -> Failure {
    Failure::new(label, error.to_string())
}

impl Counting {
    fn new(store: &Arc<Store>) -> Self {
        let tool = |name, properties: Value| {
            let input =
                json!({"type": "object", "properties": properties, "additionalProperties": false});
            ToolDef::new(name, "Title", "Does it.", input).unwrap()
        };
        let text = json!({"type": "string"});
        Self {
            tools: vec![
                tool(
                    "start",
                    json!({"to": {"type": "integer", "default": 3}, "key": text}),
                ),
                tool("status", json!({"job": text})),
                tool("output", json!({"output": text, "cursor": text})),
                tool("cancel", json!({"job": text})),
            ],
            jobs: Jobs::open(Arc::clone(store), Bounds::default(), NOW)
                .unwrap()
                .0,
            outputs: Outputs::open(store, OutputBounds::default()).unwrap(),
            cursors: Cursors::new(store),
        }
    }

    /// What a worker thread does.
    fn work(&self) -> bool {
        let Some(claimed) = self.jobs.claim(&["count"], NOW).unwrap() else {
            return false;
        };
        let (handle, mut output) = self.outputs.create(&claimed.job.caller, 1, NOW).unwrap();
        for number in 1..=claimed.job.request["to"].as_u64().unwrap() {
            output.append(0, format!("{number}\n").as_bytes()).unwrap();
        }
        output.finish().unwrap();
        let end = End::Succeeded(json!({"output": handle}));
        self.jobs.finish(&claimed.attempt, end, NOW).unwrap();
        true
    }

    fn answer(&self, tool: &str, caller: &str, args: Args<'_>) -> Result<Answer, Failure> {
        let job = || Ok::<_, Failure>(JobId::of(args.text("job")?));
        let job = match tool {
            "start" => {
                let new = NewJob {
                    caller: caller.to_owned(),
                    kind: "count",
                    request: json!({"to": args.count("to")?}),
                    timeout_ms: None,
                    retries_max: 0,
                    recovery: Recovery::Retry,
                    idempotency_key: args.text("key").ok().map(str::to_owned),
                };
                self.jobs.submit(new, NOW).map(|submitted| submitted.job)
            }
            "status" => self.jobs.get(caller, &job()?),
            "cancel" => self.jobs.cancel(caller, &job()?, NOW),
            _ => return self.page(caller, args),
        };
        let job = job.map_err(|error| failed(&error, error.label()))?;
        Ok(Answer::data(json!({
            "job": job.id.as_str(), "state": job.state.label(), "result": job.result
        })))
    }

    fn page(&self, caller: &str, args: Args<'_>) -> Result<Answer, Failure> {
        let handle = args.text("output")?;
        let parts = [caller.as_bytes(), handle.as_bytes()];
        let at = match args.text("cursor") {
            Ok(cursor) => {
                let position = self.cursors.read(&parts, cursor);
                let position = position.map_err(|error| failed(&error, "bad_cursor"))?;
                u64::from_be_bytes(position.try_into().unwrap())
            }
            Err(_) => 0,
        };
        let stream = self.outputs.stream(caller, handle, 0, NOW);
        let stream = stream.map_err(|error| failed(&error, "no_output"))?;
        let page = stream.page(at, 4).unwrap();
        let next = page
            .next
            .map(|at| self.cursors.issue(&parts, &at.to_be_bytes()).unwrap());
        Ok(Answer::data(
            json!({"data": shown(&page.bytes).data, "next": next}),
        ))
    }
}

impl ToolServer for Counting {
    fn identity(&self) -> Identity {
        Identity {
            name: "counting",
            title: "Counting",
            version: "1",
            instructions: "",
        }
    }

    fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    async fn call(&self, call: ToolCall, _reply: ReplySink) -> Outcome {
        let caller = Arc::clone(&call.session().caller);
        self.answer(call.tool(), &caller, call.args()).into()
    }
}

async fn call(trial: &Trial, caller: &str, tool: &str, arguments: Value) -> Value {
    let session = trial.session(caller);
    let result = trial.call(&session, caller, tool, arguments).await.unwrap();
    match result.get("isError") {
        Some(_) => result["_meta"][crate::mcp::META_FAILURE]["code"].clone(),
        None => result["structuredContent"].clone(),
    }
}

#[tokio::test]
async fn a_job_its_output_and_its_pages_are_seen_through_the_protocol() {
    let place = Place::new();
    let server = Arc::new(Counting::new(&place.open()));
    let object: Arc<dyn crate::server::DynToolServer> = server.clone();
    let trial = Trial::new(object, None).unwrap();

    let started = call(&trial, "ada", "start", json!({"key": "k"})).await;
    assert_eq!(started["state"], "queued");
    let again = call(&trial, "ada", "start", json!({"key": "k", "to": 3})).await;
    assert_eq!(
        again["job"], started["job"],
        "the default is part of the request"
    );
    let conflict = call(&trial, "ada", "start", json!({"key": "k", "to": 4})).await;
    assert_eq!(conflict, "idempotency_conflict");

    assert!(server.work());
    let job = json!({"job": started["job"]});
    let done = call(&trial, "ada", "status", job.clone()).await;
    assert_eq!(done["state"], "succeeded");
    assert_eq!(
        call(&trial, "bob", "status", job.clone()).await,
        "job_not_found"
    );
    assert_eq!(
        call(&trial, "ada", "cancel", job).await["state"],
        "succeeded"
    );

    let output = done["result"]["output"].clone();
    let first = call(&trial, "ada", "output", json!({"output": output})).await;
    assert_eq!(first["data"], "1\n2\n");
    let next = json!({"output": output, "cursor": first["next"]});
    let second = call(&trial, "ada", "output", next.clone()).await;
    assert_eq!(second, json!({"data": "3\n", "next": null}));
    assert_eq!(
        call(&trial, "bob", "output", json!({"output": output})).await,
        "no_output"
    );
    assert_eq!(call(&trial, "bob", "output", next).await, "bad_cursor");

    let waits = call(&trial, "bob", "start", json!({})).await;
    let cancelled = call(&trial, "bob", "cancel", json!({"job": waits["job"]})).await;
    assert_eq!(cancelled["state"], "cancelled");
    assert!(!server.work(), "nothing is left to do");
}
