//! The keys beside `builtin: simulation`, and what they default to.

use toolkit::options::{OptionDef, OptionKind, Options};

use crate::jobs::Settings;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// How long a job may take where its caller does not say, in milliseconds.
const JOB_TIMEOUT_MS: u64 = 300_000;
/// Runs at a time.
const WORKERS: u64 = 2;

/// Every option.
pub const OPTIONS: &[OptionDef] = &[
    OptionDef::required(
        "models",
        OptionKind::Paths,
        "folders from which models may be loaded; links out of them are not followed",
    ),
    OptionDef::new(
        "workers",
        OptionKind::Number(1..=32),
        "2",
        "runs at a time, and threads of one population",
    ),
    OptionDef::new(
        "job_timeout",
        OptionKind::SpanMs(1_000..=7 * DAY_MS),
        "300s",
        "how long a run may take where its caller does not say",
    ),
    OptionDef::new(
        "keep",
        OptionKind::SpanMs(60_000..=365 * DAY_MS),
        "168h",
        "how long jobs and results are kept",
    ),
    OptionDef::new(
        "results_bytes",
        OptionKind::Bytes(1 << 20..=1 << 44),
        "8GiB",
        "most bytes of all results together",
    ),
    OptionDef::new(
        "simulations_max",
        OptionKind::Number(1..=1_000),
        "32",
        "most simulations that one caller has loaded",
    ),
    OptionDef::new(
        "jobs_max",
        OptionKind::Number(1..=10_000),
        "100",
        "most jobs of one caller that have not ended",
    ),
    OptionDef::new(
        "idle",
        OptionKind::SpanMs(60_000..=30 * DAY_MS),
        "24h",
        "how long a caller's simulations stay loaded unused",
    ),
];

/// What the options say.
#[derive(Debug, Clone, Copy)]
pub struct Configured {
    /// What is kept and done at a time.
    pub settings: Settings,
    /// How long a job may take, in milliseconds.
    pub job_timeout_ms: u64,
    /// Most simulations of one caller.
    pub simulations_max: usize,
    /// How long simulations stay loaded unused, in milliseconds.
    pub idle_ms: i64,
}

/// Reads the options.
#[must_use]
pub fn configured(options: &Options) -> Configured {
    let number = |name: &str, default: u64| options.number(name).unwrap_or(default);
    let count =
        |name: &str, default: u64| usize::try_from(number(name, default)).unwrap_or(usize::MAX);
    Configured {
        settings: Settings {
            workers: count("workers", WORKERS),
            kept_ms: number("keep", 7 * DAY_MS),
            results_bytes_max: number("results_bytes", 8 << 30),
            open_per_caller_max: count("jobs_max", 100),
        },
        job_timeout_ms: number("job_timeout", JOB_TIMEOUT_MS),
        simulations_max: count("simulations_max", 32),
        idle_ms: i64::try_from(number("idle", DAY_MS)).unwrap_or(i64::MAX),
    }
}
