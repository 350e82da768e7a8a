//! The scenarios as they are carried out: who connects when, and what is run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::args::SshPlan;
use super::client::{CallFailure, CallOutcome, McpClient};
use super::phase::{CallRecorder, WorkerCalls, WorkerPhase};
use super::scenario::SshScenario;
use crate::interrupt::InterruptFlag;
use crate::stats::SeededRandom;
use crate::wall_clock;

/// The commands, in order.
const COMMANDS: [&str; 3] = ["hostname", "whoami", "cat /etc/hostname"];
/// Connections that are there before commands are counted.
const PREWARMED: u32 = 5;
/// Between two connections of a worker.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// Between two calls of sustained load.
const SUSTAINED_PAUSE: Duration = Duration::from_millis(20);
/// Most sessions of a worker under sustained load, so that its connections do not outgrow the server's sessions.
const SUSTAINED_SESSIONS_MAX: usize = 5;
/// In a hundred steps of sustained load: commands, then connections; the rest are disconnections.
const SUSTAINED_MIX: [usize; 2] = [70, 20];
/// Commands a second of latency_test, of all workers together.
const LATENCY_RATE: f64 = 10.0;

/// What all workers of a phase share.
struct PhaseContext<'a> {
    plan: &'a SshPlan,
    host: &'a str,
    interrupt: &'a InterruptFlag,
    /// When calls begin to count: known when all workers are ready.
    begin: OnceLock<Instant>,
    /// The first output of each command.
    outputs: Mutex<BTreeMap<&'static str, String>>,
}

/// Runs a scenario; `tell` gets each step.
pub(super) fn all(
    plan: &SshPlan,
    interrupt: &InterruptFlag,
    tell: &mut dyn FnMut(&str),
) -> Vec<WorkerPhase> {
    let mut phases = Vec::new();
    for host in &plan.hosts {
        for workers in &plan.workers {
            if interrupt.is_set() {
                return phases;
            }
            tell(&format!(
                "{}: {workers} workers on {host}",
                plan.scenario.name()
            ));
            phases.push(phase(plan, host, *workers, interrupt));
        }
    }
    phases
}

fn phase(plan: &SshPlan, host: &str, workers: u32, interrupt: &InterruptFlag) -> WorkerPhase {
    let prewarmed = match plan.scenario {
        SshScenario::CommandThroughput => prewarmed(plan, host),
        _ => Vec::new(),
    };
    let floor = PhaseContext {
        plan,
        host,
        interrupt,
        begin: OnceLock::new(),
        outputs: Mutex::default(),
    };
    let rounds = RoundBarrier::new(workers);
    let worked: Vec<WorkerCalls> = std::thread::scope(|scope| {
        let (floor, rounds) = (&floor, &rounds);
        let handles: Vec<_> = (0..workers)
            .map(|number| scope.spawn(move || floor.work(number, workers, rounds)))
            .collect();
        let joined = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_default());
        joined.collect()
    });
    let seconds = floor.begin().elapsed().as_secs_f64().max(1e-9);
    drop(prewarmed);
    let name = match plan.scenario {
        SshScenario::LatencyTest => host.to_owned(),
        _ => format!("{workers} workers"),
    };
    WorkerPhase {
        name,
        host: host.to_owned(),
        asked: workers,
        seconds,
        workers: worked,
    }
}

/// Sessions that have run a command; kept until they are dropped.
fn prewarmed(plan: &SshPlan, host: &str) -> Vec<McpClient> {
    let mut clients = Vec::new();
    for _ in 0..PREWARMED {
        let Ok(mut client) = McpClient::open(plan) else {
            // The workers meet the same, and are counted.
            return clients;
        };
        if let (_, Some(id)) = client.connect(plan, host, false) {
            client.run(&id, COMMANDS[0]);
        }
        clients.push(client);
    }
    clients
}

/// The rounds of exhaustion_test: all workers try at the same time.
struct RoundBarrier {
    barrier: Barrier,
    is_over: AtomicBool,
}

impl RoundBarrier {
    fn new(workers: u32) -> Self {
        Self {
            barrier: Barrier::new(usize::try_from(workers).unwrap_or(usize::MAX)),
            is_over: AtomicBool::new(false),
        }
    }
}

impl PhaseContext<'_> {
    fn work(&self, number: u32, workers: u32, rounds: &RoundBarrier) -> WorkerCalls {
        let mut notes = CallRecorder::new(Instant::now());
        let scenario = self.plan.scenario;
        let mut client = self.opened(&mut notes);
        let mut held = None;
        if let (SshScenario::CommandThroughput | SshScenario::LatencyTest, Some(client)) =
            (scenario, &mut client)
        {
            let (called, id) = client.connect(self.plan, self.host, false);
            notes.add("ssh_connect", called);
            held = id;
        }
        // No worker begins before all are ready.
        if rounds.barrier.wait().is_leader() {
            let _ = self.begin.set(Instant::now() + self.plan.warmup);
        }
        rounds.barrier.wait();
        notes.began = self.begin();
        match (scenario, client) {
            (SshScenario::ExhaustionTest, client) => self.exhaust(client, rounds, &mut notes),
            (_, None) => {}
            (SshScenario::ConnectionRate, Some(client)) => self.connections(client, &mut notes),
            (SshScenario::SustainedLoad, Some(client)) => self.sustain(client, number, &mut notes),
            (SshScenario::CommandThroughput, Some(client)) => {
                self.commands(client, held, None, &mut notes);
            }
            (SshScenario::LatencyTest, Some(client)) => {
                let every = f64::from(workers) / LATENCY_RATE;
                let first = f64::from(number) / LATENCY_RATE;
                self.commands(client, held, Some((first, every)), &mut notes);
            }
        }
        notes.worked
    }

    /// Returns a session with the server; why there is none is noted as a call.
    fn opened(&self, notes: &mut CallRecorder) -> Option<McpClient> {
        match McpClient::open(self.plan) {
            Ok(client) => Some(client),
            Err(wrong) => {
                let called = CallOutcome {
                    latency_ms: 0.0,
                    said: Err(wrong),
                };
                notes.add("initialize", called);
                None
            }
        }
    }

    fn begin(&self) -> Instant {
        *self.begin.get_or_init(Instant::now)
    }

    fn until(&self) -> Instant {
        self.begin() + self.plan.duration
    }

    fn is_over(&self) -> bool {
        self.interrupt.is_set() || Instant::now() >= self.until()
    }

    /// A pause that does not outlast the phase.
    fn nap(&self, long: Duration) {
        wall_clock::pause(long.min(self.until().saturating_duration_since(Instant::now())));
    }

    fn connections(&self, mut client: McpClient, notes: &mut CallRecorder) {
        notes.worked.is_running = true;
        while !self.is_over() {
            let (called, id) = client.connect(self.plan, self.host, true);
            notes.add("ssh_connect", called);
            if let Some(id) = id {
                notes.add("ssh_disconnect", client.disconnect(&id));
            }
            self.nap(CONNECT_PAUSE);
        }
    }

    /// Commands as fast as they are answered, or each when it is due: the first after so many seconds, and how often.
    fn commands(
        &self,
        mut client: McpClient,
        held: Option<String>,
        due: Option<(f64, f64)>,
        notes: &mut CallRecorder,
    ) {
        let Some(id) = held else { return };
        notes.worked.is_running = true;
        let mut number = 0_u32;
        for command in COMMANDS.iter().cycle() {
            if let Some((first, every)) = due {
                let at = self.begin() + Duration::from_secs_f64(first + every * f64::from(number));
                self.nap(at.saturating_duration_since(Instant::now()));
            }
            if self.is_over() {
                break;
            }
            let called = self.run(&mut client, &id, command);
            number = number.saturating_add(1);
            // Earlier calls are the warm-up.
            if Instant::now() >= self.begin() {
                notes.add("ssh_run_command", called);
            }
        }
        notes.add("ssh_disconnect", client.disconnect(&id));
    }

    /// Runs a command; its output has to equal the first one's.
    fn run(&self, client: &mut McpClient, id: &str, command: &'static str) -> CallOutcome {
        let (mut called, stdout) = client.run(id, command);
        if called.said.is_ok() {
            let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
            let first = outputs.entry(command).or_insert_with(|| stdout.clone());
            if *first != stdout || stdout.is_empty() {
                let wrong = format!("{command} said {stdout:?}, and {first:?} before");
                called.said = Err(CallFailure::new("wrong_output", wrong));
            }
        }
        called
    }

    fn sustain(&self, mut client: McpClient, number: u32, notes: &mut CallRecorder) {
        let mut random = SeededRandom::new(u64::from(number) + 1);
        let mut sessions: Vec<String> = Vec::new();
        while !self.is_over() {
            let roll = random.below(100);
            let [commands, connects] = SUSTAINED_MIX;
            let step = match roll {
                roll if roll < commands => "ssh_run_command",
                roll if roll < commands + connects => "ssh_connect",
                _ => "ssh_disconnect",
            };
            let step = match (step, sessions.len()) {
                (_, 0) => "ssh_connect",
                ("ssh_connect", SUSTAINED_SESSIONS_MAX..) => "ssh_disconnect",
                (step, _) => step,
            };
            let at = random.below(sessions.len().max(1));
            let called = match (step, sessions.get(at)) {
                ("ssh_run_command", Some(id)) => {
                    let command = COMMANDS
                        .get(random.below(COMMANDS.len()))
                        .unwrap_or(&"hostname");
                    self.run(&mut client, id, command)
                }
                ("ssh_disconnect", Some(_)) => client.disconnect(&sessions.swap_remove(at)),
                _ => {
                    let (called, id) = client.connect(self.plan, self.host, false);
                    notes.worked.is_running |= id.is_some();
                    sessions.extend(id);
                    called
                }
            };
            if Instant::now() >= self.begin() {
                notes.add(step, called);
            }
            self.nap(SUSTAINED_PAUSE);
        }
        for id in sessions {
            client.disconnect(&id);
        }
    }

    /// Rounds of one connection of each worker: all try, then all that have one use it and let it go.
    fn exhaust(&self, client: Option<McpClient>, rounds: &RoundBarrier, notes: &mut CallRecorder) {
        let mut client = client;
        notes.worked.is_running = client.is_some();
        loop {
            if rounds.barrier.wait().is_leader() {
                rounds.is_over.store(self.is_over(), Ordering::SeqCst);
            }
            rounds.barrier.wait();
            if rounds.is_over.load(Ordering::SeqCst) {
                return;
            }
            let mut held = None;
            if let Some(client) = &mut client {
                let (called, id) = client.connect(self.plan, self.host, true);
                notes.add("ssh_connect", called);
                held = id;
            }
            rounds.barrier.wait();
            if let (Some(client), Some(id)) = (&mut client, held) {
                let called = self.run(client, &id, COMMANDS[0]);
                notes.add("ssh_run_command", called);
                notes.add("ssh_disconnect", client.disconnect(&id));
            }
        }
    }
}
