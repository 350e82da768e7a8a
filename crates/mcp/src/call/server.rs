//! A server as the life of a call knows it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ::http::HeaderMap;
use gate::caller::CALLERS_MAX;
use gate::facts::Facts;
use gate::journal::{Component, Level, Record, System, SystemEvent};
use gate::paths::PathView;
use gate::pins::PinOptions;
use gate::{Caller, Gate, PeerId, World};
use toolkit::mcp::Builtin;
use wire::canonical::NameTree;
use wire::jsonrpc::{member, string};
use wire::scan::Scan;

use super::basis::Outcome;
use super::client::Asker;
use super::order::Order;
use crate::describe::{ArgumentNames, ArgumentRoles, Context, Outputs, PathSchemas};
use crate::descriptions;
use crate::descriptions::definitions::{Definitions, Entry, Memo};
use crate::descriptions::finding::{Event, Finding, Told, quoted};
use crate::descriptions::listing::{self, Listed};
use crate::message::method::List;
use crate::message::mirrored::Declarations;
use crate::message::refusal::Refusals;
use crate::upstream::{Frame, Means, Pool, Share};

/// Most tools of which it is known what was learned last.
const LEARNED_MAX: usize = 4_096;

/// What to serve under a name.
#[derive(Clone)]
pub struct ServerOptions {
    /// The name in addresses, rules and the journal.
    pub name: String,
    /// The gate with the rules for it.
    pub gate: Arc<Gate>,
    /// How it is started or reached.
    pub means: Means,
    /// Who shares its process or session.
    pub share: Share,
    /// Most processes of it at once, where it is started.
    pub processes_max: usize,
    /// How long it may take to answer, in milliseconds.
    pub call_timeout_ms: u64,
    /// The same for single tools.
    pub tool_timeouts_ms: HashMap<String, u64>,
    /// When it is spared because it fails, and for how long.
    pub breaker: toolkit::breaker::Settings,
    /// The file system that it sees, where it is ours.
    pub view: Option<Arc<dyn PathView>>,
    /// What the configuration says of its arguments.
    pub roles: ArgumentRoles,
    /// What is done about its descriptions.
    pub descriptions: descriptions::Options,
    /// How its tools' definitions are pinned.
    pub pins: PinOptions,
    /// What a refused tool call is answered with.
    pub refusals: Refusals,
}

/// A server and its processes or sessions.
pub(crate) struct Server {
    pub name: Arc<str>,
    pub gate: Arc<Gate>,
    pub pool: Pool,
    call_timeout_ms: u64,
    tool_timeouts_ms: HashMap<String, u64>,
    /// The file system that it sees, where it is ours.
    pub view: Option<Arc<dyn PathView>>,
    roles: ArgumentRoles,
    known: RwLock<Known>,
    told: Mutex<Told>,
    descriptions: descriptions::Options,
    pins: PinOptions,
    /// What a refused tool call is answered with.
    pub refusals: Refusals,
    memo: Arc<Memo>,
    order: Arc<Order>,
    /// What callers without a session were shown.
    shown: Mutex<HashMap<Arc<str>, Arc<Shown>>>,
}

/// What was learned from the server's lists, by whichever session.
#[derive(Default)]
struct Known {
    schemas: PathSchemas,
    names: ArgumentNames,
    outputs: Outputs,
    mirrored: Declarations,
    /// What was learned last of each tool, by its definition as it was worked out: the same text is the same entry.
    learned: HashMap<String, Arc<Entry>>,
    /// How often something else was learned, or forgotten.
    changes: u64,
}

/// What taking in a list of tools has left behind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// Of the session: [`Definitions::taken`].
    of_session: u64,
    /// Of the server: [`Known::changes`].
    of_server: u64,
}

/// A list as its reader may see it.
pub(super) struct ForReader {
    /// None where that is all of it.
    pub text: Option<String>,
    /// What it left behind, where it is of tools.
    pub taken: Option<Taken>,
    /// Nothing of it was to be told.
    pub is_unremarkable: bool,
}

/// What one session was shown of a server's tools, or one caller where there are no sessions. A server
/// may say something else to each of them.
#[derive(Debug)]
pub(crate) struct Shown(RwLock<Definitions>);

impl Shown {
    fn read(&self) -> RwLockReadGuard<'_, Definitions> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Definitions> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more will be shown: a first list that was begun is closed as it is.
    pub fn close(&self) {
        self.write().close();
    }
}

/// Who is shown a list.
pub(crate) struct Reader<'r> {
    pub caller: &'r Caller,
    pub session_id: &'r str,
    /// Tools that declare headers against the rules are not for this reader.
    pub leaves_unfit_out: bool,
    pub shown: &'r Shown,
}

impl Server {
    /// A server that nobody has asked anything. `session_id` is the one session that it is for, or empty.
    /// `order` is that of all servers of this process.
    pub fn new(options: ServerOptions, session_id: &str, order: Arc<Order>) -> Self {
        let name: Arc<str> = options.name.into();
        let pool = Pool::new(
            Arc::clone(&name),
            options.means,
            options.share,
            options.processes_max,
            Arc::clone(&options.gate),
            options.breaker,
        );
        let server = Self {
            name,
            gate: options.gate,
            pool,
            call_timeout_ms: options.call_timeout_ms,
            tool_timeouts_ms: options.tool_timeouts_ms,
            view: options.view,
            roles: options.roles,
            known: RwLock::default(),
            told: Mutex::default(),
            descriptions: options.descriptions,
            pins: options.pins,
            refusals: options.refusals,
            memo: Arc::default(),
            order,
            shown: Mutex::default(),
        };
        server.learn_builtin();
        server.record_jobs();
        let fault = server.nothing_shown().read().fault();
        server.tell(fault.into_iter().collect(), session_id);
        server
    }

    /// A frame on its way to it.
    pub fn carried(&self, bytes: Vec<u8>, read: Option<Box<toolkit::mcp::Message>>) -> Frame {
        Frame {
            bytes,
            read,
            view: self.view.clone(),
            builtin: self.builtin().map(Arc::clone),
            seen: None,
        }
    }

    /// The server itself, where it is a built-in one.
    pub fn builtin(&self) -> Option<&Arc<Builtin>> {
        match self.pool.means() {
            Means::Builtin(builtin) => Some(builtin),
            Means::Command(_) | Means::Http(_) => None,
        }
    }

    /// Has the journal know of the ends of jobs, which come after those of the calls that began them.
    fn record_jobs(&self) {
        let Some(builtin) = self.builtin() else {
            return;
        };
        let (gate, name) = (Arc::downgrade(&self.gate), Arc::clone(&self.name));
        builtin.record_jobs(Arc::new(move |op, job| {
            let record = System {
                level: Some(Level::Info),
                component: Some(Component::Mcp),
                op,
                backend_id: Some(&name),
                job: Some(job),
                ..System::of(SystemEvent::JobEnded)
            };
            // A journal that fails here fails the gate as well.
            drop(
                gate.upgrade()
                    .map(|gate| gate.record(&Record::System(&record))),
            );
        }));
    }

    /// The order of its calls, where that can matter: links are followed only in a file system that is ours, and
    /// a built-in server makes none.
    pub(super) fn order(&self) -> Option<&Arc<Order>> {
        (self.view.is_some() && self.builtin().is_none()).then_some(&self.order)
    }

    /// A built-in server's definitions are known before anybody lists them.
    fn learn_builtin(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for tool in self.builtin().into_iter().flat_map(|b| b.tools()) {
            known.schemas.learn(tool.name, tool.input.json());
            known.names.learn(tool.name, tool.input.json());
            known.outputs.learn(tool.name, tool.output.is_some());
        }
    }

    /// Its name as a destination.
    pub fn peer(&self) -> PeerId {
        PeerId::server(Arc::clone(&self.name))
    }

    /// The beginning of what a session is shown.
    pub fn nothing_shown(&self) -> Arc<Shown> {
        let memo = Arc::clone(&self.memo);
        let definitions =
            Definitions::sharing(self.descriptions.clone(), &self.pins, &self.name, memo);
        Arc::new(Shown(RwLock::new(definitions)))
    }

    /// What a caller without a session was shown.
    pub fn shown_to(&self, caller: &Arc<str>) -> Arc<Shown> {
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = all.get(caller) {
            return Arc::clone(shown);
        }
        if all.len() >= CALLERS_MAX
            && let Some(any) = all.keys().next().cloned()
            && let Some(shown) = all.remove(&any)
        {
            // It begins anew with its next request, held to what is pinned.
            shown.close();
        }
        let shown = self.nothing_shown();
        all.insert(Arc::clone(caller), Arc::clone(&shown));
        shown
    }

    /// Nothing more will be shown.
    pub fn close(&self) {
        let all = std::mem::take(&mut *self.shown.lock().unwrap_or_else(PoisonError::into_inner));
        for shown in all.into_values() {
            shown.close();
        }
    }

    /// How long it may take to answer a call of this tool, or anything else, in nanoseconds.
    pub fn timeout_ns(&self, tool: Option<&str>) -> u64 {
        let own = tool.and_then(|tool| self.tool_timeouts_ms.get(tool));
        let timeout_ms = own.copied().unwrap_or(self.call_timeout_ms);
        timeout_ms.saturating_mul(1_000_000)
    }

    /// Lends what describing a request needs to know.
    pub fn with_context<T>(
        &self,
        caller: &Caller,
        shown: &Shown,
        describe: impl FnOnce(&Context<'_>) -> T,
    ) -> T {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        describe(&Context {
            backend_id: &self.name,
            caller,
            view: self.view.as_deref(),
            schemas: &known.schemas,
            roles: &self.roles,
            definitions: Some(&*shown.read()),
            builtin: self.builtin().map(Arc::as_ref),
            inline: None,
        })
    }

    /// Lends the argument names that a tool declares, none where it is not known.
    pub fn with_names<T>(&self, tool: Option<&str>, look: impl FnOnce(&NameTree) -> T) -> T {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        look(known.names.of(tool))
    }

    /// Looks again whether a tool that waits for approval has it by now.
    pub fn refresh_quarantine(facts: &mut Facts, shown: &Shown) {
        if let (Some(_), Some(tool)) = (facts.quarantine, facts.tool_name.known()) {
            facts.quarantine = shown.write().quarantine_now(tool);
        }
    }

    /// Whether the headers of a call repeat the arguments that its tool declares.
    ///
    /// # Errors
    /// A sentence about the first header that does not.
    pub fn check_headers(&self, scan: &Scan<'_>, headers: &HeaderMap) -> Result<(), String> {
        let Some(tool) = member(&scan.params, "name").and_then(string) else {
            return Ok(());
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let arguments = member(&scan.params, "arguments");
        known.mirrored.check(&tool, arguments, headers)
    }

    /// The headers that repeat the arguments of a call which could not have any.
    pub fn headers_of(&self, scan: &Scan<'_>) -> HeaderMap {
        let tool = member(&scan.params, "name").and_then(string);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let arguments = member(&scan.params, "arguments");
        known
            .mirrored
            .repeated(&tool.unwrap_or_default(), arguments)
    }

    /// Its tools are others than those that it has listed: it is asked for them before the next call.
    pub fn tools_changed(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.schemas.forget();
        known.learned.clear();
        known.changes += 1;
    }

    /// Whether taking in a list of tools once more would leave everything as it is.
    pub(super) fn would_stay(&self, shown: &Shown, taken: Taken) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.changes == taken.of_server && shown.read().would_stay(taken.of_session)
    }

    /// Whether it has listed a tool of this name.
    pub fn has_listed(&self, tool: &str) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.schemas.has(tool)
    }

    /// Whether a tool declares an output schema, as far as is known.
    pub fn has_output_schema(&self, tool: &str) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.outputs.has(tool)
    }

    /// A page of a list as its reader may see it by these rules. `first` where it was asked for without a cursor.
    pub(super) fn listed(
        &self,
        (list, first): (List, bool),
        mut listed: Listed<'_>,
        reader: &Reader<'_>,
        world: &World,
    ) -> ForReader {
        let (mut shown, mut findings, of_session) = {
            let mut definitions = reader.shown.write();
            let now_ms = self.gate.wall_ms();
            let (shown, findings) = definitions.take(list, &listed, first, now_ms);
            (shown, findings, definitions.taken())
        };
        let mut taken = None;
        if list == List::Tools {
            let (unfit, of_server) = self.learn(&listed, &shown);
            taken = Some(Taken {
                of_session,
                of_server,
            });
            findings.extend(unfit.iter().map(|tool| {
                let message = format!("tool {} declares an invalid header", quoted(tool));
                Finding::new(Event::HeaderUnfit, message)
            }));
            if reader.leaves_unfit_out && !unfit.is_empty() {
                cut(&mut listed, &mut shown, &unfit);
            }
        }
        let is_unremarkable = findings.is_empty();
        self.tell(findings, reader.session_id);
        let text = self.with_context(reader.caller, reader.shown, |context| {
            listing::filter(list, &listed, &shown, world, context)
        });
        ForReader {
            text,
            taken,
            is_unremarkable,
        }
    }

    /// Learns from the definitions of tools; gives those that declare headers against the rules, and how often something
    /// was learned by then.
    fn learn(&self, listed: &Listed<'_>, shown: &[Arc<Entry>]) -> (Vec<String>, u64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut unfit = Vec::new();
        for (row, entry) in listed.entries.iter().zip(shown) {
            // The same text was learned last.
            let learned = known.learned.get(&row.label);
            if learned.is_some_and(|learned| Arc::ptr_eq(learned, entry)) {
                continue;
            }
            known.changes += 1;
            let schema = &row.input_schema;
            known.schemas.learn(&row.label, schema);
            known.names.learn(&row.label, schema);
            known.outputs.learn(&row.label, row.has_output_schema);
            if !known.mirrored.learn(&row.label, schema) {
                unfit.push(row.label.clone());
                known.learned.remove(&row.label);
            } else if known.learned.len() < LEARNED_MAX || known.learned.contains_key(&row.label) {
                known.learned.insert(row.label.clone(), Arc::clone(entry));
            }
        }
        (unfit, known.changes)
    }

    /// Screens the instructions of a handshake's result, and labels the session that reads them; returns `None` if
    /// nothing had to be changed.
    pub fn screen_handshake(
        &self,
        payload: &str,
        caller: &Arc<str>,
        session_id: &str,
    ) -> Option<String> {
        if descriptions::has_instructions(payload) {
            self.gate.list_read(caller, &self.name);
        }
        let screened = descriptions::instructions(payload, &self.descriptions);
        self.tell(screened.findings, session_id);
        screened.text
    }

    fn tell(&self, findings: Vec<Finding>, session_id: &str) {
        if !findings.is_empty() {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.tell(findings, &self.gate, session_id, &self.name);
        }
    }
}

impl Asker {
    /// A page of a list as this client may see it; `None` where that is all of it. `first` where it
    /// was asked for without a cursor. Also what it came out by, where that can be compared later.
    ///
    /// # Errors
    /// A sentence, where the reply is not a list of this kind.
    pub(super) fn listed(
        &self,
        (list, first): (List, bool),
        frame: &[u8],
        payload: &str,
    ) -> Result<(Option<String>, Option<Outcome>), &'static str> {
        let Some(listed) = listing::of_reply(list, frame, payload)? else {
            return Ok((None, None));
        };
        let world = self.server.gate.world();
        let noted = self.under_way.as_ref().map(|under_way| {
            let labels = listed.entries.iter().map(|row| row.label.clone());
            let mut lists = under_way.lists();
            lists.take(list, first, labels, Arc::clone(&world))
        });
        // The addresses of resources are looked up in a file system, which is not asked whether it has changed.
        let is_comparable = first && listed.is_last && matches!(list, List::Tools | List::Prompts);
        let page = (list, first);
        let has_entries = !listed.entries.is_empty();
        if has_entries {
            self.label_list();
        }
        let shown = self.server.listed(page, listed, &self.reader(), &world);
        let outcome = noted
            .filter(|_| is_comparable && shown.is_unremarkable)
            .map(|noted| Outcome {
                list,
                world,
                noted,
                has_entries,
                taken: shown.taken,
            });
        Ok((shown.text, outcome))
    }

    /// Labels the session, which reads a list of the server.
    pub(super) fn label_list(&self) {
        let server = &self.server;
        server.gate.list_read(&self.caller.subject, &server.name);
    }

    /// What to tell the client once its server was started again.
    pub fn lists_anew(&self) -> Vec<Vec<u8>> {
        match &self.under_way {
            Some(under_way) if under_way.is_ready() => under_way.lists().anew(),
            _ => Vec::new(),
        }
    }

    /// What to tell the client of lists that a reload has changed.
    pub fn changed_lists(&self) -> Vec<Vec<u8>> {
        let Some(under_way) = &self.under_way else {
            return Vec::new();
        };
        let world = self.server.gate.world();
        let mut lists = under_way.lists();
        if lists.are_of(&world) {
            return Vec::new();
        }
        let changed = self.with_context(|context| lists.changed(&world, context));
        // Who has not said that it is initialized lists for the first time.
        if under_way.is_ready() {
            changed
        } else {
            Vec::new()
        }
    }
}

/// Leaves these tools out of a list and of what may be shown of it.
fn cut(listed: &mut Listed<'_>, shown: &mut Vec<Arc<Entry>>, names: &[String]) {
    let keeps: Vec<bool> = listed
        .entries
        .iter()
        .map(|row| !names.contains(&row.label))
        .collect();
    let mut keep = keeps.iter();
    listed
        .entries
        .retain(|_| keep.next().copied().unwrap_or(true));
    let mut keep = keeps.iter();
    shown.retain(|_| keep.next().copied().unwrap_or(true));
    listed.is_cut = true;
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
