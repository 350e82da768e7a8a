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
        ("ADAPTER_R_PATH", "/opt/R/bin/Rscript"),
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
    assert_eq!(options.text("r_path"), Some("/opt/R/bin/Rscript"));
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

/// Variables in the bridge's manual, group by group.
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

/// Returns a value that a key takes.
fn fit(name: &str, what: VariableUse) -> String {
    match what {
        Paths(_) => "/srv/models".to_owned(),
        Number(key) => bounds(key).end().to_string(),
        Seconds(key) => (bounds(key).end() / 1_000).to_string(),
        Word(_) => crate::BACKEND.to_owned(),
        Text(_) => "/usr/bin/Rscript".to_owned(),
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
            Paths(key) | Number(key) | Seconds(key) | Word(key) | Text(key) => {
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

/// Returns the text of the documentation's page for a variable.
fn describe_use(what: VariableUse) -> String {
    match what {
        Paths(key) => format!("`{key}`: whole paths, joined by colons"),
        Number(key) | Word(key) | Text(key) => format!("`{key}`"),
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
        let (told, name) = (describe_use(*what), format!("`{name}`"));
        match rows.iter_mut().find(|(known, _)| *known == told) {
            Some((_, names)) => names.push(name),
            None => rows.push((told, vec![name])),
        }
    }
    let row = |(told, names): &(String, Vec<String>)| format!("| {} | {told} |", names.join(", "));
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
        if let Paths(key) | Number(key) | Seconds(key) | Word(key) | Text(key) = what {
            assert!(OPTIONS.iter().any(|option| option.name == *key), "{key}");
        }
        if let Number(key) | Seconds(key) = what {
            assert_ne!(bounds(key), 0..=0, "{key}");
        }
    }
}
