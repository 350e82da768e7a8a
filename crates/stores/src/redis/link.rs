//! Connection to a Redis server: one at a time, made again after a failure.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError,
};
use state::StoreUnavailable;

/// Time after a failure in which no new connection is tried.
const BACK_OFF: Duration = Duration::from_millis(50);
/// Requests on the way at once, at most.
const REQUESTS_MAX: usize = 1_024;
/// Bytes of a prefix, at most.
const PREFIX_BYTES_MAX: usize = 64;

/// Address and bounds of a [`RedisServer`].
#[derive(Clone)]
pub struct RedisOptions {
    /// URL: `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS. Not printed.
    pub url: String,
    /// Password instead of the one in the URL. Not printed.
    pub password: Option<String>,
    /// First part of all keys.
    pub prefix: String,
    /// Longest wait for a connection, and for an answer, in milliseconds.
    pub timeout_ms_max: u64,
}

impl RedisOptions {
    /// Returns the usual options of a server.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            prefix: "durward".to_owned(),
            timeout_ms_max: 500,
        }
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Reason why a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectFault {
    /// The URL or the prefix is wrong, or the server rejects the login: waiting does not help.
    Rejected(String),
    /// The server does not answer.
    Unreachable(String),
}

impl fmt::Display for ConnectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(reason) | Self::Unreachable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ConnectFault {}

/// Properties of a server that matter to budgets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFacts {
    /// Version of the server.
    pub version: String,
    /// Time of one request, in microseconds.
    pub latency_us: u64,
    /// Keys that the server deletes when its memory is full; `noeviction` is right.
    pub eviction_policy: Option<String>,
    /// The server appends each write to a file.
    pub has_append_file: bool,
    /// The server writes snapshots.
    pub has_snapshots: Option<bool>,
    /// Server's time less this machine's, in milliseconds.
    pub clock_offset_ms: i64,
}

/// A Redis server.
pub struct RedisServer {
    pub(super) prefix: String,
    client: Client,
    timeout: Duration,
    link: tokio::sync::Mutex<LinkState>,
    /// Epoch that the latest sign of life has reported, and the number of replicas.
    pub(super) epoch: Mutex<(Arc<str>, usize)>,
}

#[derive(Default)]
struct LinkState {
    live: Option<Link>,
    generation: u64,
    failure: Option<(Instant, StoreUnavailable)>,
}

/// Connection to one server process.
#[derive(Clone)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    generation: u64,
    /// Identity of the server process.
    pub run: Arc<str>,
    account_script: Arc<str>,
    fleet_script: Arc<str>,
    lease_script: Arc<str>,
    operator_script: Arc<str>,
}

/// Script of the store.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoreScript {
    Account,
    Fleet,
    Lease,
    Operator,
}

impl StoreScript {
    fn source(self) -> &'static str {
        match self {
            Self::Account => include_str!("account.lua"),
            Self::Fleet => include_str!("fleet.lua"),
            Self::Lease => include_str!("lease.lua"),
            Self::Operator => include_str!("operator.lua"),
        }
    }
}

impl RedisServer {
    /// Reads the options. Connects to nothing.
    ///
    /// # Errors
    /// [`ConnectFault::Rejected`] if the URL or the prefix is wrong; the text does not contain the URL.
    pub fn new(options: &RedisOptions) -> Result<Self, ConnectFault> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-', ':'].contains(&c);
        let prefix = &options.prefix;
        if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX || !prefix.chars().all(is_valid) {
            let reason = "the prefix is not 1 to 64 letters, digits and . _ - :";
            return Err(ConnectFault::Rejected(reason.to_owned()));
        }
        let wrong = |_: RedisError| {
            let reason = "the URL is not redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE], or rediss:// for TLS";
            ConnectFault::Rejected(reason.to_owned())
        };
        let mut info = options.url.as_str().into_connection_info().map_err(wrong)?;
        if let Some(password) = &options.password {
            let login = info.redis_settings().clone().set_password(password);
            info = info.set_redis_settings(login);
        }
        Ok(Self {
            prefix: format!("{{{prefix}}}"),
            client: Client::open(info).map_err(wrong)?,
            timeout: Duration::from_millis(options.timeout_ms_max.max(1)),
            link: tokio::sync::Mutex::default(),
            epoch: Mutex::new(("".into(), 1)),
        })
    }

    pub(super) fn epoch(&self) -> (Arc<str>, usize) {
        self.epoch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn connect(&self, generation: u64) -> Result<Link, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_concurrency_limit(REQUESTS_MAX);
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await?;
        let mut info = redis::cmd("INFO");
        let text: String = info.arg("server").query_async(&mut connection).await?;
        let run = field(&text, "run_id").unwrap_or_default().into();
        let mut hashes = Vec::new();
        for script in [
            StoreScript::Account,
            StoreScript::Fleet,
            StoreScript::Lease,
            StoreScript::Operator,
        ] {
            let mut load = redis::cmd("SCRIPT");
            let load = load.arg("LOAD").arg(script.source());
            hashes.push(load.query_async::<String>(&mut connection).await?);
        }
        let mut hashes = hashes.into_iter().map(Arc::from);
        Ok(Link {
            connection,
            generation,
            run,
            account_script: hashes.next().unwrap_or_default(),
            fleet_script: hashes.next().unwrap_or_default(),
            lease_script: hashes.next().unwrap_or_default(),
            operator_script: hashes.next().unwrap_or_default(),
        })
    }

    /// Returns the connection, and makes it first if there is none.
    pub(super) async fn link(&self) -> Result<Link, StoreUnavailable> {
        let mut state = self.link.lock().await;
        if let Some(live) = &state.live {
            return Ok(live.clone());
        }
        if let Some((at, error)) = &state.failure
            && at.elapsed() < BACK_OFF
        {
            return Err(error.clone());
        }
        state.generation += 1;
        match self.connect(state.generation).await {
            Ok(link) => {
                state.live = Some(link.clone());
                state.failure = None;
                Ok(link)
            }
            Err(error) => {
                let error = unavailable(&error);
                state.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Runs a script. A connection that has broken since its last use is made again once: repeated messages change
    /// nothing. `arguments` are built for the server process that the connection leads to.
    ///
    /// # Errors
    /// If the server does not answer, or with an error.
    pub(super) async fn run_script<T: FromRedisValue>(
        &self,
        script: StoreScript,
        keys: &[&str],
        arguments: impl Fn(&str) -> Vec<String>,
    ) -> Result<T, StoreUnavailable> {
        let mut is_second = false;
        loop {
            let mut link = self.link().await?;
            let arguments = arguments(&link.run);
            match self.run(&mut link, script, keys, &arguments).await {
                Err(error) if !is_second && !error.is_timeout() => is_second = true,
                result => return result.map_err(|error| unavailable(&error)),
            }
        }
    }

    /// Runs a script on a connection. After any failure the connection is given up: requests on it have an unknown
    /// outcome.
    async fn run<T: FromRedisValue>(
        &self,
        link: &mut Link,
        script: StoreScript,
        keys: &[&str],
        arguments: &[String],
    ) -> Result<T, RedisError> {
        let hash = match script {
            StoreScript::Account => &link.account_script,
            StoreScript::Fleet => &link.fleet_script,
            StoreScript::Lease => &link.lease_script,
            StoreScript::Operator => &link.operator_script,
        };
        let build = |name: &str, first: &str| {
            let mut command = redis::cmd(name);
            command.arg(first).arg(keys.len()).arg(keys).arg(arguments);
            command
        };
        let command = build("EVALSHA", hash);
        let mut result = command.query_async(&mut link.connection).await;
        if let Err(error) = &result
            && error.kind() == ErrorKind::Server(redis::ServerErrorKind::NoScript)
        {
            let command = build("EVAL", script.source());
            result = command.query_async(&mut link.connection).await;
        }
        self.check(link, result).await
    }

    /// Gives a connection up if its request has failed.
    async fn check<T>(&self, link: &Link, result: Result<T, RedisError>) -> Result<T, RedisError> {
        if result.is_err() {
            let mut state = self.link.lock().await;
            let live = state.live.as_ref();
            if live.is_some_and(|live| live.generation == link.generation) {
                state.live = None;
            }
        }
        result
    }

    /// Runs a command that can be repeated. A connection that has broken is given up, and made again once.
    ///
    /// # Errors
    /// If the server does not answer, or with an error.
    pub(super) async fn query<T: FromRedisValue>(
        &self,
        command: &redis::Cmd,
    ) -> Result<T, StoreUnavailable> {
        let mut is_second = false;
        loop {
            let mut link = self.link().await?;
            let result = command.query_async(&mut link.connection).await;
            match self.check(&link, result).await {
                Err(error) if !is_second && !error.is_timeout() => is_second = true,
                result => return result.map_err(|error| unavailable(&error)),
            }
        }
    }

    /// Connects anew and reads what matters to budgets.
    ///
    /// # Errors
    /// [`ConnectFault`].
    pub async fn inspect(&self) -> Result<StoreFacts, ConnectFault> {
        let fault = |error: RedisError| {
            let text = describe(&error);
            match error.kind() {
                ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
                    ConnectFault::Rejected(text)
                }
                _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => {
                    ConnectFault::Rejected(text)
                }
                _ => ConnectFault::Unreachable(text),
            }
        };
        let mut link = self.connect(0).await.map_err(fault)?;
        let began = Instant::now();
        let time = redis::cmd("TIME");
        let time = time.query_async::<(i64, i64)>(&mut link.connection);
        let (seconds, micros) = time.await.map_err(fault)?;
        let latency = began.elapsed();
        let own = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let own = own.map_or(0, |own| i64::try_from(own.as_millis()).unwrap_or(i64::MAX));
        let info = redis::cmd("INFO");
        let text = info.query_async::<String>(&mut link.connection);
        let text = text.await.map_err(fault)?;
        let mut save = redis::cmd("CONFIG");
        let save = save.arg("GET").arg("save");
        // Managed servers forbid CONFIG.
        let save = save.query_async::<Vec<String>>(&mut link.connection).await;
        Ok(StoreFacts {
            version: field(&text, "redis_version")
                .unwrap_or("unknown")
                .to_owned(),
            latency_us: u64::try_from(latency.as_micros()).unwrap_or(u64::MAX),
            eviction_policy: field(&text, "maxmemory_policy").map(str::to_owned),
            has_append_file: field(&text, "aof_enabled") == Some("1"),
            has_snapshots: save.ok().and_then(|save| Some(!save.get(1)?.is_empty())),
            clock_offset_ms: seconds
                .saturating_mul(1_000)
                .saturating_add(micros / 1_000)
                .saturating_sub(own),
        })
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Returns a field of the text that INFO gives.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
}

/// Returns the text of an error. The library's errors contain neither URL nor password.
fn describe(error: &RedisError) -> String {
    match error.is_timeout() {
        true => "redis: no answer in time".to_owned(),
        false => format!("redis: {error}"),
    }
}

pub(super) fn unavailable(error: &RedisError) -> StoreUnavailable {
    StoreUnavailable::new(describe(error))
}
