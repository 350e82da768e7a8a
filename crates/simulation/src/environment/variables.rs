//! Every variable that the bridge reads, and what it is here.

/// Use of a variable here.
#[derive(Debug, Clone, Copy)]
pub(super) enum VariableUse {
    /// Folders, joined by colons.
    Paths(&'static str),
    /// A whole number.
    Number(&'static str),
    /// Seconds.
    Seconds(&'static str),
    /// A word of the key itself.
    Word(&'static str),
    /// A text of the key itself, as it is.
    Text(&'static str),
    /// One of these words says what is so anyway; another one is refused for the reason.
    Only(&'static [&'static str], &'static str),
    /// Refused for the reason.
    Refused(&'static str),
}

pub(super) use VariableUse::{Number, Only, Paths, Refused, Seconds, Text, Word};

const YES: &[&str] = &["true", "1", "yes", "on"];
const NO: &[&str] = &["false", "0", "no", "off"];

const LISTEN: &str = "the address is a key of its own: listen: HOST:PORT";
const STATE: &str = "everything is kept in the state directory: start with --state-dir DIR";
const NAME: &str = "Durward tells its own name and version";
const WITH_R: &str = "a start does not wait for R: /mcp/capabilities tells whether it is there, and load_simulation fails without it";
const R_HOME: &str = "Rscript knows its home: give r_path";
const NO_CELERY: &str = "jobs run in worker processes of Durward, and not in Celery";
const NO_REDIS: &str = "sessions are kept in memory, and not in Redis";
const NO_S3: &str = "the journal is kept in the state directory, and not in object storage";
const RECORDED: &str = "every call is recorded";
const KEYS: &str = "sign-in with tokens of an identity provider is not built; callers have keys (durward keys create) and groups";
const NO_AGENT: &str = "there is no agent in this server";

/// Every variable that the bridge reads.
pub(super) const VARIABLES: &[(&str, VariableUse)] = &[
    ("HOST", Refused(LISTEN)),
    ("PORT", Refused(LISTEN)),
    (
        "LOG_LEVEL",
        Only(
            &["info", "warning", "error", "critical"],
            "more is told by durward -v and -vv",
        ),
    ),
    ("SERVICE_NAME", Refused(NAME)),
    ("SERVICE_VERSION", Refused(NAME)),
    (
        "ENVIRONMENT",
        Only(
            &["development", "local"],
            "callers are known by their keys in every environment; leave it out",
        ),
    ),
    ("ADAPTER_BACKEND", Word("adapter")),
    ("ADAPTER_REQUIRE_R_ENV", Only(NO, WITH_R)),
    ("ADAPTER_REQUIRE_R", Only(NO, WITH_R)),
    (
        "ADAPTER_TIMEOUT_MS",
        Refused("it bounds a question to R; a run is bounded by job_timeout"),
    ),
    (
        "ADAPTER_TIMEOUT_SECONDS",
        Refused("it bounds a question to R; a run is bounded by job_timeout"),
    ),
    ("ADAPTER_R_PATH", Text("r_path")),
    ("ADAPTER_R_HOME", Refused(R_HOME)),
    ("ADAPTER_R_LIBS", Paths("r_libs")),
    (
        "OSPSUITE_LIBS",
        Refused("the package finds its own libraries; folders with packages are r_libs"),
    ),
    ("R_PATH", Text("r_path")),
    ("R_HOME", Refused(R_HOME)),
    ("R_LIBS", Paths("r_libs")),
    ("ADAPTER_MODEL_PATHS", Paths("models")),
    ("MCP_MODEL_SEARCH_PATHS", Paths("models")),
    (
        "ADAPTER_TO_THREAD",
        Only(YES, "runs are always computed in worker processes"),
    ),
    ("JOB_WORKER_THREADS", Number("workers")),
    ("JOB_TIMEOUT_SECONDS", Seconds("job_timeout")),
    ("JOB_MAX_RETRIES", Number("retries")),
    (
        "JOB_BACKEND",
        Only(
            &["thread"],
            "jobs run in worker processes of Durward; celery and hpc are not there",
        ),
    ),
    ("JOB_REGISTRY_PATH", Refused(STATE)),
    ("JOB_RETENTION_SECONDS", Seconds("keep")),
    ("POPULATION_RETENTION_SECONDS", Seconds("keep")),
    ("CELERY_BROKER_URL", Refused(NO_CELERY)),
    ("CELERY_RESULT_BACKEND", Refused(NO_CELERY)),
    ("CELERY_TASK_ALWAYS_EAGER", Refused(NO_CELERY)),
    ("CELERY_TASK_EAGER_PROPAGATES", Refused(NO_CELERY)),
    ("CELERY_TASK_STORE_EAGER_RESULT", Refused(NO_CELERY)),
    ("SESSION_BACKEND", Only(&["memory"], NO_REDIS)),
    ("SESSION_REDIS_URL", Refused(NO_REDIS)),
    ("SESSION_REDIS_PREFIX", Refused(NO_REDIS)),
    ("SESSION_TTL_SECONDS", Seconds("idle")),
    ("POPULATION_STORAGE_PATH", Refused(STATE)),
    ("SNAPSHOT_STORAGE_PATH", Refused(STATE)),
    ("AUDIT_ENABLED", Only(YES, RECORDED)),
    ("AUDIT_TRAIL_ENABLED", Only(YES, RECORDED)),
    ("AUDIT_STORAGE_PATH", Refused(STATE)),
    ("AUDIT_STORAGE_BACKEND", Only(&["local"], NO_S3)),
    ("AUDIT_S3_BUCKET", Refused(NO_S3)),
    ("AUDIT_S3_PREFIX", Refused(NO_S3)),
    ("AUDIT_S3_REGION", Refused(NO_S3)),
    ("AUDIT_S3_OBJECT_LOCK_MODE", Refused(NO_S3)),
    ("AUDIT_S3_OBJECT_LOCK_DAYS", Refused(NO_S3)),
    ("AUDIT_S3_KMS_KEY_ID", Refused(NO_S3)),
    (
        "AUDIT_VERIFY_LOOKBACK_DAYS",
        Refused("durward audit verify checks the whole journal"),
    ),
    ("AUTH_ISSUER_URL", Refused(KEYS)),
    ("AUTH_AUDIENCE", Refused(KEYS)),
    ("AUTH_JWKS_URL", Refused(KEYS)),
    ("AUTH_JWKS_CACHE_SECONDS", Refused(KEYS)),
    ("AUTH_DEV_SECRET", Refused(KEYS)),
    (
        "AUTH_RATE_LIMIT_PER_MINUTE",
        Refused("limits are keys of their own: limits: { requests: 120/m }"),
    ),
    ("AUTH_CLOCK_SKEW_SECONDS", Refused(KEYS)),
    ("AUTH_REPLAY_WINDOW_SECONDS", Refused(KEYS)),
    (
        "AUTH_ALLOW_ANONYMOUS",
        Only(
            NO,
            "whether a caller needs a key is said by the keys that there are",
        ),
    ),
    ("AGENT_CHECKPOINTER_PATH", Refused(NO_AGENT)),
];
