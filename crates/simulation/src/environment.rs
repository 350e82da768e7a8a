//! The names of the bridge's variables, as other names of this server's keys.
//!
//! They are read where the configuration asks for it (`environment: bridge`). A variable that has no meaning here is refused
//! with the reason, so that nobody believes that it holds. No message has a value: some of them are secrets.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use toolkit::options::{OptionKind, OptionValue, Options};

use crate::options::OPTIONS;

/// What a variable is here.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// Folders, joined by colons.
    Paths(&'static str),
    /// A whole number.
    Number(&'static str),
    /// Seconds.
    Seconds(&'static str),
    /// A word of the key itself.
    Word(&'static str),
    /// One of these words says what is so anyway; another one is refused for the reason.
    Only(&'static [&'static str], &'static str),
    /// Refused for the reason.
    Refused(&'static str),
}

use Use::{Number, Only, Paths, Refused, Seconds, Word};

const YES: &[&str] = &["true", "1", "yes", "on"];
const NO: &[&str] = &["false", "0", "no", "off"];

const LISTEN: &str = "the address is a key of its own: listen: HOST:PORT";
const STATE: &str = "everything is kept in the state directory: start with --state-dir DIR";
const NAME: &str = "Durward tells its own name and version";
const NO_R: &str = "models are solved by the native engine, and R is not used";
const NO_CELERY: &str = "jobs run in worker processes of Durward, and not in Celery";
const NO_REDIS: &str = "sessions are kept in memory, and not in Redis";
const NO_S3: &str = "the journal is kept in the state directory, and not in object storage";
const RECORDED: &str = "every call is recorded";
const KEYS: &str = "sign-in with tokens of an identity provider is not built; callers have keys (durward keys create) and groups";
const NO_AGENT: &str = "there is no agent in this server";

/// Every variable that the bridge reads.
const VARIABLES: &[(&str, Use)] = &[
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
    ("ADAPTER_REQUIRE_R_ENV", Only(NO, NO_R)),
    ("ADAPTER_REQUIRE_R", Only(NO, NO_R)),
    (
        "ADAPTER_TIMEOUT_MS",
        Refused("it bounds a question to R; a run is bounded by job_timeout"),
    ),
    (
        "ADAPTER_TIMEOUT_SECONDS",
        Refused("it bounds a question to R; a run is bounded by job_timeout"),
    ),
    ("ADAPTER_R_PATH", Refused(NO_R)),
    ("ADAPTER_R_HOME", Refused(NO_R)),
    ("ADAPTER_R_LIBS", Refused(NO_R)),
    ("OSPSUITE_LIBS", Refused(NO_R)),
    ("R_PATH", Refused(NO_R)),
    ("R_HOME", Refused(NO_R)),
    ("R_LIBS", Refused(NO_R)),
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

/// The options that the variables give; what the configuration itself says outranks them.
///
/// # Errors
/// A sentence that names the variable and never its value.
pub fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut given: Vec<(&str, &str, OptionValue)> = Vec::new();
    for (name, what) in VARIABLES {
        let Some(text) = variable(name) else { continue };
        let text = text
            .into_string()
            .map_err(|_| format!("the environment variable {name} is not utf-8"))?;
        let Some((key, value)) = read(name, *what, text.trim())? else {
            continue;
        };
        let other = given.iter().find(|(of, _, _)| *of == key);
        if let Some((_, earlier, before)) = other
            && *before != value
        {
            return Err(format!(
                "the environment variables {earlier} and {name} both give {key}, and differ"
            ));
        }
        given.push((key, name, value.clone()));
        options.set(key, value);
    }
    Ok(options)
}

/// What a variable gives.
fn read(name: &str, what: Use, text: &str) -> Result<Option<(&'static str, OptionValue)>, String> {
    let wrong = |why: &str| Err(format!("the environment variable {name}: {why}"));
    let lower = text.to_ascii_lowercase();
    match what {
        Refused(reason) => wrong(&format!("{reason}; unset it")),
        Only(words, _) if words.contains(&lower.as_str()) => Ok(None),
        Only(words, reason) => wrong(&format!(
            "{reason}; unset it, or write {}",
            words.join(" or ")
        )),
        Word(key) => Ok(Some((key, OptionValue::Text(lower)))),
        Paths(key) => {
            let folders = text.split(':').filter(|folder| !folder.is_empty());
            let folders: Vec<std::path::PathBuf> = folders.map(Into::into).collect();
            match folders.iter().find(|folder| folder.is_relative()) {
                Some(_) => wrong("a folder has to be a whole path, from /"),
                None if folders.is_empty() => wrong("no folder is named"),
                None => Ok(Some((key, OptionValue::Paths(folders)))),
            }
        }
        Number(key) | Seconds(key) => {
            let (scale, unit) = match what {
                Seconds(_) => (1_000.0, " seconds"),
                _ => (1.0, ""),
            };
            let bounds = bounds(key);
            let least = number(*bounds.start()) / scale;
            let most = number(*bounds.end()) / scale;
            match text.parse::<f64>() {
                Ok(value)
                    if (least..=most).contains(&value)
                        && (unit.is_empty() <= (value.fract() == 0.0)) =>
                {
                    Ok(Some((key, OptionValue::Number(whole(value * scale)))))
                }
                _ => wrong(&format!("has to be a number of {least} to {most}{unit}")),
            }
        }
    }
}

/// The bounds of a key that is a number or a span.
fn bounds(key: &str) -> RangeInclusive<u64> {
    let known = OPTIONS.iter().find(|option| option.name == key);
    match known.map(|option| &option.kind) {
        Some(OptionKind::Number(bounds) | OptionKind::SpanMs(bounds)) => bounds.clone(),
        _ => 0..=0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
fn number(bound: u64) -> f64 {
    bound as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within bounds; a cast from float to integer saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Options, String> {
        from_environment(&|name| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn variables_give_the_keys_that_they_are_other_names_of() {
        let options = of(&[
            ("ADAPTER_MODEL_PATHS", "/srv/a:/srv/b"),
            ("JOB_WORKER_THREADS", "4"),
            ("JOB_TIMEOUT_SECONDS", "90.5"),
            ("JOB_MAX_RETRIES", "2"),
            ("JOB_RETENTION_SECONDS", "3600"),
            ("POPULATION_RETENTION_SECONDS", "3600"),
            ("SESSION_TTL_SECONDS", "60"),
            ("ADAPTER_BACKEND", "Native"),
            ("AUDIT_ENABLED", "True"),
            ("UNRELATED", "x"),
        ])
        .unwrap();
        let folders: Vec<_> = options
            .paths("models")
            .iter()
            .map(|path| path.to_str().unwrap())
            .collect();
        assert_eq!(folders, ["/srv/a", "/srv/b"]);
        for (key, value) in [
            ("workers", 4),
            ("job_timeout", 90_500),
            ("retries", 2),
            ("keep", 3_600_000),
            ("idle", 60_000),
        ] {
            assert_eq!(options.number(key), Some(value), "{key}");
        }
        assert_eq!(options.text("adapter"), Some("native"));
    }

    #[test]
    fn what_has_no_meaning_here_is_refused_by_name_and_no_value_is_told() {
        for (name, value, said) in [
            ("AUTH_DEV_SECRET", "hunter2-value", "durward keys create"),
            (
                "AUTH_ISSUER_URL",
                "https://hunter2-value",
                "durward keys create",
            ),
            (
                "JOB_BACKEND",
                "hunter2-value",
                "celery and hpc are not there",
            ),
            ("SESSION_REDIS_URL", "redis://hunter2-value", "not in Redis"),
            ("AUDIT_ENABLED", "hunter2-value", "every call is recorded"),
            ("HOST", "hunter2-value", "listen: HOST:PORT"),
            ("JOB_WORKER_THREADS", "hunter2-value", "a number of 1 to 32"),
            ("JOB_WORKER_THREADS", "1.5", "a number of 1 to 32"),
            ("JOB_WORKER_THREADS", "33", "a number of 1 to 32"),
            ("JOB_TIMEOUT_SECONDS", "0", "1 to 604800 seconds"),
            ("ADAPTER_MODEL_PATHS", "models", "from /"),
            ("ADAPTER_MODEL_PATHS", ":", "no folder"),
        ] {
            let wrong = of(&[(name, value)]).unwrap_err();
            assert!(wrong.contains(name) && wrong.contains(said), "{wrong}");
            assert!(!wrong.contains("hunter2-value"), "{wrong}");
        }
        let wrong = of(&[
            ("JOB_RETENTION_SECONDS", "3600"),
            ("POPULATION_RETENTION_SECONDS", "7200"),
        ]);
        assert!(wrong.unwrap_err().contains("both give keep"));
    }

    /// What the bridge's manual lists, group by group.
    const OF_THE_BRIDGE: &[&str] = &[
        "HOST PORT LOG_LEVEL SERVICE_NAME SERVICE_VERSION ENVIRONMENT",
        "ADAPTER_BACKEND ADAPTER_REQUIRE_R_ENV ADAPTER_TIMEOUT_MS ADAPTER_R_PATH ADAPTER_R_HOME ADAPTER_R_LIBS OSPSUITE_LIBS",
        "ADAPTER_MODEL_PATHS ADAPTER_TO_THREAD",
        "ADAPTER_REQUIRE_R ADAPTER_TIMEOUT_SECONDS R_PATH R_HOME R_LIBS MCP_MODEL_SEARCH_PATHS AUDIT_TRAIL_ENABLED",
        "JOB_WORKER_THREADS JOB_TIMEOUT_SECONDS JOB_MAX_RETRIES JOB_BACKEND JOB_REGISTRY_PATH JOB_RETENTION_SECONDS",
        "CELERY_BROKER_URL CELERY_RESULT_BACKEND CELERY_TASK_ALWAYS_EAGER CELERY_TASK_EAGER_PROPAGATES",
        "CELERY_TASK_STORE_EAGER_RESULT POPULATION_RETENTION_SECONDS",
        "SESSION_BACKEND SESSION_REDIS_URL SESSION_REDIS_PREFIX SESSION_TTL_SECONDS",
        "POPULATION_STORAGE_PATH SNAPSHOT_STORAGE_PATH",
        "AUDIT_ENABLED AUDIT_STORAGE_PATH AUDIT_STORAGE_BACKEND AUDIT_S3_BUCKET AUDIT_S3_PREFIX AUDIT_S3_REGION",
        "AUDIT_S3_OBJECT_LOCK_MODE AUDIT_S3_OBJECT_LOCK_DAYS AUDIT_S3_KMS_KEY_ID AUDIT_VERIFY_LOOKBACK_DAYS",
        "AUTH_ISSUER_URL AUTH_AUDIENCE AUTH_JWKS_URL AUTH_JWKS_CACHE_SECONDS AUTH_DEV_SECRET AUTH_RATE_LIMIT_PER_MINUTE",
        "AUTH_CLOCK_SKEW_SECONDS AUTH_REPLAY_WINDOW_SECONDS AUTH_ALLOW_ANONYMOUS",
        "AGENT_CHECKPOINTER_PATH",
    ];

    /// A value that a key takes.
    fn fit(name: &str, what: Use) -> String {
        match what {
            Paths(_) => "/srv/models".to_owned(),
            Number(key) => bounds(key).end().to_string(),
            Seconds(key) => (bounds(key).end() / 1_000).to_string(),
            Word(_) => crate::BACKEND.to_owned(),
            Only(words, _) => words.first().copied().unwrap_or(name).to_ascii_uppercase(),
            Refused(_) => "anything".to_owned(),
        }
    }

    #[test]
    fn every_variable_of_the_bridge_gives_a_key_or_is_refused_with_its_reason() {
        let of_the_bridge: Vec<&str> = OF_THE_BRIDGE
            .iter()
            .flat_map(|group| group.split(' '))
            .collect();
        for name in &of_the_bridge {
            assert!(VARIABLES.iter().any(|(known, _)| known == name), "{name}");
        }
        assert_eq!(of_the_bridge.len(), VARIABLES.len());
        for (name, what) in VARIABLES {
            let given = of(&[(name, &fit(name, *what))]);
            match what {
                Refused(reason) => {
                    let wrong = given.unwrap_err();
                    assert!(wrong.contains(name) && wrong.contains(reason), "{wrong}");
                }
                Only(_, reason) => {
                    assert_eq!(given.unwrap(), Options::default(), "{name}");
                    let wrong = of(&[(name, "other")]).unwrap_err();
                    assert!(wrong.contains(name) && wrong.contains(reason), "{wrong}");
                }
                Paths(key) | Number(key) | Seconds(key) | Word(key) => {
                    let given = given.unwrap();
                    let is_given = given.number(key).is_some()
                        || given.text(key).is_some()
                        || !given.paths(key).is_empty();
                    assert!(is_given, "{name} gives {key}");
                    assert!(!matches!(what, Number(_) | Seconds(_)) || of(&[(name, "x")]).is_err());
                }
            }
        }
    }

    /// What the page of the documentation says of a variable.
    fn told(what: Use) -> String {
        match what {
            Paths(key) => format!("`{key}`: whole paths, joined by colons"),
            Number(key) | Word(key) => format!("`{key}`"),
            Seconds(key) => format!("`{key}`, in seconds"),
            Only(words, reason) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("{} passes, else refused: {reason}", words.join(", "))
            }
            Refused(reason) => format!("refused: {reason}"),
        }
    }

    #[test]
    fn the_page_has_every_variable_and_what_it_is_here() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulation.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for (name, what) in VARIABLES {
            let (told, name) = (told(*what), format!("`{name}`"));
            match rows.iter_mut().find(|(known, _)| *known == told) {
                Some((_, names)) => names.push(name),
                None => rows.push((told, vec![name])),
            }
        }
        let row =
            |(told, names): &(String, Vec<String>)| format!("| {} | {told} |", names.join(", "));
        let rows: Vec<String> = rows.iter().map(row).collect();
        let missing = rows.iter().filter(|row| !page.contains(row.as_str()));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        assert!(
            missing.is_empty(),
            "docs/simulation.md lacks\n{}",
            missing.join("\n")
        );
    }

    #[test]
    fn every_variable_stands_once_and_names_a_key() {
        for (at, (name, what)) in VARIABLES.iter().enumerate() {
            assert!(
                !VARIABLES
                    .iter()
                    .skip(at + 1)
                    .any(|(other, _)| other == name),
                "{name}"
            );
            if let Paths(key) | Number(key) | Seconds(key) | Word(key) = what {
                assert!(OPTIONS.iter().any(|option| option.name == *key), "{key}");
            }
            if let Number(key) | Seconds(key) = what {
                assert_ne!(bounds(key), 0..=0, "{key}");
            }
        }
    }
}
