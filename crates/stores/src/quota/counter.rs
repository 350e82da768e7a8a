//! Counter that reserves from the claims of this replica.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use state::counter::{
    AccountBudget, AccountUsage, CounterFileError, FileCounter, Reservation, ReservationRecord,
    ReserveError, ReserveRequest, SettleOutcome, SettleStore, SpendAmount,
};
use state::{BoxFuture, CounterStore, StoreUnavailable};

use super::server::{
    BeatOperation, BeatRequest, FleetState, QuotaAnswer, QuotaOperation, QuotaReply, QuotaRequest,
    QuotaServer,
};
use super::table::{AccountLease, LeaseTable};
use crate::thread::StoreThread;

/// Times that a message is sent again because the server has a new epoch.
const ATTEMPTS: usize = 4;
/// Longest time that a call competes for granted quota after its wait.
const CONTENTION: Duration = Duration::from_secs(5);
/// Longest wait for the name of a replica that has ended.
const NAME_WAIT: Duration = Duration::from_secs(8);
/// Bytes of a replica's name, at most.
const NAME_BYTES_MAX: usize = 64;

/// Behaviour while the server cannot be reached and the claims of this replica are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// Reserves nothing.
    #[default]
    Refuse,
    /// Reserves up to the limit divided by the number of replicas. All replicas together may exceed the limit by what
    /// they had used before.
    Share,
}

/// Clock that decides in which window a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeaseClock {
    /// The server's, so that replicas agree whatever their own clocks say.
    #[default]
    Server,
    /// The caller's.
    Caller,
}

/// Bounds and names of a [`LeasedCounter`].
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// Name of this replica, unique in the fleet: letters, digits, `.`, `_`, `-`.
    pub replica: String,
    /// Number of replicas of the fleet.
    pub replicas: u64,
    /// Behaviour while the server cannot be reached.
    pub on_loss: OnLoss,
    /// Clock of the windows.
    pub clock: LeaseClock,
    /// Time between two reports, in milliseconds.
    pub report_ms: u64,
    /// Time after which unused quota of an idle account is returned, in milliseconds.
    pub idle_ms: u64,
    /// Longest wait for quota that other replicas return, in milliseconds.
    pub wait_ms_max: u64,
}

impl LeaseOptions {
    /// Returns the usual options of a replica.
    #[must_use]
    pub fn new(replica: impl Into<String>) -> Self {
        Self {
            replica: replica.into(),
            replicas: 1,
            on_loss: OnLoss::Refuse,
            clock: LeaseClock::Server,
            report_ms: 100,
            idle_ms: 1_000,
            wait_ms_max: 500,
        }
    }
}

/// Error of opening a [`LeasedCounter`].
#[derive(Debug)]
pub enum OpenError {
    /// The name of the replica is empty, too long or has other characters than letters, digits, `.`, `_`, `-`.
    InvalidName(String),
    /// The ledger cannot be read or written.
    Ledger(CounterFileError),
    /// The identity of the ledger cannot be read or written.
    Identity(PathBuf, io::Error),
    /// The system has no thread left.
    Thread(io::Error),
    /// Another process has the name of this replica.
    NameTaken(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(name) => write!(
                f,
                "\"{name}\" is not the name of a replica; use 1 to {NAME_BYTES_MAX} letters, digits and . _ -"
            ),
            Self::Ledger(error) => error.fmt(f),
            Self::Identity(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Thread(error) => write!(f, "the store's thread cannot start: {error}"),
            Self::NameTaken(name) => write!(
                f,
                "another process is the replica \"{name}\"; give each replica its name"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

/// Exact budgets that the replicas of a fleet share. Its own settled use is also in a file, by which a restarted
/// replica goes on with its claims.
pub struct LeasedCounter {
    leases: Arc<QuotaLeases>,
    thread: Arc<StoreThread>,
}

/// State that the counter's tasks share.
pub(super) struct QuotaLeases {
    pub ledger: FileCounter,
    pub server: Arc<dyn QuotaServer>,
    pub options: LeaseOptions,
    pub table: Mutex<LeaseTable>,
    replica: Arc<str>,
    owner: Arc<str>,
    sequence: AtomicU64,
    /// Server's time less this machine's, in milliseconds.
    offset_ms: AtomicI64,
    /// Latest time of a request: time never goes back, so no window begins twice.
    latest_ms: AtomicI64,
    known: Mutex<Vec<Arc<str>>>,
    /// Held while the replica declares itself.
    joining: tokio::sync::Mutex<()>,
    /// The replica leaves the fleet, or has left it.
    is_closed: AtomicBool,
}

impl LeasedCounter {
    /// Opens the ledger in `file`, joins the fleet, and starts to report. A server that does not answer is tried again
    /// until it does.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        file: &Path,
        server: Arc<dyn QuotaServer>,
        options: LeaseOptions,
        thread: Arc<StoreThread>,
    ) -> Result<Self, OpenError> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
        let name = &options.replica;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_valid) {
            return Err(OpenError::InvalidName(name.clone()));
        }
        let is_new = !file.exists();
        let ledger = FileCounter::open(file).map_err(OpenError::Ledger)?;
        let identity = read_identity(file, is_new)?;
        let mut table = LeaseTable::default();
        for (account, window, settled) in ledger.settled_accounts() {
            table.add_settled(&account, window, settled);
        }
        let leases = Arc::new(QuotaLeases {
            ledger,
            server,
            replica: options.replica.as_str().into(),
            owner: format!("{}/{identity}", options.replica).into(),
            table: Mutex::new(table),
            sequence: AtomicU64::new(micros_since_1970()),
            offset_ms: AtomicI64::new(0),
            latest_ms: AtomicI64::new(i64::MIN),
            known: Mutex::default(),
            joining: tokio::sync::Mutex::default(),
            is_closed: AtomicBool::new(false),
            options,
        });
        let counter = Self { leases, thread };
        counter.join()?;
        let reporter = super::report::run(Arc::downgrade(&counter.leases));
        counter.thread.handle().spawn(reporter);
        Ok(counter)
    }

    /// Joins the fleet. A name that is taken is tried again for [`NAME_WAIT`]: a replica that was killed and has lost
    /// its ledger finds the name of its predecessor.
    fn join(&self) -> Result<(), OpenError> {
        let leases = Arc::clone(&self.leases);
        let joining = async move {
            let end = Instant::now() + NAME_WAIT;
            let mut result = leases.synchronise().await;
            while matches!(result, Err(JoinError::NameTaken)) && Instant::now() < end {
                tokio::time::sleep(NAME_WAIT / 16).await;
                result = leases.synchronise().await;
            }
            result
        };
        match self.thread.run_blocking(joining, None) {
            Some(Err(JoinError::NameTaken)) => {
                Err(OpenError::NameTaken(self.leases.options.replica.clone()))
            }
            Some(Err(JoinError::Unavailable(error))) => {
                tracing::warn!("budgets: {error}; calls with a budget wait for it");
                Ok(())
            }
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Returns all unused quota and leaves the fleet. Blocks until the server has confirmed, or `wait` is over. For
    /// the end of the process; must not be called on a thread of a runtime.
    ///
    /// # Errors
    /// [`StoreUnavailable`] if the server has not confirmed in time: the unused quota then counts as used until this
    /// replica returns, its window ends, or an operator releases it.
    pub fn close(&self, wait: Duration) -> Result<(), StoreUnavailable> {
        let leases = Arc::clone(&self.leases);
        let closed = self
            .thread
            .run_blocking(async move { leases.leave().await }, Some(wait));
        closed.unwrap_or_else(|| Err(StoreUnavailable::new("no answer before the end")))
    }
}

/// Reason why a replica is not part of the fleet.
#[derive(Debug)]
pub(super) enum JoinError {
    NameTaken,
    Unavailable(StoreUnavailable),
}

impl From<StoreUnavailable> for JoinError {
    fn from(error: StoreUnavailable) -> Self {
        Self::Unavailable(error)
    }
}

impl From<JoinError> for StoreUnavailable {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::NameTaken => Self::new("another process has the name of this replica"),
            JoinError::Unavailable(error) => error,
        }
    }
}

/// Returns the identity of the ledger in `file`; a new ledger has a new one.
fn read_identity(file: &Path, is_new: bool) -> Result<String, OpenError> {
    let mut path = file.as_os_str().to_owned();
    path.push(".owner");
    let path = PathBuf::from(path);
    let fault = |error| OpenError::Identity(path.clone(), error);
    if !is_new {
        match fs::read_to_string(&path) {
            Ok(text) if text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit()) => {
                return Ok(text);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fault(error)),
        }
    }
    // It has to be unique, not secret.
    let part = || RandomState::new().build_hasher().finish();
    let identity = format!("{:016x}{:016x}", part(), part());
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut opened = options.open(&path).map_err(fault)?;
    opened.write_all(identity.as_bytes()).map_err(fault)?;
    opened.sync_data().map_err(fault)?;
    Ok(identity)
}

fn micros_since_1970() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| u64::try_from(elapsed.as_micros()).unwrap_or(0))
}

/// State of one account after a `take`.
enum TakeOutcome {
    Covered,
    Short {
        remaining: u64,
        /// Other replicas have unused quota, which they may return.
        may_grow: bool,
        is_frozen: bool,
    },
}

impl QuotaLeases {
    pub fn lock_table(&self) -> MutexGuard<'_, LeaseTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_known(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time of the windows at `now_ms` of the caller's clock.
    fn window_time(&self, now_ms: i64) -> i64 {
        let now = now_ms.saturating_add(self.offset_ms.load(Ordering::Relaxed));
        self.latest_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns the latest time of the windows.
    pub fn latest_time(&self) -> i64 {
        match self.options.clock {
            LeaseClock::Caller => self.latest_ms.load(Ordering::Relaxed),
            LeaseClock::Server => {
                let now = i64::try_from(micros_since_1970() / 1_000).unwrap_or(i64::MAX);
                self.window_time(now)
            }
        }
    }

    /// Returns the request with the time of the windows.
    fn at_window_time<'a>(&self, request: &ReserveRequest<'a>) -> ReserveRequest<'a> {
        let now_ms = self.window_time(request.now_ms);
        let expires_ms = request.expires_ms.map(|at| {
            let in_ms = at.saturating_sub(request.now_ms);
            now_ms.saturating_add(in_ms)
        });
        ReserveRequest {
            now_ms,
            expires_ms,
            ..*request
        }
    }

    /// Reserves within the claims; `None` if they do not suffice.
    fn try_within(
        &self,
        request: &ReserveRequest<'_>,
    ) -> Option<Result<Reservation, ReserveError>> {
        let mut table = self.lock_table();
        let mut quotas = Vec::with_capacity(request.budgets.len());
        for budget in request.budgets {
            let lease = table.get(budget, request.now_ms)?;
            lease.touched = Instant::now();
            quotas.push(lease.quota(budget.limit));
        }
        // Under the lock of the table: no claim is lowered between the check and the reservation.
        self.ledger.reserve_within(request, &quotas).transpose()
    }

    /// Sends one message about an account, in the state that the claim has now. Returns `None` if the account is in
    /// another window by now.
    pub async fn send(
        &self,
        account: &Arc<str>,
        window: i64,
        operation: impl FnOnce(AccountUsage, &AccountLease) -> QuotaOperation,
    ) -> Result<Option<QuotaReply>, StoreUnavailable> {
        let (request, settled) = {
            let now_ms = self.latest_time();
            let mut table = self.lock_table();
            let Some(lease) = table.accounts.get_mut(account) else {
                return Ok(None);
            };
            if lease.window != window {
                return Ok(None);
            }
            let usage = self.ledger.account_usage(account, window);
            let operation = operation(usage, lease);
            if operation == QuotaOperation::Return {
                lease.granted = lease.granted.min(usage.total());
            }
            lease.sent = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
            let request = QuotaRequest {
                account: Arc::clone(account),
                window,
                owner: Arc::clone(&self.owner),
                sequence: lease.sent,
                limit: lease.limit.unwrap_or(0),
                operation,
                settled: usage.settled,
                held: lease.granted.max(usage.settled),
                expiry: lease.expiry(now_ms),
                is_known: lease.reported.is_some(),
            };
            (request, usage.settled)
        };
        let sequence = request.sequence;
        let reply = self.server.exchange(request).await?;
        match reply {
            QuotaReply::Applied(answer) => self.apply(account, (window, sequence), answer, settled),
            QuotaReply::Superseded(latest) => {
                self.sequence.fetch_max(latest, Ordering::Relaxed);
            }
            QuotaReply::NewEpoch => {}
        }
        Ok(Some(reply))
    }

    /// Applies an answer unless a later message about the account was sent: that one may have lowered the claim.
    fn apply(
        &self,
        account: &Arc<str>,
        (window, sequence): (i64, u64),
        answer: QuotaAnswer,
        settled: u64,
    ) {
        let mut table = self.lock_table();
        let lease = table.accounts.get_mut(account);
        let Some(lease) = lease.filter(|l| l.window == window && l.sent == sequence) else {
            return;
        };
        lease.apply(answer, settled);
        drop(table);
        // The file has lost its end: the server knows better.
        let own = self.ledger.account_usage(account, window).settled;
        if let Some(lost) = answer.own_settled.checked_sub(own).filter(|lost| *lost > 0) {
            let record = ReservationRecord {
                id: None,
                accounts: vec![state::counter::ReservedAccount {
                    account: Arc::clone(account),
                    window,
                    unit: state::counter::BudgetUnit::Tokens,
                }],
                cost: SpendAmount::default(),
            };
            self.ledger.settle(&record, SpendAmount::tokens(lost));
        }
    }

    /// Sends a message about an account until the server has applied it.
    pub async fn exchange(
        &self,
        account: &Arc<str>,
        window: i64,
        operation: impl Fn(AccountUsage, &AccountLease) -> QuotaOperation,
    ) -> Result<Option<QuotaAnswer>, StoreUnavailable> {
        for _ in 0..ATTEMPTS {
            match self.send(account, window, &operation).await? {
                None => return Ok(None),
                Some(QuotaReply::Applied(answer)) => return Ok(Some(answer)),
                Some(QuotaReply::Superseded(_)) => {}
                Some(QuotaReply::NewEpoch) => self.synchronise().await?,
            }
        }
        Err(StoreUnavailable::new("its state keeps changing"))
    }

    async fn beat(&self, operation: BeatOperation) -> Result<FleetState, JoinError> {
        let request = BeatRequest {
            replica: Arc::clone(&self.replica),
            owner: Arc::clone(&self.owner),
            operation,
            replicas: self.options.replicas,
            known: self.lock_known().clone(),
        };
        let state = self.server.beat(request).await?;
        if state.is_name_taken {
            return Err(JoinError::NameTaken);
        }
        if self.options.clock == LeaseClock::Server {
            let own = i64::try_from(micros_since_1970() / 1_000).unwrap_or(i64::MAX);
            let offset = state.now_ms.saturating_sub(own);
            self.offset_ms.store(offset, Ordering::Relaxed);
        }
        *self.lock_known() = state.replicas.clone();
        Ok(state)
    }

    /// Gives a sign of life; in a new epoch, repeats all claims.
    pub async fn synchronise(&self) -> Result<(), JoinError> {
        let _one_at_a_time = self.joining.lock().await;
        if self.is_closed() {
            return Err(StoreUnavailable::new("this replica has left the fleet").into());
        }
        for _ in 0..ATTEMPTS {
            let state = self.beat(BeatOperation::Beat).await?;
            if state.has_declared {
                return Ok(());
            }
            let accounts: Vec<(Arc<str>, i64)> = {
                let table = self.lock_table();
                let accounts = table.accounts.iter();
                accounts
                    .map(|(account, lease)| (Arc::clone(account), lease.window))
                    .collect()
            };
            let mut is_current = true;
            for (account, window) in accounts {
                let sent = self.send(&account, window, |_, _| QuotaOperation::Report);
                is_current &= sent.await? != Some(QuotaReply::NewEpoch);
            }
            if is_current {
                let declare = BeatOperation::Declare(Arc::clone(&state.epoch));
                if self.beat(declare).await?.has_declared {
                    return Ok(());
                }
            }
        }
        Err(StoreUnavailable::new("its state keeps changing").into())
    }

    /// Returns all unused quota and leaves the fleet.
    async fn leave(&self) -> Result<(), StoreUnavailable> {
        self.is_closed.store(true, Ordering::Relaxed);
        let _one_at_a_time = self.joining.lock().await;
        let accounts: Vec<(Arc<str>, i64)> = {
            let mut table = self.lock_table();
            table.remove_ended(self.latest_ms.load(Ordering::Relaxed));
            let accounts = table.accounts.iter();
            accounts
                .map(|(account, lease)| (Arc::clone(account), lease.window))
                .collect()
        };
        for (account, window) in accounts {
            self.exchange(&account, window, |_, _| QuotaOperation::Return)
                .await?;
        }
        self.beat(BeatOperation::Leave).await?;
        Ok(())
    }

    async fn reserve_remote(
        self: Arc<Self>,
        budgets: Vec<AccountBudget>,
        (cost, began_ms, expires_ms): (SpendAmount, i64, Option<i64>),
    ) -> Result<Reservation, ReserveError> {
        let mut distinct: Vec<(&AccountBudget, u64)> = Vec::with_capacity(budgets.len());
        for budget in &budgets {
            let amount = cost.of(budget.unit);
            match distinct
                .iter_mut()
                .find(|(own, _)| own.account == budget.account)
            {
                Some((_, total)) => *total = total.saturating_add(amount),
                None => distinct.push((budget, amount)),
            }
        }
        let _waiting = WaitingCall::register(&self, &distinct, began_ms)?;
        let deadline = Instant::now() + Duration::from_millis(self.options.wait_ms_max);
        loop {
            // A call that waits beyond the end of a window belongs to the next one.
            let now_ms = self.latest_ms.load(Ordering::Relaxed).max(began_ms);
            let request = ReserveRequest {
                budgets: &budgets,
                cost,
                now_ms,
                expires_ms,
            };
            if let Some(result) = self.try_within(&request) {
                return result;
            }
            if self.is_closed() {
                let reason = "this replica leaves the fleet";
                return Err(ReserveError::Unavailable(StoreUnavailable::new(reason)));
            }
            if Instant::now() > deadline + CONTENTION {
                let reason = "other calls take the quota before this one";
                return Err(ReserveError::Unavailable(StoreUnavailable::new(reason)));
            }
            let mut has_to_wait = false;
            for (budget, amount) in &distinct {
                let outcome = match self.take(budget, *amount, now_ms).await {
                    Ok(outcome) => outcome,
                    Err(error) => self.take_share(budget, *amount, now_ms, error)?,
                };
                let TakeOutcome::Short {
                    remaining,
                    may_grow,
                    is_frozen,
                } = outcome
                else {
                    continue;
                };
                if (may_grow || is_frozen) && Instant::now() < deadline {
                    has_to_wait = true;
                    break;
                }
                if is_frozen {
                    let reason = "its state is new, and not all replicas have reported; durward budgets thaw goes on without them";
                    return Err(ReserveError::Unavailable(StoreUnavailable::new(reason)));
                }
                return Err(ReserveError::Exhausted {
                    account: Arc::clone(&budget.account),
                    unit: budget.unit,
                    remaining,
                    ends_in_ms: budget.ends_in_ms(now_ms),
                });
            }
            match has_to_wait {
                true => {
                    let poll = Duration::from_millis(self.options.report_ms / 4 + 1);
                    tokio::time::sleep(poll).await;
                }
                false => tokio::task::yield_now().await,
            }
        }
    }

    /// Raises the claim on an account so that it covers `amount` beside the use so far.
    async fn take(
        &self,
        budget: &AccountBudget,
        amount: u64,
        now_ms: i64,
    ) -> Result<TakeOutcome, ReserveError> {
        let account = &budget.account;
        let window = budget.window_at(now_ms);
        let turn = Arc::clone(&self.lock_table().open(budget, now_ms)?.turn);
        let _turn = turn.lock().await;
        let answer = match self.is_covered(budget, amount, now_ms) {
            Some(_) => return Ok(TakeOutcome::Covered),
            None => self.exchange(account, window, |usage, lease| QuotaOperation::Take {
                need: usage.total().saturating_add(amount),
                wanted: usage.total().saturating_add(lease.waiting.max(amount)),
            }),
        };
        let answer = answer.await.map_err(ReserveError::Unavailable)?;
        let Some(answer) = answer else {
            return Ok(TakeOutcome::Covered);
        };
        let used = self.ledger.account_usage(account, window).total();
        // An answer that a later message has superseded says what that message will confirm.
        if self.is_covered(budget, amount, now_ms).is_some()
            || answer.granted.checked_sub(used) >= Some(amount)
        {
            return Ok(TakeOutcome::Covered);
        }
        Ok(TakeOutcome::Short {
            remaining: budget
                .limit
                .saturating_sub(answer.others)
                .saturating_sub(used),
            may_grow: answer.others > answer.others_settled
                && answer
                    .others_settled
                    .saturating_add(used)
                    .saturating_add(amount)
                    <= budget.limit,
            is_frozen: answer.is_frozen,
        })
    }

    /// Raises the claim without the server, up to the share of this replica, if the configuration allows that.
    fn take_share(
        &self,
        budget: &AccountBudget,
        amount: u64,
        now_ms: i64,
        error: ReserveError,
    ) -> Result<TakeOutcome, ReserveError> {
        if self.options.on_loss == OnLoss::Refuse || !matches!(error, ReserveError::Unavailable(_))
        {
            return Err(error);
        }
        let share = budget.limit / self.options.replicas.max(1);
        {
            let mut table = self.lock_table();
            let lease = table.open(budget, now_ms)?;
            lease.granted = lease.granted.max(share);
            // Claims of others are not known now.
            lease.others = lease.others.min(budget.limit.saturating_sub(share));
        }
        if self.is_covered(budget, amount, now_ms).is_some() {
            return Ok(TakeOutcome::Covered);
        }
        let window = budget.window_at(now_ms);
        let used = self.ledger.account_usage(&budget.account, window).total();
        Ok(TakeOutcome::Short {
            remaining: share.saturating_sub(used),
            may_grow: false,
            is_frozen: false,
        })
    }

    /// Returns something if the claim covers `amount` beside the use so far.
    fn is_covered(&self, budget: &AccountBudget, amount: u64, now_ms: i64) -> Option<()> {
        let mut table = self.lock_table();
        let granted = table.get(budget, now_ms)?.quota(budget.limit).granted;
        let usage = self
            .ledger
            .account_usage(&budget.account, budget.window_at(now_ms));
        (granted.checked_sub(usage.total())? >= amount).then_some(())
    }

    /// Returns the accounts with use that the server has not confirmed.
    fn unreported(&self) -> Vec<(Arc<str>, i64)> {
        let table = self.lock_table();
        let is_new = |(account, lease): &(&Arc<str>, &AccountLease)| {
            let usage = self.ledger.account_usage(account, lease.window);
            lease.reported.unwrap_or(0) != usage.settled
        };
        let accounts = table.accounts.iter().filter(is_new);
        accounts
            .map(|(account, lease)| (Arc::clone(account), lease.window))
            .collect()
    }

    async fn confirm_all(self: Arc<Self>) -> Result<(), StoreUnavailable> {
        for (account, window) in self.unreported() {
            self.exchange(&account, window, |_, _| QuotaOperation::Report)
                .await?;
        }
        Ok(())
    }

    async fn shared_usage(
        self: Arc<Self>,
        budget: AccountBudget,
        now_ms: i64,
    ) -> Result<u64, StoreUnavailable> {
        let window = budget.window_at(now_ms);
        let opened = self.lock_table().open(&budget, now_ms).map(|_| ());
        opened.map_err(|error| StoreUnavailable::new(error.to_string()))?;
        let answer = self.exchange(&budget.account, window, |_, _| QuotaOperation::Report);
        let others = answer.await?.map_or(0, |answer| answer.others_settled);
        let own = self.ledger.account_usage(&budget.account, window).total();
        Ok(own.saturating_add(others))
    }
}

/// A call's part of the costs that wait for quota.
struct WaitingCall<'a> {
    leases: &'a QuotaLeases,
    accounts: Vec<(Arc<str>, u64)>,
}

impl<'a> WaitingCall<'a> {
    fn register(
        leases: &'a QuotaLeases,
        costs: &[(&AccountBudget, u64)],
        now_ms: i64,
    ) -> Result<Self, ReserveError> {
        let mut call = Self {
            leases,
            accounts: Vec::with_capacity(costs.len()),
        };
        for (budget, amount) in costs {
            let mut table = leases.lock_table();
            let lease = table.open(budget, now_ms)?;
            lease.waiting = lease.waiting.saturating_add(*amount);
            drop(table);
            call.accounts.push((Arc::clone(&budget.account), *amount));
        }
        Ok(call)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        let mut table = self.leases.lock_table();
        for (account, amount) in &self.accounts {
            if let Some(lease) = table.accounts.get_mut(account) {
                lease.waiting = lease.waiting.saturating_sub(*amount);
            }
        }
    }
}

impl SettleStore for LeasedCounter {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        // Without an entry the use would not be reported.
        let mut table = self.leases.lock_table();
        for own in &record.accounts {
            table.add_settled(&own.account, own.window, 0);
        }
        drop(table);
        self.leases.ledger.settle(record, used)
    }
}

impl CounterStore for LeasedCounter {
    fn try_local(&self, request: &ReserveRequest<'_>) -> Option<Result<Reservation, ReserveError>> {
        if request.budgets.is_empty() {
            return self.leases.ledger.try_local(request);
        }
        if !request.budgets.iter().all(AccountBudget::has_valid_name) {
            return Some(Err(ReserveError::InvalidAccount));
        }
        self.leases.try_within(&self.leases.at_window_time(request))
    }

    fn reserve<'a>(
        &'a self,
        request: ReserveRequest<'a>,
    ) -> BoxFuture<'a, Result<Reservation, ReserveError>> {
        if let Some(result) = self.try_local(&request) {
            return Box::pin(async { result });
        }
        let request = self.leases.at_window_time(&request);
        let times = (request.cost, request.now_ms, request.expires_ms);
        let leases = Arc::clone(&self.leases);
        let budgets = request.budgets.to_vec();
        let task = self
            .thread
            .run_detached(leases.reserve_remote(budgets, times));
        Box::pin(async { task.await.map_err(ReserveError::Unavailable)? })
    }

    fn local_usage(&self, budget: &AccountBudget, now_ms: i64) -> Option<u64> {
        let now_ms = self.leases.window_time(now_ms);
        let mut table = self.leases.lock_table();
        let lease = table.get(budget, now_ms)?;
        lease.reported?;
        let own = self
            .leases
            .ledger
            .account_usage(&budget.account, lease.window);
        Some(own.total().saturating_add(lease.others_settled))
    }

    fn usage<'a>(
        &'a self,
        budget: &'a AccountBudget,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<u64, StoreUnavailable>> {
        let now_ms = self.leases.window_time(now_ms);
        let leases = Arc::clone(&self.leases);
        Box::pin(self.thread.run(leases.shared_usage(budget.clone(), now_ms)))
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        Box::pin(self.thread.run(Arc::clone(&self.leases).confirm_all()))
    }
}

impl fmt::Debug for LeasedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedCounter")
            .field("replica", &self.leases.replica)
            .finish_non_exhaustive()
    }
}
