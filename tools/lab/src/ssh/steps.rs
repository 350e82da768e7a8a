//! The scenarios as they are carried out: who connects when, and what is run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::args::Plan;
use super::client::{Called, Client, Wrong};
use super::phase::{Notes, Phase, Worked};
use super::scenario::Scenario;
use crate::interrupt::Interrupt;
use crate::stats::Random;
use crate::wall_clock;

/// What is run, one after the other.
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
struct Floor<'a> {
    plan: &'a Plan,
    host: &'a str,
    interrupt: &'a Interrupt,
    /// When calls begin to count: known when all workers are ready.
    begin: OnceLock<Instant>,
    /// The first output of each command.
    outputs: Mutex<BTreeMap<&'static str, String>>,
}

/// Carries out a scenario; `tell` hears of each step.
pub(super) fn all(plan: &Plan, interrupt: &Interrupt, tell: &mut dyn FnMut(&str)) -> Vec<Phase> {
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

fn phase(plan: &Plan, host: &str, workers: u32, interrupt: &Interrupt) -> Phase {
    let prewarmed = match plan.scenario {
        Scenario::CommandThroughput => prewarmed(plan, host),
        _ => Vec::new(),
    };
    let floor = Floor {
        plan,
        host,
        interrupt,
        begin: OnceLock::new(),
        outputs: Mutex::default(),
    };
    let rounds = Rounds::new(workers);
    let worked: Vec<Worked> = std::thread::scope(|scope| {
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
        Scenario::LatencyTest => host.to_owned(),
        _ => format!("{workers} workers"),
    };
    Phase {
        name,
        host: host.to_owned(),
        asked: workers,
        seconds,
        workers: worked,
    }
}

/// Sessions that have run a command; kept until they are dropped.
fn prewarmed(plan: &Plan, host: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..PREWARMED {
        let Ok(mut client) = Client::open(plan) else {
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
struct Rounds {
    barrier: Barrier,
    is_over: AtomicBool,
}

impl Rounds {
    fn new(workers: u32) -> Self {
        Self {
            barrier: Barrier::new(usize::try_from(workers).unwrap_or(usize::MAX)),
            is_over: AtomicBool::new(false),
        }
    }
}

impl Floor<'_> {
    fn work(&self, number: u32, workers: u32, rounds: &Rounds) -> Worked {
        let mut notes = Notes::new(Instant::now());
        let scenario = self.plan.scenario;
        let mut client = self.opened(&mut notes);
        let mut held = None;
        if let (Scenario::CommandThroughput | Scenario::LatencyTest, Some(client)) =
            (scenario, &mut client)
        {
            let (called, id) = client.connect(self.plan, self.host, false);
            notes.add("ssh_connect", called);
            held = id;
        }
        // Nobody begins before all have what they need.
        if rounds.barrier.wait().is_leader() {
            let _ = self.begin.set(Instant::now() + self.plan.warmup);
        }
        rounds.barrier.wait();
        notes.began = self.begin();
        match (scenario, client) {
            (Scenario::ExhaustionTest, client) => self.exhaust(client, rounds, &mut notes),
            (_, None) => {}
            (Scenario::ConnectionRate, Some(client)) => self.connections(client, &mut notes),
            (Scenario::SustainedLoad, Some(client)) => self.sustain(client, number, &mut notes),
            (Scenario::CommandThroughput, Some(client)) => {
                self.commands(client, held, None, &mut notes);
            }
            (Scenario::LatencyTest, Some(client)) => {
                let every = f64::from(workers) / LATENCY_RATE;
                let first = f64::from(number) / LATENCY_RATE;
                self.commands(client, held, Some((first, every)), &mut notes);
            }
        }
        notes.worked
    }

    /// A session with the server; why there is none is noted as a call.
    fn opened(&self, notes: &mut Notes) -> Option<Client> {
        match Client::open(self.plan) {
            Ok(client) => Some(client),
            Err(wrong) => {
                let called = Called {
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

    fn connections(&self, mut client: Client, notes: &mut Notes) {
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
        mut client: Client,
        held: Option<String>,
        due: Option<(f64, f64)>,
        notes: &mut Notes,
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
            // What comes before is for warming up.
            if Instant::now() >= self.begin() {
                notes.add("ssh_run_command", called);
            }
        }
        notes.add("ssh_disconnect", client.disconnect(&id));
    }

    /// Runs a command whose output has to be the first one's.
    fn run(&self, client: &mut Client, id: &str, command: &'static str) -> Called {
        let (mut called, stdout) = client.run(id, command);
        if called.said.is_ok() {
            let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
            let first = outputs.entry(command).or_insert_with(|| stdout.clone());
            if *first != stdout || stdout.is_empty() {
                let wrong = format!("{command} said {stdout:?}, and {first:?} before");
                called.said = Err(Wrong::new("wrong_output", wrong));
            }
        }
        called
    }

    fn sustain(&self, mut client: Client, number: u32, notes: &mut Notes) {
        let mut random = Random::new(u64::from(number) + 1);
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
    fn exhaust(&self, client: Option<Client>, rounds: &Rounds, notes: &mut Notes) {
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
