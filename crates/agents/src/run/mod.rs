//! State machine of a run: inputs are what happened, actions are what is to be done. No I/O, no clock.
//!
//! The driver passes the time with each input, does what the actions say, in their order, and reports back. A run
//! asks the model, calls tools, asks again, and ends with an answer or a fault of a closed set. Limits are checked
//! before each step, and an eighth of tokens, cost and time is kept for the answer at a limit.

mod turn;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::delta::{FinishReason, ModelDelta};
use crate::observation::{cut_result, encode_observation};
use crate::plan::{
    CallEncoding, LimitKind, LimitPolicy, RESERVE_DIVISOR, RunPlan, StepDisplay, ToolSpec,
};
use crate::prompt::limit_text;
use crate::repair::{self, ParsedCall};
use crate::tags::{ActionBody, TagEvent};
use turn::{CallDraft, ModelTurn};

/// Malformed replies in a row after which a run ends.
pub const MALFORMED_MAX: u32 = 3;
/// Equal calls with equal results after which a run ends.
pub const REPEATS_MAX: u32 = 3;
/// Denials of one call after which its tool is removed.
const DENIALS_MAX: u32 = 2;
/// Most calls that one reply may ask for.
const CALLS_MAX: usize = 128;
/// Rest of the tokens below which requests name a maximum: without one the gate reserves more than is left.
const SMALL_REST: u64 = 40_000;
/// Most characters of a foreign text in a message of ours.
const SHOWN_CHARS_MAX: usize = 64;

/// Tokens and cost of one call of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepUsage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cached: u64,
    /// Tokens of thoughts, within those written.
    pub reasoning: u64,
    /// Cost, in millionths of a dollar.
    pub cost_micros: u64,
}

impl StepUsage {
    fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
    }

    fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// Why a call of the model has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFault {
    /// Closed label of the gate or the provider.
    pub label: String,
    /// Sentence for the caller.
    pub message: String,
    /// HTTP status of the fault.
    pub status: u16,
    /// A limit or budget refused the call.
    pub is_limit: bool,
    /// Text that the provider could not read as a tool call (`failed_generation`).
    pub failed_generation: Option<String>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEnd {
    /// It has a result.
    Done,
    /// The tool or its server reports an error.
    Failed,
    /// The gate refused it.
    Denied,
}

/// What happened.
#[derive(Debug)]
pub enum RunInput {
    /// The run begins.
    Start,
    /// The model wrote something.
    ModelDelta(ModelDelta),
    /// The model's reply is over.
    ModelEnd {
        /// Its use of tokens.
        usage: StepUsage,
        /// Why it has no whole reply.
        fault: Option<ModelFault>,
    },
    /// A tool call is over.
    ToolDone {
        /// Number of the call.
        number: usize,
        /// Text for the model.
        text: String,
        /// How it ended.
        end: ToolEnd,
        /// Its use of tokens: only a further agent has one.
        usage: StepUsage,
    },
    /// The caller withdrew the run.
    Cancelled,
}

/// A tool call to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Number within the reply; results come back under it.
    pub number: usize,
    /// Server.
    pub server: String,
    /// Tool at the server.
    pub tool: String,
    /// Arguments: the text of a JSON object.
    pub arguments: String,
    /// End of its time, in milliseconds of the driver's clock.
    pub until_ms: u64,
}

/// A tool call that has ended, as the caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStep {
    /// Name that the model wrote.
    pub name: String,
    /// Arguments.
    pub arguments: String,
    /// Result as the model reads it.
    pub result: String,
    /// The call has no result.
    pub is_error: bool,
}

/// A call of one of the caller's own tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandedCall {
    /// Id of the call.
    pub id: String,
    /// Tool of the caller.
    pub name: String,
    /// Arguments: the text of a JSON object.
    pub arguments: String,
}

/// Step for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunAction {
    /// Call the model with this body of a chat completion.
    AskModel {
        /// The body.
        body: String,
        /// End of its time, in milliseconds of the driver's clock.
        until_ms: u64,
    },
    /// The rest of the model's reply does not matter: end it, then report its end.
    CutModel,
    /// Call a tool.
    CallTool(ToolCall),
    /// A thought for the caller.
    EmitReasoning(String),
    /// A tool call that has ended, for the caller.
    EmitStep(ToolStep),
    /// Text of the answer.
    EmitContent(String),
    /// Calls of the caller's own tools.
    EmitCalls(Vec<HandedCall>),
    /// The run is over.
    End(RunEnd),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// With an answer, or with calls of the caller's tools.
    Answered(FinishReason),
    /// Without.
    Failed(RunFault),
    /// Its caller withdrew it.
    Cancelled,
}

/// Why a run has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFault {
    /// A limit is reached.
    Limit(LimitKind),
    /// The model wrote what cannot be read, three times.
    Malformed,
    /// The model repeats a call with the same result.
    NoProgress,
    /// The model cannot be called.
    Model(ModelFault),
}

impl RunFault {
    /// Returns the closed label.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Limit(_) => "agent_limit",
            Self::Malformed => "agent_malformed",
            Self::NoProgress => "agent_no_progress",
            Self::Model(fault) => &fault.label,
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Limit(LimitKind::Cost) => 402,
            Self::Limit(_) => 429,
            Self::Malformed | Self::NoProgress => 502,
            Self::Model(fault) => fault.status,
        }
    }
}

impl fmt::Display for RunFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(kind) => write!(f, "the agent reached its limit {kind}"),
            Self::Malformed => write!(
                f,
                "the agent's model wrote {MALFORMED_MAX} replies in a row that are neither a valid call nor an answer"
            ),
            Self::NoProgress => write!(
                f,
                "the agent's model made the same call with the same result {REPEATS_MAX} times"
            ),
            Self::Model(fault) => f.write_str(&fault.message),
        }
    }
}

/// A call of the current reply.
#[derive(Debug)]
struct PendingCall {
    id: String,
    name: String,
    arguments: String,
    /// Index of the tool; `None` for what cannot be called.
    tool: Option<usize>,
    result: Option<String>,
    is_running: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    /// The model writes; with the limit that this last reply answers for.
    Model(Option<LimitKind>),
    Tools,
    Over,
}

/// A run.
#[derive(Debug)]
pub struct Run {
    plan: RunPlan,
    /// Messages of this run, each as JSON, after the caller's.
    turns: Vec<String>,
    phase: Phase,
    turn: ModelTurn,
    calls: Vec<PendingCall>,
    /// Calls of the caller's tools in the current reply.
    handed: Vec<HandedCall>,
    started_ms: u64,
    usage: StepUsage,
    iterations: u64,
    tool_calls: u64,
    malformed: u32,
    minted: u64,
    ids: HashSet<String>,
    repeats: HashMap<u64, u32>,
    denials: HashMap<u64, u32>,
    removed: HashSet<usize>,
}

impl Run {
    /// Returns a run at its begin.
    #[must_use]
    pub fn new(plan: RunPlan) -> Self {
        Self {
            turn: ModelTurn::new(plan.encoding),
            plan,
            turns: Vec::new(),
            phase: Phase::New,
            calls: Vec::new(),
            handed: Vec::new(),
            started_ms: 0,
            usage: StepUsage::default(),
            iterations: 0,
            tool_calls: 0,
            malformed: 0,
            minted: 0,
            ids: HashSet::new(),
            repeats: HashMap::new(),
            denials: HashMap::new(),
            removed: HashSet::new(),
        }
    }

    /// Returns the sum of what its model calls have used.
    #[must_use]
    pub fn usage(&self) -> StepUsage {
        self.usage
    }

    /// Returns how many calls of the model and of tools it has made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.iterations.saturating_add(self.tool_calls)
    }

    /// Returns whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Takes what happened, and returns what is to be done. An input that does not fit the state is dropped.
    pub fn step(&mut self, now_ms: u64, input: RunInput) -> Vec<RunAction> {
        let mut actions = Vec::new();
        match (self.phase, input) {
            (Phase::Over, _) => {}
            (_, RunInput::Cancelled) => self.end(RunEnd::Cancelled, &mut actions),
            (Phase::New, RunInput::Start) => {
                self.started_ms = now_ms;
                self.ask_next(now_ms, &mut actions);
            }
            (Phase::Model(_), RunInput::ModelDelta(delta)) => {
                self.read_delta(delta, &mut actions);
            }
            (Phase::Model(limit), RunInput::ModelEnd { usage, fault }) => {
                self.usage.add(usage);
                self.end_turn(now_ms, limit, fault, &mut actions);
            }
            (
                Phase::Tools,
                RunInput::ToolDone {
                    number,
                    text,
                    end,
                    usage,
                },
            ) => {
                self.usage.add(usage);
                self.take_result(now_ms, number, &text, end, &mut actions);
            }
            _ => {}
        }
        actions
    }

    fn end(&mut self, end: RunEnd, actions: &mut Vec<RunAction>) {
        self.phase = Phase::Over;
        actions.push(RunAction::End(end));
    }

    fn fail(&mut self, fault: RunFault, actions: &mut Vec<RunAction>) {
        self.end(RunEnd::Failed(fault), actions);
    }

    /// End of the run's time.
    fn hard_end_ms(&self) -> u64 {
        self.started_ms.saturating_add(self.plan.limits.time_ms)
    }

    /// End of the time of steps before the answer at a limit.
    fn soft_end_ms(&self) -> u64 {
        let kept = match self.plan.on_limit {
            LimitPolicy::Answer => self.plan.limits.time_ms / RESERVE_DIVISOR,
            LimitPolicy::Error => 0,
        };
        self.hard_end_ms().saturating_sub(kept)
    }

    fn without_reserve(&self, limit: u64) -> u64 {
        match self.plan.on_limit {
            LimitPolicy::Answer => limit - limit / RESERVE_DIVISOR,
            LimitPolicy::Error => limit,
        }
    }

    /// Returns the limit that a further model call would cross.
    fn reached_limit(&self, now_ms: u64) -> Option<LimitKind> {
        let limits = &self.plan.limits;
        if self.iterations >= limits.iterations {
            return Some(LimitKind::Iterations);
        }
        if now_ms >= self.soft_end_ms() {
            return Some(LimitKind::Time);
        }
        if self.usage.tokens() >= self.without_reserve(limits.tokens) {
            return Some(LimitKind::Tokens);
        }
        let cost = limits.cost_micros.map(|limit| self.without_reserve(limit));
        cost.is_some_and(|limit| self.usage.cost_micros >= limit)
            .then_some(LimitKind::Cost)
    }

    fn ask_next(&mut self, now_ms: u64, actions: &mut Vec<RunAction>) {
        match self.reached_limit(now_ms) {
            Some(kind) => self.reach_limit(now_ms, kind, actions),
            None => {
                let until_ms = self.soft_end_ms();
                self.ask_model(None, until_ms, actions);
            }
        }
    }

    /// Asks for an answer without tools if that is wished and something is left for it; fails otherwise.
    fn reach_limit(&mut self, now_ms: u64, kind: LimitKind, actions: &mut Vec<RunAction>) {
        let limits = &self.plan.limits;
        let is_spent = self.usage.tokens() >= limits.tokens
            || limits
                .cost_micros
                .is_some_and(|limit| self.usage.cost_micros >= limit)
            || now_ms >= self.hard_end_ms();
        if self.plan.on_limit == LimitPolicy::Error || is_spent {
            return self.fail(RunFault::Limit(kind), actions);
        }
        let text = limit_text(self.plan.encoding, kind);
        self.turns.push(message("user", &text));
        let until_ms = self.hard_end_ms();
        self.ask_model(Some(kind), until_ms, actions);
    }

    fn ask_model(&mut self, limit: Option<LimitKind>, until_ms: u64, actions: &mut Vec<RunAction>) {
        self.iterations = self.iterations.saturating_add(1);
        self.turn = ModelTurn::new(self.plan.encoding);
        self.calls.clear();
        self.phase = Phase::Model(limit);
        let body = self.body(limit.is_some());
        actions.push(RunAction::AskModel { body, until_ms });
    }

    /// Writes the body of the next request. Its begin is the same in all requests of a run.
    fn body(&self, is_last: bool) -> String {
        let mut messages = Vec::with_capacity(2 + self.plan.messages.len() + self.turns.len());
        if !self.plan.system.is_empty() {
            messages.push(message("system", &self.plan.system));
        }
        messages.extend(self.plan.messages.iter().cloned());
        messages.extend(self.turns.iter().cloned());
        let mut body = format!(
            "{{\"model\":{},\"stream\":true,\"stream_options\":{{\"include_usage\":true}}",
            Value::from(self.plan.model.as_str())
        );
        let left = self.plan.limits.tokens.saturating_sub(self.usage.tokens());
        let names_max = |name: &str| matches!(name, "max_tokens" | "max_completion_tokens");
        let has_max = self.plan.parameters.iter().any(|(name, _)| names_max(name));
        for (name, value) in &self.plan.parameters {
            let bounded = value.parse::<u64>().ok().filter(|_| names_max(name));
            let value =
                bounded.map_or_else(|| value.clone(), |most| most.min(left.max(1)).to_string());
            body.push_str(&format!(",{}:{value}", Value::from(name.as_str())));
        }
        if !has_max && (is_last || left < SMALL_REST) {
            // The rest of the tokens bounds the answer; its input was counted before.
            let most = (left / 2).max(1);
            body.push_str(&format!(",\"max_tokens\":{most}"));
        }
        if self.plan.encoding == CallEncoding::Native && !is_last {
            self.push_tools(&mut body);
        }
        body.push_str(",\"messages\":[");
        body.push_str(&messages.join(","));
        body.push_str("]}");
        body
    }

    fn push_tools(&self, body: &mut String) {
        let own = self.plan.tools.iter().enumerate();
        let own = own.filter(|(at, _)| !self.removed.contains(at));
        let own = own.map(|(_, tool)| function_of(tool));
        let callers = self.plan.caller_tools.iter().map(|(_, json)| json.clone());
        let tools: Vec<String> = own.chain(callers).collect();
        if tools.is_empty() {
            return;
        }
        body.push_str(",\"tools\":[");
        body.push_str(&tools.join(","));
        body.push(']');
        if self.plan.limits.parallel <= 1 {
            body.push_str(",\"parallel_tool_calls\":false");
        }
    }
}

/// Returns a tool as chat completions have it.
fn function_of(tool: &ToolSpec) -> String {
    format!(
        "{{\"type\":\"function\",\"function\":{{\"name\":{},\"description\":{},\"parameters\":{}}}}}",
        Value::from(tool.name.as_str()),
        Value::from(tool.description.as_str()),
        tool.schema
    )
}

/// Returns a message of text as JSON.
fn message(role: &str, text: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":{}}}", Value::from(text))
}

impl Run {
    fn read_delta(&mut self, delta: ModelDelta, actions: &mut Vec<RunAction>) {
        if self.turn.is_cut() {
            return;
        }
        let shows = self.plan.display == StepDisplay::Steps;
        if shows && !delta.reasoning.is_empty() {
            actions.push(RunAction::EmitReasoning(delta.reasoning.clone()));
        }
        for event in self.turn.read(delta) {
            match event {
                TagEvent::Thought(text) if shows => actions.push(RunAction::EmitReasoning(text)),
                TagEvent::Answer(text) => actions.push(RunAction::EmitContent(text)),
                _ => {}
            }
        }
        if self.turn.is_complete() {
            self.turn.cut();
            actions.push(RunAction::CutModel);
        }
    }

    fn end_turn(
        &mut self,
        now_ms: u64,
        limit: Option<LimitKind>,
        fault: Option<ModelFault>,
        actions: &mut Vec<RunAction>,
    ) {
        let fault = fault.filter(|_| !self.turn.is_cut());
        if let Some(fault) = fault {
            match fault.failed_generation {
                Some(text) if limit.is_none() => self.turn.recover(&text),
                _ if fault.is_limit && limit.is_none() && self.iterations > 1 => {
                    let kind = match self.plan.limits.cost_micros {
                        Some(_) => LimitKind::Cost,
                        None => LimitKind::Tokens,
                    };
                    return self.reach_limit(now_ms, kind, actions);
                }
                _ if now_ms >= self.soft_end_ms() && limit.is_none() => {
                    return self.reach_limit(now_ms, LimitKind::Time, actions);
                }
                _ => {
                    let is_late = now_ms >= self.hard_end_ms();
                    let kind = limit.filter(|_| fault.is_limit || is_late);
                    return match kind {
                        Some(kind) => self.fail(RunFault::Limit(kind), actions),
                        None => self.fail(RunFault::Model(fault), actions),
                    };
                }
            }
        }
        let shows = self.plan.display == StepDisplay::Steps;
        for event in self.turn.finish() {
            match event {
                TagEvent::Thought(text) if shows => actions.push(RunAction::EmitReasoning(text)),
                TagEvent::Answer(text) => actions.push(RunAction::EmitContent(text)),
                _ => {}
            }
        }
        match self.plan.encoding {
            CallEncoding::Native => self.end_native(now_ms, limit, actions),
            CallEncoding::React => self.end_react(now_ms, limit, actions),
        }
    }

    fn end_native(&mut self, now_ms: u64, limit: Option<LimitKind>, actions: &mut Vec<RunAction>) {
        let finish = self.turn.finish_reason();
        let drafts = self.turn.take_drafts();
        if drafts.is_empty() || limit.is_some() {
            if self.turn.text.trim().is_empty() {
                return match (limit, finish) {
                    (Some(kind), _) => self.fail(RunFault::Limit(kind), actions),
                    (None, FinishReason::Length | FinishReason::ContentFilter) => {
                        self.end(RunEnd::Answered(finish), actions);
                    }
                    (None, _) => self.advise(
                        now_ms,
                        "Your reply was empty. Call a tool, or answer.",
                        actions,
                    ),
                };
            }
            return self.finish_answer(limit, finish, actions);
        }
        let is_cut = finish == FinishReason::Length;
        let mut calls = Vec::new();
        let mut handed = Vec::new();
        let mut is_any_valid = false;
        for draft in drafts {
            let CallDraft {
                id,
                name,
                arguments,
                is_too_long,
            } = draft;
            let id = self.unique_id(id);
            let parsed = match repair::parse_arguments(&arguments) {
                _ if is_too_long => Err(repair::CallFault::Incomplete),
                Err(_) if is_cut => Err(repair::CallFault::Incomplete),
                parsed => parsed.map(|(arguments, _)| arguments),
            };
            if self.plan.caller_tools.iter().any(|(own, _)| *own == name)
                && let Ok(arguments) = parsed
            {
                is_any_valid = true;
                handed.push(HandedCall {
                    id,
                    name,
                    arguments,
                });
                continue;
            }
            let call = self.pending_call(id, name, parsed);
            is_any_valid |= call.tool.is_some();
            calls.push(call);
        }
        if self.count_malformed(is_any_valid, actions) {
            return;
        }
        let written = calls.iter().map(|call| {
            let arguments = match call.tool {
                Some(_) => call.arguments.as_str(),
                None => "{}",
            };
            (call.id.as_str(), call.name.as_str(), arguments)
        });
        let written: Vec<String> = written.map(call_json).collect();
        self.handed = handed;
        if !written.is_empty() {
            let turn = self.turn.assistant_message(&written);
            self.turns.push(turn);
        }
        self.calls = calls;
        self.begin_calls(now_ms, actions);
    }

    fn end_react(&mut self, now_ms: u64, limit: Option<LimitKind>, actions: &mut Vec<RunAction>) {
        let finish = self.turn.finish_reason();
        let reply = self.turn.take_reply();
        let answer = reply.answer.as_deref().unwrap_or_default();
        if !answer.trim().is_empty() {
            let finish = match (reply.is_answer_closed, finish) {
                (true, _) => FinishReason::Stop,
                (false, finish) => finish,
            };
            return self.finish_answer(limit, finish, actions);
        }
        if let Some(kind) = limit {
            // Asked for an answer, a weak model writes it without tags.
            if reply.action.is_none() && !reply.thought.trim().is_empty() {
                actions.push(RunAction::EmitContent(reply.thought.trim().to_owned()));
                return self.finish_answer(limit, finish, actions);
            }
            return self.fail(RunFault::Limit(kind), actions);
        }
        let body = match &reply.action {
            Some(ActionBody::Closed(body)) => Some(Ok(body)),
            Some(ActionBody::Unclosed(body)) if finish == FinishReason::Stop => Some(Ok(body)),
            Some(_) => Some(Err(repair::CallFault::Incomplete)),
            None => None,
        };
        let Some(body) = body else {
            let text = match finish {
                FinishReason::Length => {
                    "Your reply was cut off before an ACTION or a FINAL_ANSWER. Write a shorter one."
                }
                _ => {
                    "Your reply has neither an ACTION nor a FINAL_ANSWER. Write <ACTION>{…}</ACTION> to call a tool, or <FINAL_ANSWER>…</FINAL_ANSWER> to answer."
                }
            };
            self.turns
                .push(message("assistant", &react_text(&reply.thought, None)));
            return self.advise(now_ms, text, actions);
        };
        let parsed = body.and_then(|body| repair::parse_call(body));
        let shown = match &parsed {
            Ok(call) => format!(
                "{{\"tool_name\": {}, \"arguments\": {}}}",
                Value::from(call.tool.as_str()),
                call.arguments
            ),
            Err(_) => "{}".to_owned(),
        };
        let id = self.unique_id(None);
        let call = match parsed {
            Ok(ParsedCall {
                tool, arguments, ..
            }) => self.pending_call(id, tool, Ok(arguments)),
            Err(fault) => PendingCall {
                id,
                name: String::new(),
                arguments: String::new(),
                tool: None,
                result: Some(format!("error: {}", fault.advice())),
                is_running: false,
            },
        };
        if self.count_malformed(call.tool.is_some(), actions) {
            return;
        }
        self.turns.push(message(
            "assistant",
            &react_text(&reply.thought, Some(&shown)),
        ));
        self.calls = vec![call];
        self.begin_calls(now_ms, actions);
    }

    fn finish_answer(
        &mut self,
        limit: Option<LimitKind>,
        finish: FinishReason,
        actions: &mut Vec<RunAction>,
    ) {
        let finish = match (limit, finish) {
            // A run that a limit has cut never ends as if it were whole.
            (Some(_), _) => FinishReason::Length,
            (None, FinishReason::ToolCalls) => FinishReason::Stop,
            (None, finish) => finish,
        };
        self.end(RunEnd::Answered(finish), actions);
    }

    /// Asks the model again, with advice.
    fn advise(&mut self, now_ms: u64, text: &str, actions: &mut Vec<RunAction>) {
        if self.count_malformed(false, actions) {
            return;
        }
        self.turns.push(message("user", text));
        self.ask_next(now_ms, actions);
    }

    /// Counts replies in a row that cannot be used. Returns whether the run ends for it.
    fn count_malformed(&mut self, is_valid: bool, actions: &mut Vec<RunAction>) -> bool {
        self.malformed = if is_valid { 0 } else { self.malformed + 1 };
        let is_over = self.malformed >= MALFORMED_MAX;
        if is_over {
            self.fail(RunFault::Malformed, actions);
        }
        is_over
    }

    /// Returns an id that no other call of the run has.
    fn unique_id(&mut self, id: Option<String>) -> String {
        if let Some(id) = id
            && self.ids.insert(id.clone())
        {
            return id;
        }
        loop {
            self.minted += 1;
            let id = format!("call_{}", self.minted);
            if self.ids.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Returns a call with its tool, or with the error that the model reads.
    fn pending_call(
        &self,
        id: String,
        name: String,
        parsed: Result<String, repair::CallFault>,
    ) -> PendingCall {
        let found = self.plan.tools.iter().position(|tool| tool.name == name);
        let (tool, arguments, result) = match (found, parsed) {
            (_, Err(fault)) => (None, String::new(), Some(fault.advice().to_owned())),
            (Some(at), Ok(arguments)) if !self.removed.contains(&at) => (Some(at), arguments, None),
            (Some(_), Ok(_)) => {
                let text = "this tool was refused twice and is not available in this run";
                (None, String::new(), Some(text.to_owned()))
            }
            (None, Ok(_)) => (None, String::new(), Some(self.unknown_tool(&name))),
        };
        PendingCall {
            id,
            name,
            arguments,
            tool,
            result: result.map(|text| format!("error: {text}")),
            is_running: false,
        }
    }

    fn unknown_tool(&self, name: &str) -> String {
        let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
        let own = self.plan.tools.iter().enumerate();
        let own = own.filter(|(at, _)| !self.removed.contains(at));
        let near = nearest_names(name, own.map(|(_, tool)| tool.name.as_str()));
        match near.is_empty() {
            true => format!("there is no tool \"{shown}\", and no other"),
            false => format!(
                "there is no tool \"{shown}\"; the nearest are: {}",
                near.join(", ")
            ),
        }
    }
}

/// Most names that an unknown tool is answered with.
const NEAREST_MAX: usize = 8;

/// Returns the names that are most like this one: by equal endings, then by common pieces.
fn nearest_names<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted: HashSet<String> = pieces(name).collect();
    let mut all: Vec<(usize, &str)> = known
        .map(|known| {
            (
                pieces(known).filter(|own| wanted.contains(own)).count(),
                known,
            )
        })
        .collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    all.into_iter()
        .take(NEAREST_MAX)
        .map(|(_, name)| name)
        .collect()
}

fn pieces(name: &str) -> impl Iterator<Item = String> {
    let split = name.split(|c: char| !c.is_ascii_alphanumeric());
    split
        .filter(|piece| !piece.is_empty())
        .map(str::to_ascii_lowercase)
}

fn call_json((id, name, arguments): (&str, &str, &str)) -> String {
    format!(
        "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
        Value::from(id),
        Value::from(name),
        Value::from(arguments)
    )
}

fn react_text(thought: &str, action: Option<&str>) -> String {
    let mut out = String::new();
    let thought = thought.trim();
    if !thought.is_empty() {
        out.push_str("<THOUGHT>");
        out.push_str(thought);
        out.push_str("</THOUGHT>");
    }
    if let Some(action) = action {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("<ACTION>");
        out.push_str(action);
        out.push_str("</ACTION>");
    }
    if out.is_empty() {
        out.push_str("(empty)");
    }
    out
}

impl Run {
    fn begin_calls(&mut self, now_ms: u64, actions: &mut Vec<RunAction>) {
        let valid = self.calls.iter().filter(|call| call.tool.is_some()).count();
        let valid = u64::try_from(valid).unwrap_or(u64::MAX);
        let limits = &self.plan.limits;
        let kind = if self.tool_calls.saturating_add(valid) > limits.tool_calls {
            Some(LimitKind::ToolCalls)
        } else if now_ms >= self.soft_end_ms() && valid > 0 {
            Some(LimitKind::Time)
        } else {
            None
        };
        if let Some(kind) = kind {
            for call in &mut self.calls {
                let text = format!("error: not called; the limit {kind} is reached");
                call.result.get_or_insert(text);
            }
            self.push_results();
            return self.reach_limit(now_ms, kind, actions);
        }
        self.tool_calls = self.tool_calls.saturating_add(valid);
        self.phase = Phase::Tools;
        self.call_further(actions);
        self.end_calls_if_done(now_ms, actions);
    }

    /// Begins as many calls as may run at once.
    fn call_further(&mut self, actions: &mut Vec<RunAction>) {
        let until_ms = self.soft_end_ms();
        let running = self.calls.iter().filter(|call| call.is_running).count();
        let mut free = self.plan.limits.parallel.max(1).saturating_sub(running);
        for (number, call) in self.calls.iter_mut().enumerate() {
            if free == 0 {
                break;
            }
            let waits = call.result.is_none() && !call.is_running;
            let tool = call.tool.filter(|_| waits);
            let Some(tool) = tool.and_then(|at| self.plan.tools.get(at)) else {
                continue;
            };
            call.is_running = true;
            free -= 1;
            actions.push(RunAction::CallTool(ToolCall {
                number,
                server: tool.server.clone(),
                tool: tool.tool.clone(),
                arguments: call.arguments.clone(),
                until_ms,
            }));
        }
    }

    fn take_result(
        &mut self,
        now_ms: u64,
        number: usize,
        text: &str,
        end: ToolEnd,
        actions: &mut Vec<RunAction>,
    ) {
        let bytes_max = self.plan.limits.tool_result_bytes;
        let Some(call) = self.calls.get_mut(number).filter(|call| call.is_running) else {
            return;
        };
        call.is_running = false;
        let text = cut_result(text, bytes_max).into_owned();
        let result = match end {
            ToolEnd::Done => text,
            ToolEnd::Failed | ToolEnd::Denied => format!("error: {text}"),
        };
        if self.plan.display == StepDisplay::Steps {
            actions.push(RunAction::EmitStep(ToolStep {
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                result: result.clone(),
                is_error: end != ToolEnd::Done,
            }));
        }
        let (tool, of_call) = (call.tool, digest_of(&call.name, &call.arguments));
        let mut hasher = DefaultHasher::new();
        (of_call, &result).hash(&mut hasher);
        call.result = Some(result);
        if end == ToolEnd::Denied {
            let denials = self.denials.entry(of_call).or_default();
            *denials += 1;
            if *denials >= DENIALS_MAX {
                self.removed.extend(tool);
            }
        }
        let repeats = self.repeats.entry(hasher.finish()).or_default();
        *repeats += 1;
        if *repeats >= REPEATS_MAX {
            return self.fail(RunFault::NoProgress, actions);
        }
        self.call_further(actions);
        self.end_calls_if_done(now_ms, actions);
    }

    fn end_calls_if_done(&mut self, now_ms: u64, actions: &mut Vec<RunAction>) {
        if self.calls.iter().any(|call| call.result.is_none()) {
            return;
        }
        self.push_results();
        if self.handed.is_empty() {
            return self.ask_next(now_ms, actions);
        }
        actions.push(RunAction::EmitCalls(std::mem::take(&mut self.handed)));
        self.end(RunEnd::Answered(FinishReason::ToolCalls), actions);
    }

    /// Appends the results in the order of the calls.
    fn push_results(&mut self) {
        for call in self.calls.drain(..) {
            let result = call.result.unwrap_or_default();
            self.turns.push(match self.plan.encoding {
                CallEncoding::Native => format!(
                    "{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{}}}",
                    Value::from(call.id.as_str()),
                    Value::from(result.as_str())
                ),
                CallEncoding::React => message("user", &encode_observation(&result)),
            });
        }
    }
}

/// Returns the digest of a call: equal for arguments that differ in order and spaces alone.
fn digest_of(name: &str, arguments: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => hash_value(&value, &mut hasher),
        Err(_) => arguments.hash(&mut hasher),
    }
    hasher.finish()
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            names.len().hash(hasher);
            for name in names {
                name.hash(hasher);
                if let Some(inner) = members.get(name) {
                    hash_value(inner, hasher);
                }
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        plain => plain.to_string().hash(hasher),
    }
}
