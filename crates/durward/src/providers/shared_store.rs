//! The store that replicas share, as it is configured.

use std::path::Path;
use std::sync::Arc;

use state::StoreUnavailable;
use stores::redis::{ConnectFault, ReleaseOutcome, SharedBudgets, StoreFacts};
use stores::{LeaseOptions, LeasedCounter, RedisOptions, RedisServer, StoreThread};

use crate::config::state_store::StateStore;
use crate::failure::Failure;

fn options(own: &StateStore) -> RedisOptions {
    let password = own.password.as_ref();
    RedisOptions {
        password: password.map(|password| password.value.reveal().to_owned()),
        prefix: own.prefix.value.clone(),
        ..RedisOptions::new(own.url.value.reveal())
    }
}

fn server(own: &StateStore) -> Result<(Arc<RedisServer>, Arc<StoreThread>), Failure> {
    let server = RedisServer::new(&options(own))
        .map_err(|fault| Failure::configuration(format!("state: {fault}")))?;
    let thread = StoreThread::start()
        .map_err(|error| Failure::other(format!("the store's thread cannot start: {error}")))?;
    Ok((Arc::new(server), Arc::new(thread)))
}

/// Opens the counter of budgets that replicas share.
///
/// # Errors
/// If the store rejects the login, the name of this replica is taken, or its own file cannot be kept. A store that does
/// not answer is no error: calls with a budget wait for it.
pub fn open_counter(own: &StateStore, file: &Path) -> Result<Arc<LeasedCounter>, Failure> {
    let (server, thread) = server(own)?;
    if let Err(ConnectFault::Rejected(reason)) = inspect(&server, &thread) {
        return Err(rejected(&reason));
    }
    let options = LeaseOptions {
        replicas: own.replicas.value,
        on_loss: own.on_loss.value,
        ..LeaseOptions::new(own.replica.value.clone())
    };
    let counter = LeasedCounter::open(file, server, options, thread)
        .map_err(|error| Failure::other(format!("the budgets cannot be kept: {error}")))?;
    Ok(Arc::new(counter))
}

fn rejected(reason: &str) -> Failure {
    Failure::configuration(format!(
        "the store rejects the login: {reason}\n  hint: check state.url and state.password"
    ))
}

fn inspect(server: &Arc<RedisServer>, thread: &StoreThread) -> Result<StoreFacts, ConnectFault> {
    let server = Arc::clone(server);
    let facts = thread.run_blocking(async move { server.inspect().await }, None);
    facts.unwrap_or_else(|| Err(ConnectFault::Unreachable("no answer".to_owned())))
}

/// Connects to the store and returns its properties.
///
/// # Errors
/// If it cannot be used.
pub fn facts(own: &StateStore) -> Result<StoreFacts, Failure> {
    let (server, thread) = server(own)?;
    inspect(&server, &thread).map_err(|fault| match fault {
        ConnectFault::Rejected(reason) => rejected(&reason),
        ConnectFault::Unreachable(reason) => Failure::other(format!("state: {reason}")),
    })
}

/// The store as operators change it.
pub struct OperatorStore {
    server: Arc<RedisServer>,
    thread: Arc<StoreThread>,
}

impl OperatorStore {
    /// Opens the store. Connects to nothing yet.
    ///
    /// # Errors
    /// If the configuration is wrong.
    pub fn open(own: &StateStore) -> Result<Self, Failure> {
        let (server, thread) = server(own)?;
        Ok(Self { server, thread })
    }

    fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, StoreUnavailable>> + Send + 'static,
    ) -> Result<T, Failure> {
        let result = self.thread.run_blocking(task, None);
        let result = result.unwrap_or_else(|| Err(StoreUnavailable::new("no answer")));
        result.map_err(|error| Failure::other(error.to_string()))
    }

    /// Returns the fleet and its accounts.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn shared_budgets(&self) -> Result<SharedBudgets, Failure> {
        let server = Arc::clone(&self.server);
        self.run(async move { server.shared_budgets().await })
    }

    /// Returns the unused quota of a replica that is gone.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn release(&self, replica: String) -> Result<ReleaseOutcome, Failure> {
        let server = Arc::clone(&self.server);
        self.run(async move { server.release(&replica).await })
    }

    /// Ends a freeze; returns false if there was none.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub fn thaw(&self) -> Result<bool, Failure> {
        let server = Arc::clone(&self.server);
        self.run(async move { server.thaw().await })
    }
}
