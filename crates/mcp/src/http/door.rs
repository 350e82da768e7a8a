//! Calls of tools in process: the path of a client's stateless request, without HTTP.
//!
//! The text of a request is written once, inspected, judged, recorded and sent; its answer is the text that a client would
//! receive. How it ended has a type ([`CallEnd`]), which comes from the steps of the call and not from that text.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::approval::Question;
use gate::inspect::Inspected;
use gate::journal::OpId;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use toolkit::door::{ApprovalWish, CallContext, CallEnd, CallFault, CallOutcome, DoorFault};
use wire::{Canonical, WireError};

use super::Face;
use super::federated::Unfit;
use super::stateless_client::StatelessClient;
use crate::call::{Begun, CallStep, Client, Run, Said, Server, Work};
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::reply::Reply;
use crate::message::{bridged, frames, shapes};
use crate::notes::Noted;
use crate::reading_pool::ReadingPool;

/// The revision in which requests are written: the one without sessions.
const REVISION: &str = "2026-07-28";

/// How often a call that waits makes sure that late calls end.
const LOOK_AFTER: Duration = Duration::from_millis(250);

/// Most pages of a list.
const PAGES_MAX: usize = 200;

/// Most tools of a list.
pub const TOOLS_MAX: usize = 10_000;

/// What a call of a tool yields, in order; [`ToolEvent::End`] is the last.
#[derive(Debug)]
pub enum ToolEvent {
    /// The server reports progress, or the call still waits for a person.
    Progress(ToolProgress),
    /// The server logs a message for its client.
    Log(ToolLog),
    /// The call waits for a person, who is asked this.
    Question(Box<Question>),
    /// The tool's result, as a client receives it.
    Result(ToolAnswer),
    /// How the call ended.
    End(Box<ToolOutcome>),
}

/// Progress of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolProgress {
    /// The amount; it only grows.
    pub progress: f64,
    /// The whole amount, if the server says so.
    pub total: Option<f64>,
    /// A sentence for people.
    pub message: Option<String>,
}

/// A log message of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolLog {
    /// `debug` to `emergency`.
    pub level: String,
    /// The logger, if the server names it.
    pub logger: Option<String>,
    /// What is logged.
    pub data: Value,
}

/// What an MCP client is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The member `result` or `error` of the answer, as JSON.
    pub payload: String,
    /// Whether it is `error`: the call has no result.
    pub is_error: bool,
    /// Whether the result says that the tool failed, or that the gate refused the call.
    pub is_tool_error: bool,
}

impl ToolAnswer {
    fn of(frame: Vec<u8>) -> Option<Self> {
        let reply = Reply::read(frame)?;
        Some(Self {
            payload: reply.payload().to_owned(),
            is_error: reply.is_error,
            is_tool_error: reply.is_tool_error,
        })
    }

    /// Returns the payload as a value; null if it is not JSON, which is never so.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.payload).unwrap_or_default()
    }
}

/// How a call of a tool ended.
#[derive(Debug, Clone)]
pub struct ToolOutcome {
    /// Its operation and end.
    pub call: CallOutcome,
    /// What a client would be answered with, if the call did not end with a result: for a model that goes on after a
    /// refusal.
    pub answer: Option<ToolAnswer>,
}

impl ToolOutcome {
    fn early(end: CallEnd) -> Box<Self> {
        Box::new(Self {
            call: CallOutcome { op: None, end },
            answer: None,
        })
    }

    fn malformed(message: impl Into<String>) -> Box<Self> {
        let fault = CallFault::new(DoorFault::Unreadable, message);
        Self::early(CallEnd::Malformed(fault))
    }
}

/// A tool of a server, as the policy shows it to the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Its name at its server.
    pub name: String,
    /// Its whole definition; `inputSchema` is the schema of its arguments.
    pub definition: Value,
}

/// A request to a server that is served to its caller. Only [`Face::prepare_tool`] and its siblings make one, inspected by
/// the rules for that server.
pub struct ServerRequest {
    server: Arc<Server>,
    canonical: Canonical,
    received_ns: u64,
}

impl fmt::Debug for ServerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest")
            .field("server", &self.server.name)
            .finish_non_exhaustive()
    }
}

/// What the steps of a call have said of it.
#[derive(Debug, Default)]
struct StepLog {
    op: Option<OpId>,
    questions: VecDeque<Box<Question>>,
    end: Option<CallOutcome>,
}

/// The client of a call in process.
struct DoorClient {
    client: StatelessClient,
    approval: ApprovalWish,
    steps: Arc<Steps>,
}

#[derive(Debug, Default)]
struct Steps {
    log: Mutex<StepLog>,
    asked: Notify,
}

impl Steps {
    fn lock(&self) -> MutexGuard<'_, StepLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client for DoorClient {
    fn tell(&self, frame: Vec<u8>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.client.tell(frame)
    }

    fn post(&self, frame: Vec<u8>) {
        self.client.post(frame);
    }

    fn beside(&self, work: Work) {
        self.client.beside(work);
    }

    fn gone(&self) -> Work {
        self.client.gone()
    }

    fn is_over_http(&self) -> bool {
        self.client.is_over_http()
    }

    fn reading_pool(&self) -> Option<&ReadingPool> {
        self.client.reading_pool()
    }

    fn note(&self, noted: Noted<'_>) {
        self.client.note(noted);
    }

    fn on_step(&self, step: CallStep<'_>) {
        let mut log = self.steps.lock();
        match step {
            CallStep::Permitted(op) => log.op = Some(op),
            CallStep::Asks(question) => {
                log.questions.push_back(Box::new(question.clone()));
                self.steps.asked.notify_one();
            }
            CallStep::Refused(refusal) => log.end = Some(refusal.into()),
            CallStep::Failed(failure) => {
                let (op, end) = (log.op, end_of(failure));
                log.end = Some(CallOutcome { op, end });
            }
        }
    }

    fn withdraws_questions(&self) -> bool {
        self.approval == ApprovalWish::Withdraw
    }
}

fn end_of(failure: &Failure) -> CallEnd {
    let fault = failure.fault;
    let message = match &failure.detail {
        Some(detail) => format!("{}: {detail}", fault.sentence()),
        None => fault.sentence().to_owned(),
    };
    let told = CallFault {
        retry_after_ms: fault
            .is_retryable()
            .then_some(frames::RETRY_AFTER_S * 1_000)
            .filter(|_| fault == UpstreamFault::NoPlace),
        ..CallFault::new(fault, message)
    };
    match fault {
        UpstreamFault::Timeout => CallEnd::TimedOut(told),
        UpstreamFault::Stopping => CallEnd::Cancelled,
        _ => CallEnd::UpstreamFailed(told),
    }
}

type Starting = Pin<Box<dyn Future<Output = Result<Begun, Box<ToolOutcome>>> + Send>>;

/// How far a call has got.
enum Progress {
    /// It is judged and sent.
    Starting(Starting),
    /// Its server works on it, or a person is asked.
    Running(Box<Run>),
    /// These are its last events.
    Ending(VecDeque<ToolEvent>),
}

/// A call of a tool under way. Dropped before its end, it is cancelled at its server and recorded so.
pub struct ToolStream {
    progress: Progress,
    steps: Arc<Steps>,
    deadline: Option<Instant>,
    /// Absent if the call has ended before it began.
    face: Option<Arc<Face>>,
}

impl fmt::Debug for ToolStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolStream").finish_non_exhaustive()
    }
}

/// What a call does next.
enum Step {
    Begun(Result<Begun, Box<ToolOutcome>>),
    Said(Said),
    Asked,
    Late,
}

impl ToolStream {
    fn ended(outcome: Box<ToolOutcome>) -> Self {
        Self {
            progress: Progress::Ending([ToolEvent::End(outcome)].into()),
            steps: Arc::default(),
            deadline: None,
            face: None,
        }
    }

    /// Returns the operation of the call, once it may be sent.
    #[must_use]
    pub fn op(&self) -> Option<OpId> {
        self.steps.lock().op
    }

    /// Returns the next event; `None` after [`ToolEvent::End`]. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ToolEvent> {
        loop {
            if let Some(question) = self.steps.lock().questions.pop_front() {
                return Some(ToolEvent::Question(question));
            }
            if let Progress::Ending(events) = &mut self.progress {
                return events.pop_front();
            }
            match self.step().await {
                Step::Asked => {}
                Step::Begun(Ok(Begun::Running(run))) => self.progress = Progress::Running(run),
                Step::Begun(Ok(Begun::Answered(frame) | Begun::Full(frame))) => {
                    self.end_with(frame);
                }
                Step::Begun(Ok(Begun::EraMismatch)) => {
                    let end = end_of(&UpstreamFault::EraMismatch.into());
                    self.end(ToolOutcome::early(end));
                }
                Step::Begun(Ok(Begun::HeaderMismatch(why))) => {
                    self.end(ToolOutcome::malformed(why));
                }
                Step::Begun(Err(outcome)) => self.end(outcome),
                Step::Said(Said::Emit(frame)) => {
                    if let Some(event) = event_of(&frame) {
                        return Some(event);
                    }
                }
                Step::Said(Said::Done(frame, _)) => self.end_with(frame),
                Step::Said(Said::Gone) => {
                    let op = self.steps.lock().op;
                    let mut outcome = ToolOutcome::early(CallEnd::Cancelled);
                    outcome.call.op = op;
                    self.end(outcome);
                }
                Step::Late => {
                    let op = self.steps.lock().op;
                    let fault = CallFault::of(DoorFault::Deadline);
                    let mut outcome = ToolOutcome::early(CallEnd::TimedOut(fault));
                    outcome.call.op = op;
                    self.end(outcome);
                }
            }
        }
    }

    async fn step(&mut self) -> Step {
        let Self {
            progress,
            steps,
            deadline,
            face,
        } = self;
        let late_calls_end = async {
            loop {
                tokio::time::sleep(LOOK_AFTER).await;
                face.iter().for_each(|face| face.look_after_if_due());
            }
        };
        let step = async {
            match progress {
                Progress::Starting(starting) => tokio::select! {
                    biased;
                    begun = starting => Step::Begun(begun),
                    () = steps.asked.notified() => Step::Asked,
                },
                Progress::Running(run) => tokio::select! {
                    biased;
                    said = run.next() => Step::Said(said),
                    () = steps.asked.notified() => Step::Asked,
                },
                Progress::Ending(_) => Step::Asked,
            }
        };
        let step = async {
            tokio::select! {
                biased;
                step = step => step,
                () = late_calls_end => Step::Asked,
            }
        };
        match deadline {
            Some(end) => timeout_at(*end, step).await.unwrap_or(Step::Late),
            None => step.await,
        }
    }

    /// Ends with the answer of a client. What remained to be recorded is recorded before.
    fn end_with(&mut self, frame: Vec<u8>) {
        let (op, end) = {
            let mut log = self.steps.lock();
            (log.op, log.end.take())
        };
        let answer = ToolAnswer::of(frame);
        let call = |end| CallOutcome { op, end };
        let events = match (end, answer) {
            (Some(call), answer) => vec![ToolEvent::End(Box::new(ToolOutcome { call, answer }))],
            (None, None) => {
                let fault = CallFault::of(DoorFault::ReplyUnreadable);
                let call = call(CallEnd::UpstreamFailed(fault));
                let answer = None;
                vec![ToolEvent::End(Box::new(ToolOutcome { call, answer }))]
            }
            (None, Some(answer)) if answer.is_error => {
                let error = answer.value();
                let message = error.get("message").and_then(Value::as_str);
                let message = message.unwrap_or_else(|| DoorFault::UpstreamError.sentence());
                let end = match op {
                    Some(_) => {
                        CallEnd::UpstreamFailed(CallFault::new(DoorFault::UpstreamError, message))
                    }
                    None => CallEnd::Malformed(CallFault::new(DoorFault::Unreadable, message)),
                };
                let (call, answer) = (call(end), Some(answer));
                vec![ToolEvent::End(Box::new(ToolOutcome { call, answer }))]
            }
            (None, Some(answer)) => {
                let (call, rest) = (call(CallEnd::Done), None);
                let outcome = ToolOutcome { call, answer: rest };
                vec![ToolEvent::Result(answer), ToolEvent::End(Box::new(outcome))]
            }
        };
        self.progress = Progress::Ending(events.into());
    }

    fn end(&mut self, outcome: Box<ToolOutcome>) {
        self.progress = Progress::Ending([ToolEvent::End(outcome)].into());
    }
}

/// Returns what a message of the server before its answer is; `None` if a call in process has no use for it.
fn event_of(frame: &[u8]) -> Option<ToolEvent> {
    let message: Value = serde_json::from_slice(frame).ok()?;
    let params = message.get("params")?;
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    match message.get("method")?.as_str()? {
        "notifications/progress" => Some(ToolEvent::Progress(ToolProgress {
            progress: params.get("progress").and_then(Value::as_f64)?,
            total: params.get("total").and_then(Value::as_f64),
            message: text("message"),
        })),
        "notifications/message" => Some(ToolEvent::Log(ToolLog {
            level: text("level").unwrap_or_default(),
            logger: text("logger"),
            data: params.get("data").cloned().unwrap_or_default(),
        })),
        _ => None,
    }
}

impl Face {
    /// Writes and inspects a call of a tool in process; `arguments` is a JSON object.
    ///
    /// # Errors
    /// The end of a call that cannot be read, or is of a server that is not served to the caller.
    pub fn prepare_tool(
        &self,
        context: &CallContext,
        server: &str,
        tool: &str,
        arguments: &str,
    ) -> Result<Inspected<ServerRequest>, Box<ToolOutcome>> {
        let arguments: &RawValue = serde_json::from_str(arguments).map_err(|error| {
            ToolOutcome::malformed(format!("the arguments are not JSON: {error}"))
        })?;
        if !arguments.get().starts_with('{') {
            return Err(ToolOutcome::malformed(
                "the arguments are not a JSON object",
            ));
        }
        let name = Value::from(tool);
        let members = format!("\"name\":{name},\"arguments\":{}", arguments.get());
        self.prepare_request(context, server, "tools/call", &members)
    }

    /// Writes and inspects a request with these members of `params`, which are JSON.
    fn prepare_request(
        &self,
        context: &CallContext,
        server: &str,
        method: &str,
        members: &str,
    ) -> Result<Inspected<ServerRequest>, Box<ToolOutcome>> {
        let received_ns = self.gate.mono_ns();
        let server = {
            let servers = self.servers();
            let server = servers.get(server).cloned();
            server.filter(|server| context.caller.may_reach(&server.name))
        };
        let Some(server) = server else {
            let fault = CallFault::of(DoorFault::ServerUnknown);
            return Err(ToolOutcome::early(CallEnd::NotFound(fault)));
        };
        let method_name = Value::from(method);
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let comma = if members.is_empty() { "" } else { "," };
        let meta = meta(context);
        let frame = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"d{number}\",\"method\":{method_name},\"params\":{{{members}{comma}\"_meta\":{meta}}}}}"
        );
        let unreadable = |fault: WireError| ToolOutcome::malformed(fault.to_string());
        let canonical = shapes::of_client(frame.as_bytes()).map_err(unreadable)?;
        let inspected = server.inspect(canonical).map_err(unreadable)?;
        Ok(inspected.map(|canonical| ServerRequest {
            server,
            canonical,
            received_ns,
        }))
    }

    /// Calls a tool. Dropping the stream cancels the call.
    ///
    /// An uninspected request does not compile:
    ///
    /// ```compile_fail,E0308
    /// # use std::sync::Arc;
    /// # use mcp::http::{Face, door::ServerRequest};
    /// # fn forget(face: Arc<Face>, context: &toolkit::door::CallContext, request: ServerRequest) {
    /// let _ = face.call_tool(context, request);
    /// # }
    /// ```
    #[must_use]
    pub fn call_tool(
        self: &Arc<Self>,
        context: &CallContext,
        request: Inspected<ServerRequest>,
    ) -> ToolStream {
        let steps = Arc::<Steps>::default();
        let face = Arc::clone(self);
        let (context, log) = (context.clone(), Arc::clone(&steps));
        let deadline = context.deadline.map(Instant::from_std);
        let starting = async move { face.start_request(context, request, log).await };
        ToolStream {
            progress: Progress::Starting(Box::pin(starting)),
            steps,
            deadline,
            face: Some(Arc::clone(self)),
        }
    }

    /// Prepares and calls in one: a call that cannot be read is a stream of its end alone.
    #[must_use]
    pub fn call_tool_with(
        self: &Arc<Self>,
        context: &CallContext,
        server: &str,
        tool: &str,
        arguments: &str,
    ) -> ToolStream {
        match self.prepare_tool(context, server, tool, arguments) {
            Ok(request) => self.call_tool(context, request),
            Err(outcome) => ToolStream::ended(outcome),
        }
    }

    async fn start_request(
        self: &Arc<Self>,
        context: CallContext,
        request: Inspected<ServerRequest>,
        steps: Arc<Steps>,
    ) -> Result<Begun, Box<ToolOutcome>> {
        let (server, received_ns) = {
            let request = request.message();
            (Arc::clone(&request.server), request.received_ns)
        };
        let caller = &context.caller;
        let reached = self.reach(&server, caller).await;
        let reached = reached.map_err(|failure| ToolOutcome::early(end_of(&failure)))?;
        let message = request.map(|request| request.canonical);
        let message = match reached.is_legacy() {
            true => message.try_map(|canonical| {
                shapes::of_client(&bridged::without_revision(canonical.text().as_bytes()))
            }),
            false => Ok(message),
        };
        let message = message.map_err(|fault| ToolOutcome::malformed(fault.to_string()))?;
        let whose = (caller, context.client_id.clone(), None);
        let arrival = (received_ns, &context.trace);
        let read = self.read_inspected(&reached, message, whose, None, arrival);
        let (mut asker, mut asked, frame) = read.map_err(|unfit| match unfit {
            Unfit::Frame(fault) => ToolOutcome::malformed(fault.to_string()),
            Unfit::Headers(why) => ToolOutcome::malformed(why),
        })?;
        asker.client = Arc::new(DoorClient {
            client: StatelessClient {
                face: Arc::clone(self),
                caller: caller.clone(),
                spelling: None,
            },
            approval: context.approval,
            steps,
        });
        if !context.session_id.is_empty() {
            asker.session_id = Arc::clone(&context.session_id);
        }
        if let Some(left) = context.time_left() {
            asked.end_within(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        }
        Ok(asker.begin(frame, asked, None).await)
    }

    /// Lists the tools of a server that the policy shows to the caller, with their schemas.
    ///
    /// # Errors
    /// How the list ended that has no answer.
    pub async fn list_tools(
        self: &Arc<Self>,
        context: &CallContext,
        server: &str,
    ) -> Result<Vec<ListedTool>, Box<ToolOutcome>> {
        let mut tools = Vec::new();
        let mut cursor: Option<Value> = None;
        for _ in 0..PAGES_MAX {
            let members = cursor.map_or_else(String::new, |at| format!("\"cursor\":{at}"));
            let request = self.prepare_request(context, server, "tools/list", &members)?;
            let page = self.answer_to(context, request).await?.value();
            let listed = page.get("tools").and_then(Value::as_array);
            for definition in listed.into_iter().flatten() {
                let name = definition.get("name").and_then(Value::as_str);
                if let Some(name) = name.filter(|_| tools.len() < TOOLS_MAX) {
                    tools.push(ListedTool {
                        name: name.to_owned(),
                        definition: definition.clone(),
                    });
                }
            }
            cursor = page.get("nextCursor").filter(|at| at.is_string()).cloned();
            if cursor.is_none() || tools.len() >= TOOLS_MAX {
                break;
            }
        }
        Ok(tools)
    }

    /// Makes a request with these members of `params`, and waits for its result.
    ///
    /// # Errors
    /// How a request ended that has no result.
    pub async fn request(
        self: &Arc<Self>,
        context: &CallContext,
        server: &str,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<ToolAnswer, Box<ToolOutcome>> {
        let members = params.iter().map(|(name, value)| {
            let name = Value::from(name.as_str());
            format!("{name}:{value}")
        });
        let members = members.collect::<Vec<_>>().join(",");
        let request = self.prepare_request(context, server, method, &members)?;
        self.answer_to(context, request).await
    }

    async fn answer_to(
        self: &Arc<Self>,
        context: &CallContext,
        request: Inspected<ServerRequest>,
    ) -> Result<ToolAnswer, Box<ToolOutcome>> {
        let mut stream = self.call_tool(context, request);
        let mut answer = None;
        loop {
            match stream.next().await {
                Some(ToolEvent::Result(result)) => answer = Some(result),
                Some(ToolEvent::End(outcome)) => return answer.ok_or(outcome),
                Some(_) => {}
                None => return answer.ok_or_else(|| ToolOutcome::early(CallEnd::Cancelled)),
            }
        }
    }
}

/// Returns `_meta` of a request.
fn meta(context: &CallContext) -> String {
    let client = Value::from(context.client_id.as_deref().unwrap_or("durward"));
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{{\"io.modelcontextprotocol/protocolVersion\":\"{REVISION}\",\"io.modelcontextprotocol/clientCapabilities\":{{}},\"io.modelcontextprotocol/clientInfo\":{{\"name\":{client},\"version\":\"{version}\"}},\"progressToken\":\"p\"}}"
    )
}
