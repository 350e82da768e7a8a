//! The keys beside `builtin: simulation`, and what they default to.

use pbpk::run::OspVersion;
use toolkit::options::{OptionDef, OptionKind, Options};

use crate::jobs::{OspsuiteLauncher, PoolSettings};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Default limit of a job's time, in milliseconds.
const JOB_TIMEOUT_MS: u64 = 300_000;
/// Runs at a time.
const WORKERS: u64 = 2;

/// The word after `environment` that has the bridge's variables read.
pub const BRIDGE: &str = "bridge";

/// Every option.
pub const OPTIONS: &[OptionDef] = &[
    OptionDef::required(
        "models",
        OptionKind::Paths,
        "folders from which models may be loaded; links out of them are not followed",
    ),
    OptionDef::new(
        "adapter",
        OptionKind::Text,
        "native",
        "what solves the models: native, or ospsuite, the R package of that name, where it is installed",
    ),
    OptionDef::new(
        "r_path",
        OptionKind::Text,
        "Rscript",
        "with adapter: ospsuite, the program Rscript: a whole path, or its name where it lies in /usr/local/bin, /usr/bin or /bin",
    ),
    OptionDef::new(
        "r_libs",
        OptionKind::Paths,
        "",
        "with adapter: ospsuite, folders with R packages, before R's own",
    ),
    OptionDef::new(
        "osp_version",
        OptionKind::Word(&["12.4.3", "13-dev"]),
        "12.4.3",
        "release of OSP whose rules hold at the start of a run where its caller names none",
    ),
    OptionDef::new(
        "bridge_version",
        OptionKind::Word(&["0.4.3", "0.5.0"]),
        "0.5.0",
        "release of the PBPK bridge that is followed where two differ: updateMode relative adds in 0.5.0, and multiplies before",
    ),
    OptionDef::new(
        "environment",
        OptionKind::Word(&[BRIDGE]),
        "",
        "bridge: what is not given here is taken from the environment, by the names of the PBPK bridge",
    ),
    OptionDef::new(
        "retries",
        OptionKind::Number(0..=100),
        "0",
        "how often a run whose worker process broke is tried again where its caller does not say",
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
        "most bytes of all results together, of one caller three quarters of them",
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

/// Release of the PBPK bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeVersion {
    /// Release 0.4.3.
    V0_4_3,
    /// Release 0.5.0.
    V0_5_0,
}

/// The parsed options.
#[derive(Debug, Clone, Copy)]
pub struct ParsedOptions {
    /// Limits of storage and of parallel work.
    pub settings: PoolSettings,
    /// How long a job may take, in milliseconds.
    pub job_timeout_ms: u64,
    /// Retries of a run with a broken worker.
    pub retries: u64,
    /// Default release of OSP.
    pub osp_version: OspVersion,
    /// Release of the bridge that is followed where two differ.
    pub bridge: BridgeVersion,
    /// Most simulations of one caller.
    pub simulations_max: usize,
    /// How long simulations stay loaded unused, in milliseconds.
    pub idle_ms: i64,
}

/// Reads the options.
#[must_use]
pub fn configured(options: &Options) -> ParsedOptions {
    let number = |name: &str, default: u64| options.number(name).unwrap_or(default);
    let count =
        |name: &str, default: u64| usize::try_from(number(name, default)).unwrap_or(usize::MAX);
    ParsedOptions {
        settings: PoolSettings {
            workers: count("workers", WORKERS),
            kept_ms: number("keep", 7 * DAY_MS),
            results_bytes_max: number("results_bytes", 8 << 30),
            open_per_caller_max: count("jobs_max", 100),
        },
        job_timeout_ms: number("job_timeout", JOB_TIMEOUT_MS),
        retries: number("retries", 0),
        osp_version: options
            .text("osp_version")
            .and_then(|name| name.parse().ok())
            .unwrap_or_default(),
        bridge: match options.text("bridge_version") {
            Some("0.4.3") => BridgeVersion::V0_4_3,
            _ => BridgeVersion::V0_5_0,
        },
        simulations_max: count("simulations_max", 32),
        idle_ms: i64::try_from(number("idle", DAY_MS)).unwrap_or(i64::MAX),
    }
}

/// The adapter that runs models over R, and the bridge's name of it.
const OSPSUITE: &str = "ospsuite";
const SUBPROCESS: &str = "subprocess";

/// How R is started, if it solves the models.
#[must_use]
pub fn over_r(options: &Options) -> Option<OspsuiteLauncher> {
    let named = options.text("adapter")?;
    matches!(named, OSPSUITE | SUBPROCESS).then(|| OspsuiteLauncher {
        rscript: options.text("r_path").unwrap_or("Rscript").into(),
        libraries: options.paths("r_libs").to_vec(),
    })
}

/// Checks that the adapter can be used.
///
/// # Errors
/// Why it cannot.
pub fn adapter(options: &Options) -> Result<(), String> {
    let named = options.text("adapter").unwrap_or(crate::BACKEND);
    let why = match named {
        crate::BACKEND | OSPSUITE | SUBPROCESS => return Ok(()),
        "rxode2" => "models written in R are not read; native reads .pkml and SimModel .xml",
        "rpy2" => "R inside of another process is not built; native needs no R",
        "inmemory" => "a back end that answers with a made-up curve is not an engine",
        "celery" | "hpc" => "jobs run in worker processes of this program, and nowhere else",
        _ => "there is no such adapter",
    };
    Err(format!(
        "adapter \"{}\": {why}; write native or ospsuite, or leave it out",
        named.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolkit::options::OptionValue;

    #[test]
    fn an_adapter_that_is_not_there_is_refused_with_its_reason() {
        let of = |name: &str| {
            let mut options = Options::default();
            options.set("adapter", OptionValue::Text(name.to_owned()));
            adapter(&options)
        };
        assert_eq!(adapter(&Options::default()), Ok(()));
        for known in ["native", "ospsuite", "subprocess"] {
            assert_eq!(of(known), Ok(()));
        }
        for (name, said) in [
            ("rxode2", "written in R"),
            ("rpy2", "needs no R"),
            ("inmemory", "not an engine"),
            ("celery", "worker processes"),
            ("hpc", "worker processes"),
            ("other", "no such adapter"),
        ] {
            let wrong = of(name).unwrap_err();
            assert!(wrong.contains(name) && wrong.contains(said), "{wrong}");
        }
    }

    #[test]
    fn r_is_started_as_the_options_say() {
        let mut options = Options::default();
        assert_eq!(over_r(&options), None);
        options.set("adapter", OptionValue::Text("native".to_owned()));
        options.set("r_path", OptionValue::Text("/opt/R/Rscript".to_owned()));
        assert_eq!(over_r(&options), None);
        options.set("adapter", OptionValue::Text("subprocess".to_owned()));
        options.set("r_libs", OptionValue::Paths(vec!["/opt/R/lib".into()]));
        let how = over_r(&options).unwrap();
        assert_eq!(how.rscript.to_str(), Some("/opt/R/Rscript"));
        assert_eq!(how.libraries, ["/opt/R/lib"].map(std::path::PathBuf::from));
    }
}
