//! Budgets on a real Redis server: the contract, and what is promised when something fails.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mocks::redis_server::RedisProcess;
use state::CounterStore;
use state::contract::counter::{CounterFixture, check_counter_store, check_counter_threads};
use state::contract::{SeededRandom, block_on};
use state::counter::{
    AccountBudget, BudgetUnit, Reservation, ReserveError, ReserveRequest, SpendAmount,
};
use stores::redis::ConnectFault;
use stores::{
    LeaseClock, LeaseOptions, LeasedCounter, OnLoss, OpenError, RedisOptions, RedisServer,
    StoreThread,
};

use super::server::{TestDirectory, redis};

/// Opens a counter with its claims under a prefix.
fn open(url: &str, prefix: &str, file: &Path, options: LeaseOptions) -> LeasedCounter {
    let server = RedisOptions {
        prefix: prefix.to_owned(),
        ..RedisOptions::new(url)
    };
    let server = Arc::new(RedisServer::new(&server).unwrap());
    let thread = Arc::new(StoreThread::start().unwrap());
    LeasedCounter::open(file, server, options, thread).unwrap()
}

fn caller_clock(replica: &str) -> LeaseOptions {
    LeaseOptions {
        clock: LeaseClock::Caller,
        ..LeaseOptions::new(replica)
    }
}

#[test]
fn leases_on_redis_keep_the_contract_of_a_counter() {
    let Some(redis) = redis() else {
        return;
    };
    let directory = TestDirectory::new("contract-ledgers");
    let count = AtomicU32::new(0);
    let make = || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("t{number}");
        // A user that the test can take away: the server then rejects the connection.
        let user = format!("u{number}");
        let mut admin = redis_admin(&redis.url());
        let mut rule = redis::cmd("ACL");
        rule.arg("SETUSER")
            .arg(&user)
            .arg(&["on", ">secret", "allkeys", "allcommands"]);
        rule.query::<()>(&mut admin).unwrap();
        let url = format!("redis://{user}:secret@127.0.0.1:{}", redis.port());
        let file = directory.0.join(format!("ledger-{number}"));
        let copy = directory.0.join(format!("successor-{number}"));
        let store = open(&url, &prefix, &file, caller_clock("a"));
        CounterFixture {
            store: Arc::new(store),
            fail: Some(Box::new(move || {
                let mut delete = redis::cmd("ACL");
                let delete = delete.arg("DELUSER").arg(&user);
                delete.query::<()>(&mut redis_admin(&url)).unwrap();
            })),
            restart: Some(Box::new({
                let url = redis.url();
                move || {
                    for end in ["", ".owner"] {
                        let part = |path: &Path| format!("{}{end}", path.display());
                        std::fs::copy(part(&file), part(&copy)).unwrap();
                    }
                    Arc::new(open(&url, &prefix, &copy, caller_clock("a"))) as Arc<dyn CounterStore>
                }
            })),
        }
    };
    for seed in 0..2 {
        let report = block_on(check_counter_store(make, seed));
        let report = report.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!(report.skipped, [], "{report:?}");
    }
    check_counter_threads(&*make().store).unwrap_or_else(|violation| panic!("{violation}"));
}

fn redis_admin(url: &str) -> redis::Connection {
    let port = url.rsplit_once(':').unwrap().1;
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    client.get_connection().unwrap()
}

/// Replicas of one fleet on one server, each with a ledger of its own.
struct Fleet<'a> {
    redis: &'a RedisProcess,
    directory: TestDirectory,
}

/// Options by which the waits of a test are short.
fn quick(replica: &str) -> LeaseOptions {
    LeaseOptions {
        report_ms: 10,
        idle_ms: 100,
        wait_ms_max: 2_000,
        ..caller_clock(replica)
    }
}

impl<'a> Fleet<'a> {
    fn new(redis: &'a RedisProcess) -> Self {
        Self {
            redis,
            directory: TestDirectory::new("fleet"),
        }
    }

    fn file(&self, replica: &str) -> std::path::PathBuf {
        self.directory.0.join(replica)
    }

    fn open_with(&self, options: LeaseOptions) -> Result<LeasedCounter, OpenError> {
        let server = RedisServer::new(&RedisOptions::new(self.redis.url())).unwrap();
        let thread = Arc::new(StoreThread::start().unwrap());
        let file = self.file(&options.replica);
        LeasedCounter::open(&file, Arc::new(server), options, thread)
    }

    fn open(&self, replica: &str) -> LeasedCounter {
        self.open_with(quick(replica)).unwrap()
    }
}

/// A window that no test outlasts.
const WINDOW_MS: u64 = 1_000_000_000_000;
const NOW_MS: i64 = 1_700_000_000_000;

fn budget(account: &str, limit: u64) -> AccountBudget {
    AccountBudget {
        account: account.into(),
        unit: BudgetUnit::Tokens,
        limit,
        window_ms: WINDOW_MS,
    }
}

fn reserve(
    store: &LeasedCounter,
    budgets: &[AccountBudget],
    tokens: u64,
) -> Result<Reservation, ReserveError> {
    let store: &dyn CounterStore = store;
    let cost = SpendAmount::tokens(tokens);
    block_on(store.acquire(ReserveRequest::new(budgets, cost, NOW_MS)))
}

/// Spends an amount that the test expects to be available.
fn spend(store: &LeasedCounter, budgets: &[AccountBudget], tokens: u64) {
    let held = reserve(store, budgets, tokens).unwrap();
    held.settle(SpendAmount::tokens(tokens));
}

/// Spends one by one until nothing is left; returns the amount.
fn spend_rest(store: &LeasedCounter, budgets: &[AccountBudget]) -> u64 {
    let mut spent = 0;
    loop {
        match reserve(store, budgets, 1) {
            Ok(held) => held.settle(SpendAmount::tokens(1)),
            Err(ReserveError::Exhausted { .. }) => return spent,
            Err(error) => panic!("after {spent}: {error}"),
        }
        spent += 1;
    }
}

/// Callers at all stores at once, which reserve 1 to 20 and use that much or less, until each is refused. Returns what
/// they have used.
fn race(stores: &[LeasedCounter], budgets: &[AccountBudget], callers: u64) -> u64 {
    std::thread::scope(|scope| {
        let spawn = |(number, store)| {
            scope.spawn(move || {
                let mut random = SeededRandom::new(number);
                let (mut total, mut refused) = (0, 0);
                while refused < 3 {
                    let cost = 1 + random.below(20);
                    match reserve(store, budgets, cost) {
                        Ok(held) => {
                            let used = random.below(cost + 1);
                            total += used;
                            held.settle(SpendAmount::tokens(used));
                        }
                        Err(_) => refused += 1,
                    }
                }
                total
            })
        };
        let callers =
            (0..callers).flat_map(|caller| stores.iter().map(move |store| (caller, store)));
        let callers = callers.enumerate();
        let threads: Vec<_> = callers
            .map(|(number, (_, store))| spawn((u64::try_from(number).unwrap(), store)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

#[test]
fn four_replicas_of_sixty_four_callers_spend_nested_budgets_exactly() {
    let Some(redis) = redis() else {
        return;
    };
    let fleet = Fleet::new(&redis);
    let stores = ["a", "b", "c", "d"].map(|name| fleet.open(name));
    let budgets = [budget("team", 60_000), budget("tenant", 40_000)];
    let raced = race(&stores, &budgets, 64);
    assert!(raced <= 40_000, "{raced}");
    let rest: u64 = stores.iter().map(|store| spend_rest(store, &budgets)).sum();
    assert_eq!(raced + rest, 40_000, "the rest is {rest}");
}

#[test]
fn budgets_of_ten_calls_are_shared_without_rest() {
    let Some(redis) = redis() else {
        return;
    };
    let fleet = Fleet::new(&redis);
    let stores = ["a", "b", "c"].map(|name| fleet.open(name));
    let own = [budget("ten", 10)];
    let spent: Vec<u64> = stores.iter().map(|store| spend_rest(store, &own)).collect();
    assert_eq!(spent, [10, 0, 0]);
    let own = [budget("by turns", 10)];
    for round in 0..10 {
        spend(&stores[round % 3], &own, 1);
    }
    for store in &stores {
        assert_eq!(spend_rest(store, &own), 0);
    }
}

#[test]
fn a_clean_end_returns_unused_quota_and_a_kill_strands_no_more_than_a_lease() {
    let Some(redis) = redis() else {
        return;
    };
    let fleet = Fleet::new(&redis);
    let own = [budget("b", 1_000)];
    let slow = |replica: &str| LeaseOptions {
        idle_ms: 3_600_000,
        ..quick(replica)
    };
    let first = fleet.open_with(slow("a")).unwrap();
    let second = fleet.open("b");
    spend(&first, &own, 1);
    first.close(std::time::Duration::from_secs(10)).unwrap();
    drop(first);
    spend(&second, &own, 998);
    // Killed with a lease and one call in flight: what it held counts as used.
    let first = fleet.open_with(slow("a")).unwrap();
    drop(reserve(&second, &own, 1).unwrap());
    std::mem::forget(reserve(&first, &own, 1).unwrap());
    drop(first);
    assert_eq!(spend_rest(&second, &own), 0);
}

#[test]
fn use_belongs_to_a_ledger_so_a_restart_without_it_forgets_nothing() {
    let Some(redis) = redis() else {
        return;
    };
    let fleet = Fleet::new(&redis);
    let own = [budget("b", 1_000)];
    let mut spent = 0;
    for _ in 0..4 {
        let store = fleet.open("a");
        let before = spent;
        while spent < 1_000 && spent - before < 300 {
            match reserve(&store, &own, 10) {
                Ok(held) => held.settle(SpendAmount::tokens(10)),
                Err(_) => break,
            }
            spent += 10;
        }
        block_on(CounterStore::flush(&store)).unwrap();
        // As a kill with the loss of the disk; the name stays taken until its lifetime is over.
        drop(store);
        for end in ["", ".owner"] {
            std::fs::remove_file(format!("{}{end}", fleet.file("a").display())).unwrap();
        }
        release_name(&redis, "a");
    }
    assert!((900..=1_000).contains(&spent), "{spent} of 1000");
    assert!(reserve(&fleet.open("b"), &own, 1_001 - spent).is_err());
}

/// Lets the lifetime of a replica's name end at once.
fn release_name(redis: &RedisProcess, replica: &str) {
    let mut admin = redis_admin(&redis.url());
    let mut set = redis::cmd("HSET");
    let set = set
        .arg("{durward}:fleet")
        .arg(format!("r:{replica}"))
        .arg("gone 0");
    set.query::<()>(&mut admin).unwrap();
}

/// Opens replicas of one fleet, which wait long for each other.
fn open_patient(
    redis: &RedisProcess,
    directory: &TestDirectory,
    names: &[&str],
    on_loss: OnLoss,
) -> Vec<LeasedCounter> {
    let options = |name: &str| LeaseOptions {
        on_loss,
        replicas: u64::try_from(names.len()).unwrap(),
        wait_ms_max: 20_000,
        ..quick(name)
    };
    let open = |name: &&str| {
        let file = directory.0.join(name);
        open(&redis.url(), "durward", &file, options(name))
    };
    names.iter().map(open).collect()
}

/// Waits until the server has answered a replica.
fn await_answer(store: &LeasedCounter, own: &AccountBudget) {
    while block_on(CounterStore::usage(store, own, NOW_MS)).is_err() {}
}

#[test]
fn a_server_that_restarts_empty_grants_nothing_until_all_replicas_have_reported() {
    let Some(mut redis) = redis() else {
        return;
    };
    let own = [budget("b", 4_000)];
    let directory = TestDirectory::new("empty");
    let stores = open_patient(&redis, &directory, &["a", "b", "c"], OnLoss::Refuse);
    for store in &stores[..2] {
        for _ in 0..100 {
            spend(store, &own, 10);
        }
    }
    redis.restart().unwrap();
    // The third has spent nothing, and must not find an unspent budget.
    assert_eq!(spend_rest(&stores[2], &own), 2_000);
    for store in &stores {
        assert_eq!(spend_rest(store, &own), 0);
    }
}

#[test]
fn an_account_that_the_server_has_lost_is_not_granted_again() {
    let Some(redis) = redis() else {
        return;
    };
    let own = [budget("b", 1_000)];
    let directory = TestDirectory::new("lost");
    let stores = open_patient(&redis, &directory, &["a", "b"], OnLoss::Refuse);
    for store in &stores {
        spend(store, &own, 400);
    }
    let mut admin = redis_admin(&redis.url());
    redis::cmd("FLUSHALL").query::<()>(&mut admin).unwrap();
    let rest: u64 = stores.iter().map(|store| spend_rest(store, &own)).sum();
    assert_eq!(rest, 200);
}

#[test]
fn a_stopped_server_costs_waits_and_no_quota() {
    let Some(redis) = redis() else {
        return;
    };
    let fleet = Fleet::new(&redis);
    let stores = ["a", "b"].map(|name| fleet.open(name));
    let own = [budget("b", 2_000)];
    let spent = std::thread::scope(|scope| {
        let racing = scope.spawn(|| race(&stores, &own, 4));
        std::thread::sleep(std::time::Duration::from_millis(5));
        redis.set_stopped(true).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        redis.set_stopped(false).unwrap();
        racing.join().unwrap()
    });
    assert!(spent <= 2_000);
    for store in &stores {
        // Until its first answer after the stop.
        await_answer(store, &own[0]);
    }
    let rest: u64 = stores.iter().map(|store| spend_rest(store, &own)).sum();
    assert_eq!(spent + rest, 2_000, "the rest is {rest}");
}

#[test]
fn without_its_server_a_replica_refuses_or_has_its_share() {
    let Some(mut redis) = redis() else {
        return;
    };
    let own = [budget("b", 100)];
    for on_loss in [OnLoss::Refuse, OnLoss::Share] {
        let directory = TestDirectory::new("away");
        let stores = open_patient(&redis, &directory, &["a", "b"], on_loss);
        redis.kill();
        let spent = match on_loss {
            OnLoss::Refuse => {
                let error = reserve(&stores[0], &own, 1).map(drop).unwrap_err();
                assert!(matches!(error, ReserveError::Unavailable(_)), "{error}");
                0
            }
            OnLoss::Share => spend_rest(&stores[0], &own),
        };
        assert!([0, 50].contains(&spent), "{spent}");
        redis.restart().unwrap();
        for store in &stores {
            await_answer(store, &own[0]);
        }
        assert_eq!(spend_rest(&stores[1], &own), 100 - spent, "{on_loss:?}");
        drop(stores);
        redis.restart().unwrap();
    }
}

#[test]
fn a_store_that_is_down_at_the_start_is_used_once_it_is_there() {
    let Some(mut redis) = redis() else {
        return;
    };
    redis.kill();
    let directory = TestDirectory::new("down");
    let store = open(&redis.url(), "durward", &directory.0.join("a"), quick("a"));
    let own = [budget("b", 10)];
    let error = reserve(&store, &own, 1).map(drop).unwrap_err();
    assert!(matches!(error, ReserveError::Unavailable(_)), "{error}");
    redis.restart().unwrap();
    await_answer(&store, &own[0]);
    assert_eq!(spend_rest(&store, &own), 10);
}

#[test]
fn a_name_belongs_to_one_process() {
    let Some(redis) = redis() else {
        return;
    };
    let fleet = Fleet::new(&redis);
    let _first = fleet.open("a");
    let other = TestDirectory::new("twin");
    let server = RedisServer::new(&RedisOptions::new(redis.url())).unwrap();
    let thread = Arc::new(StoreThread::start().unwrap());
    let twin = LeasedCounter::open(&other.0.join("a"), Arc::new(server), quick("a"), thread);
    assert!(matches!(twin, Err(OpenError::NameTaken(_))), "{twin:?}");
}

#[test]
fn a_wrong_password_is_reported_without_it() {
    let Some(redis) = redis() else {
        return;
    };
    let options = RedisOptions {
        password: Some("s3cret".to_owned()),
        ..RedisOptions::new(redis.url().replace("//", "//other:hidden@"))
    };
    let server = Arc::new(RedisServer::new(&options).unwrap());
    let shown = format!("{options:?} {server:?}");
    let thread = StoreThread::start().unwrap();
    let facts = thread.run_blocking(async move { server.inspect().await }, None);
    let fault = facts.unwrap().unwrap_err();
    assert!(matches!(fault, ConnectFault::Rejected(_)), "{fault:?}");
    for secret in ["s3cret", "hidden"] {
        assert!(!format!("{shown} {fault} {fault:?}").contains(secret));
    }
    let server = Arc::new(RedisServer::new(&RedisOptions::new(redis.url())).unwrap());
    let facts = thread.run_blocking(async move { server.inspect().await }, None);
    let facts = facts.unwrap().unwrap();
    let major = facts.version.split('.').next().unwrap();
    assert!(major.parse::<u32>().unwrap() >= 6, "{facts:?}");
    assert_eq!(facts.eviction_policy.as_deref(), Some("noeviction"));
    assert_eq!(
        (facts.has_append_file, facts.has_snapshots),
        (false, Some(false))
    );
}
