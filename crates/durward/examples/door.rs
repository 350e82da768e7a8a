//! Calls a model and tools in process, through the gate: `cargo run -p durward --example door`.

#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dialects::Endpoint;
use gate::journal::audit::{Filter, each};
use gate::journal::{Journal, JournalOptions, Keys, SyncPolicy};
use gate::policy::Policy;
use gate::{Caller, Clock, Gate, PeerId, RunId, World};
use mcp::call::ServerOptions;
use mcp::http::door::{ToolEvent, ToolOutcome, ToolStream};
use mcp::upstream::Means;
use models::door::{ModelEvent, ModelOutcome, ModelStream};
use models::mock::{MockProvider, Options};
use serde_json::Value;
use toolkit::door::CallContext;
use toolkit::mcp::Builtin;

const POLICY: &str = r#"{"rules":[
    {"id":"tools","effect":"allow","conditions":{"tool_name":["echo","wait"],"agent":"librarian"}},
    {"id":"models","effect":"allow","conditions":{"resource_type":"model"}}]}"#;

struct SystemTimes(Instant);

impl Clock for SystemTimes {
    fn wall_ms(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(0)
    }

    fn mono_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A gate with the built-in server `echo` and the scripted provider `mock` behind it.
pub struct Site {
    /// Judges, limits and records every call.
    pub gate: Arc<Gate>,
    /// Servers of tools.
    pub tools: Arc<mcp::http::Face>,
    /// Providers of models.
    pub models: Arc<models::Face>,
    journal: Arc<Journal>,
    directory: PathBuf,
}

impl Site {
    /// Judges by this policy, after `adapt` has changed what else calls are judged by.
    pub fn new(
        name: &str,
        policy: &str,
        call_timeout_ms: u64,
        adapt: impl FnOnce(&mut World),
    ) -> Result<Self, Box<dyn Error>> {
        let directory = std::env::temp_dir().join(format!("door-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let mut random = |bytes: &mut [u8]| bytes.fill(7);
        let keys = Keys::ephemeral(&mut random);
        let options = JournalOptions {
            sync: SyncPolicy::Never,
            ..JournalOptions::default()
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemTimes(Instant::now()));
        let now_ms = clock.wall_ms();
        let journal = Journal::open(&directory, &keys, options, [7; 16], now_ms, &mut random)?;
        let journal = Arc::new(journal);
        let mut world = World {
            policy: Policy::load(policy, None, &[])?,
            version: "v1".into(),
            limits: gate::limits::Limits::default(),
            approval: gate::approval::Options::default(),
            inspect: Arc::default(),
            flow: Arc::default(),
        };
        adapt(&mut world);
        let gate = Arc::new(Gate::new(world, Arc::clone(&journal), clock, 7));
        let echo = Builtin::new(PeerId::server("echo"), Arc::new(echo::EchoServer::new()?))?;
        let server = ServerOptions {
            name: "echo".into(),
            gate: Arc::clone(&gate),
            means: Means::Builtin(echo),
            share: Default::default(),
            processes_max: 1,
            call_timeout_ms,
            tool_timeouts_ms: Default::default(),
            breaker: Default::default(),
            view: None,
            roles: Default::default(),
            descriptions: Default::default(),
            pins: Default::default(),
            refusals: Default::default(),
        };
        let fill = Box::new(|bytes: &mut [u8]| {
            bytes.fill(7);
            Ok(())
        });
        let servers = vec![server];
        let tools = mcp::http::Face::new(Arc::clone(&gate), servers, Default::default(), fill);
        let options = Options { token_ms: 0 };
        let mock = MockProvider::new("mock", vec!["plain".into(), "fault-500".into()], options);
        let catalogue =
            models::Catalogue::new(vec![Arc::new(mock)], &[], 5_000, Default::default())?;
        let prices = Arc::new(models::Prices::new(Default::default(), 100));
        let own = Default::default();
        let models = models::Face::new(Arc::clone(&gate), catalogue, None, prices, own, 7);
        Ok(Self {
            gate,
            tools: Arc::new(tools),
            models: Arc::new(models),
            journal,
            directory,
        })
    }

    /// Ends the journal and returns the records of calls.
    pub async fn records(self) -> Result<Vec<Value>, Box<dyn Error>> {
        self.tools.close().await;
        self.journal.close(self.gate.wall_ms(), "end")?;
        let mut records: Vec<Value> = Vec::new();
        each(&self.directory, &Filter::default(), &mut |body| {
            let record: Option<Value> = serde_json::from_slice(body).ok();
            records.extend(record.filter(|record| record.get("op").is_some()));
        })?;
        std::fs::remove_dir_all(&self.directory)?;
        Ok(records)
    }
}

/// Prints the events of a tool's call and returns its end.
async fn follow_tool(mut call: ToolStream) -> Option<Box<ToolOutcome>> {
    while let Some(event) = call.next().await {
        match event {
            ToolEvent::End(outcome) => return Some(outcome),
            event => println!("  {event:?}"),
        }
    }
    None
}

/// Prints the events of a model's call and returns its end.
async fn follow_model(mut call: ModelStream) -> Option<Box<ModelOutcome>> {
    while let Some(event) = call.next().await {
        match event {
            ModelEvent::End(outcome) => return Some(outcome),
            event => println!("  {event:?}"),
        }
    }
    None
}

/// Makes a call of a model, one of a tool and one that is cancelled; returns the records of the run.
pub async fn run() -> Result<Vec<Value>, Box<dyn Error>> {
    let site = Site::new("example", POLICY, 60_000, |_| {})?;
    let mut context = CallContext::of(Caller::local("me")).with_agent("librarian");
    if let Some(run) = RunId::named("example-1") {
        context = context.in_run(run);
    }
    let body =
        r#"{"model":"mock/plain","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let headers = http::HeaderMap::new();
    let call = site
        .models
        .complete_body(&context, Endpoint::Chat, body.as_bytes(), &headers);
    let Some(outcome) = follow_model(call.await).await else {
        return Err("the call of the model has no end".into());
    };
    println!("model: {} {:?}", outcome.call.end.word(), outcome.usage);
    if let Some(op) = outcome.call.op {
        context = context.under(op);
    }
    let call = site
        .tools
        .call_tool_with(&context, "echo", "echo", r#"{"text":"hi"}"#);
    if let Some(outcome) = follow_tool(call).await {
        println!("tool: {}", outcome.call.end.word());
    }
    let mut call = site
        .tools
        .call_tool_with(&context, "echo", "wait", r#"{"ms":60000}"#);
    while call
        .next()
        .await
        .is_some_and(|event| !matches!(event, ToolEvent::Progress(_)))
    {}
    drop(call);
    println!("tool: dropped, which cancels it");
    site.records().await
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for record in runtime.block_on(run())? {
        println!("{record}");
    }
    Ok(())
}
