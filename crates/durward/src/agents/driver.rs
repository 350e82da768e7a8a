//! Drives a run: does what its state machine says, over the calls in process.

use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ::agents::chat::{
    AgentRequest, AnswerStamp, DONE, WAITING, WholeAnswer, calls_json, step_text,
};
use ::agents::delta::read_event;
use ::agents::plan::{RunPlan, ToolSpec};
use ::agents::prompt::{TemplateValues, render_instruction, system_text};
use ::agents::run::{ModelFault, Run, RunAction, RunEnd, RunFault, RunInput, StepUsage};
use ::models::door::{ModelEvent, ModelOutcome, ModelStream};
use dialects::Endpoint;
use gate::journal::{OpId, Usage};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolkit::door::{CallContext, CallEnd, RunBudget};

use super::NamedAgent;
use super::output::{FailedRun, PartSender, ReplyPart};
use super::tools::{EndedCall, call_tool, list_tools};
use crate::local;

/// How long the end of a reply is waited for that does not matter, before its call is cancelled.
const CUT_GRACE: Duration = Duration::from_millis(20);
/// How long a stream may be silent before a comment keeps it open.
const WAITING_AFTER: Duration = Duration::from_secs(15);

const STEPS: HeaderName = HeaderName::from_static("x-durward-steps");
const COST: HeaderName = HeaderName::from_static("x-durward-cost");

/// A run to make.
pub struct RunJob {
    /// The agent.
    pub named: Arc<NamedAgent>,
    /// Name by which it was called.
    pub model: String,
    /// What its caller asks.
    pub asked: AgentRequest,
    /// Context of the calls that it makes.
    pub context: CallContext,
    /// Its own call.
    pub op: OpId,
    /// Models that it calls.
    pub models: Arc<::models::Face>,
    /// Servers that it calls.
    pub tools: Arc<mcp::http::Face>,
    /// Whether its answer streams.
    pub streams: bool,
}

type RunningCall = Pin<Box<dyn Future<Output = EndedCall> + Send>>;

/// Writes the answer, streamed or whole.
struct AnswerWriter {
    stamp: AnswerStamp,
    parts: PartSender,
    whole: Option<WholeAnswer>,
    has_begun: bool,
}

impl AnswerWriter {
    async fn send(&mut self, event: String) {
        if !self.has_begun {
            self.has_begun = true;
            let role = json!({ "role": "assistant", "content": "" });
            let first = self.stamp.delta(role, None);
            self.parts.send(ReplyPart::Bytes(first.into())).await;
        }
        self.parts.send(ReplyPart::Bytes(event.into())).await;
    }

    async fn reasoning(&mut self, text: String) {
        match &mut self.whole {
            Some(whole) => whole.reasoning.push_str(&text),
            None => {
                let event = self.stamp.delta(json!({ "reasoning_content": text }), None);
                self.send(event).await;
            }
        }
    }

    async fn content(&mut self, text: String) {
        match &mut self.whole {
            Some(whole) => whole.content.push_str(&text),
            None => {
                let event = self.stamp.delta(json!({ "content": text }), None);
                self.send(event).await;
            }
        }
    }

    async fn wait(&mut self) {
        if self.whole.is_none() {
            self.send(WAITING.to_owned()).await;
        }
    }

    async fn end(&mut self, finish: &str, usage: StepUsage, steps: u64) {
        let Some(whole) = &self.whole else {
            let last = self.stamp.delta(json!({}), Some(finish));
            self.send(last).await;
            let usage = self.stamp.usage_event(usage);
            self.send(usage).await;
            return self.send(DONE.to_owned()).await;
        };
        let mut headers = HeaderMap::new();
        headers.insert(STEPS, HeaderValue::from(steps));
        let (dollars, rest) = (usage.cost_micros / 1_000_000, usage.cost_micros % 1_000_000);
        if let Ok(cost) = HeaderValue::try_from(format!("{dollars}.{rest:06}")) {
            headers.insert(COST, cost);
        }
        let body = whole.body(&self.stamp, finish, usage);
        self.parts.send(ReplyPart::Headers(headers)).await;
        self.parts.send(ReplyPart::Bytes(body.into())).await;
    }
}

/// Returns what makes the run and writes its answer.
pub fn drive(
    job: RunJob,
) -> impl FnOnce(PartSender) -> Pin<Box<dyn Future<Output = Result<(), FailedRun>> + Send>> {
    move |parts| Box::pin(async move { make_run(job, parts).await })
}

async fn make_run(mut job: RunJob, parts: PartSender) -> Result<(), FailedRun> {
    let began = Instant::now();
    let now_ms = move || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let limits = job.named.agent.limits;
    let created = u64::try_from(local::now_ms() / 1_000).unwrap_or(0);
    let mut writer = AnswerWriter {
        stamp: AnswerStamp {
            id: format!("chatcmpl-{}", job.op),
            created,
            model: job.model.clone(),
        },
        parts,
        whole: (!job.streams).then(WholeAnswer::default),
        has_begun: false,
    };
    let time = Duration::from_millis(limits.time_ms);
    job.context.deadline = began.checked_add(time);
    let (tools, missing) = list_tools(&job.named, &job.context, &job.tools).await;
    for server in missing {
        let text = format!("the tools of {server} are not available\n");
        if job.named.agent.show == ::agents::plan::StepDisplay::Steps {
            writer.reasoning(text).await;
        }
    }
    job.context.budget = Some(RunBudget {
        account: format!("run/{}", job.op).into(),
        tokens: Some(limits.tokens),
        cost_micros: limits.cost_micros,
    });
    let plan = plan_of(&mut job, tools);
    let mut run = Run::new(plan);
    let mut actions: VecDeque<RunAction> = run.step(now_ms(), RunInput::Start).into();
    let mut model: Option<ModelStream> = None;
    let mut calls: Vec<RunningCall> = Vec::new();
    loop {
        while let Some(action) = actions.pop_front() {
            match action {
                RunAction::AskModel { body, until_ms } => {
                    let context = job.context_until(began, until_ms);
                    let headers = HeaderMap::new();
                    let ask = job.models.complete_body(
                        &context,
                        Endpoint::Chat,
                        body.as_bytes(),
                        &headers,
                    );
                    model = Some(ask.await);
                }
                RunAction::CutModel => {
                    let usage = match model.take() {
                        Some(stream) => cut_model(stream).await,
                        None => StepUsage::default(),
                    };
                    let end = RunInput::ModelEnd { usage, fault: None };
                    actions.extend(run.step(now_ms(), end));
                }
                RunAction::CallTool(call) => {
                    let context = job.context_until(began, call.until_ms);
                    let (models, tools) = (Arc::clone(&job.models), Arc::clone(&job.tools));
                    calls.push(Box::pin(call_tool(call, context, models, tools)));
                }
                RunAction::EmitReasoning(text) => writer.reasoning(text).await,
                RunAction::EmitStep(step) => writer.reasoning(step_text(&step)).await,
                RunAction::EmitContent(text) => writer.content(text).await,
                RunAction::EmitCalls(handed) => match &mut writer.whole {
                    Some(whole) => whole.calls = handed,
                    None => {
                        let calls = calls_json(&handed, true);
                        let event = writer.stamp.delta(json!({ "tool_calls": calls }), None);
                        writer.send(event).await;
                    }
                },
                RunAction::End(RunEnd::Answered(finish)) => {
                    writer.end(finish.word(), run.usage(), run.steps()).await;
                    return Ok(());
                }
                RunAction::End(RunEnd::Failed(fault)) => {
                    log_fault(&job, &fault);
                    return Err(FailedRun::from(&fault));
                }
                RunAction::End(RunEnd::Cancelled) => return Err(FailedRun::cancelled()),
            }
        }
        let input = tokio::select! {
            biased;
            event = next_event(&mut model) => match input_of(event, &mut model) {
                Some(input) => input,
                None => continue,
            },
            ended = next_call(&mut calls) => RunInput::ToolDone {
                number: ended.number,
                text: ended.text,
                end: ended.end,
                usage: ended.usage,
            },
            () = sleep(WAITING_AFTER) => {
                writer.wait().await;
                continue;
            }
        };
        actions.extend(run.step(now_ms(), input));
    }
}

fn log_fault(job: &RunJob, fault: &RunFault) {
    tracing::debug!(
        agent = job.model,
        reason = fault.label(),
        "a run has no answer: {fault}"
    );
}

impl RunJob {
    /// Returns the context of a step that ends at this time of the run.
    fn context_until(&self, began: Instant, until_ms: u64) -> CallContext {
        let context = self.context.clone();
        match began.checked_add(Duration::from_millis(until_ms)) {
            Some(until) => context.until(until),
            None => context,
        }
    }
}

fn plan_of(job: &mut RunJob, tools: Vec<ToolSpec>) -> RunPlan {
    let NamedAgent { agent, pattern } = &*job.named;
    let asked = std::mem::take(&mut job.asked);
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let values = TemplateValues {
        date: &local::date(),
        caller: &job.context.caller.subject,
        tools: &names.join(", "),
    };
    // It was rendered when the configuration was read.
    let instruction = render_instruction(&agent.instruction, values)
        .unwrap_or_else(|_| agent.instruction.clone());
    let instruction = match pattern.system.is_empty() {
        true => instruction,
        false => format!("{}\n\n{instruction}", pattern.system),
    };
    let mut parameters = agent.parameters.clone();
    for (name, value) in asked.parameters {
        match parameters.iter_mut().find(|(own, _)| *own == name) {
            Some((_, own)) => *own = value,
            None => parameters.push((name, value)),
        }
    }
    RunPlan {
        model: agent.model.clone(),
        encoding: pattern.encoding,
        system: system_text(pattern.encoding, &tools, &instruction, &asked.system),
        tools,
        caller_tools: asked.tools,
        messages: asked.messages,
        parameters,
        limits: agent.limits,
        on_limit: agent.on_limit,
        display: agent.show,
    }
}

async fn next_event(model: &mut Option<ModelStream>) -> Option<ModelEvent> {
    match model {
        Some(stream) => stream.next().await,
        None => pending().await,
    }
}

/// Returns the end of whichever call ends first.
async fn next_call(calls: &mut Vec<RunningCall>) -> EndedCall {
    poll_fn(|cx| {
        for at in 0..calls.len() {
            if let Some(call) = calls.get_mut(at)
                && let Poll::Ready(ended) = call.as_mut().poll(cx)
            {
                drop(calls.swap_remove(at));
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}

fn input_of(event: Option<ModelEvent>, model: &mut Option<ModelStream>) -> Option<RunInput> {
    match event {
        Some(ModelEvent::Event(event)) => read_event(&event).map(RunInput::ModelDelta),
        Some(ModelEvent::Reply(reply)) => read_event(&reply.body).map(RunInput::ModelDelta),
        Some(ModelEvent::Usage(_)) => None,
        Some(ModelEvent::End(outcome)) => {
            *model = None;
            Some(RunInput::ModelEnd {
                usage: step_usage(outcome.usage),
                fault: fault_of(&outcome),
            })
        }
        None => {
            *model = None;
            Some(RunInput::ModelEnd {
                usage: StepUsage::default(),
                fault: None,
            })
        }
    }
}

/// Reads the end of a reply that does not matter, or cancels its call.
async fn cut_model(mut stream: ModelStream) -> StepUsage {
    let rest = async {
        while let Some(event) = stream.next().await {
            if let ModelEvent::End(outcome) = event {
                return step_usage(outcome.usage);
            }
        }
        StepUsage::default()
    };
    timeout(CUT_GRACE, rest).await.unwrap_or_default()
}

fn step_usage(usage: Usage) -> StepUsage {
    StepUsage {
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cached: usage.cached_tokens.unwrap_or(0),
        reasoning: usage.reasoning_tokens.unwrap_or(0),
        cost_micros: usage.cost_micros.unwrap_or(0),
    }
}

fn fault_of(outcome: &ModelOutcome) -> Option<ModelFault> {
    let end = &outcome.call.end;
    if end.is_done() {
        return None;
    }
    let status = match end {
        CallEnd::Denied(_) => 403,
        CallEnd::Limited(_) => 429,
        CallEnd::TimedOut(_) => 504,
        CallEnd::Malformed(_) => 400,
        CallEnd::NotFound(_) => 404,
        _ => 502,
    };
    let body = outcome.error_reply.as_ref();
    let body: Option<Value> = body.and_then(|(_, body)| serde_json::from_slice(body).ok());
    let failed = body
        .as_ref()
        .and_then(|body| body.pointer("/error/failed_generation"));
    Some(ModelFault {
        label: end.reason().unwrap_or("cancelled").to_owned(),
        message: format!("the agent's model cannot be called: {end}"),
        status,
        is_limit: matches!(end, CallEnd::Limited(_)),
        failed_generation: failed.and_then(Value::as_str).map(str::to_owned),
    })
}
