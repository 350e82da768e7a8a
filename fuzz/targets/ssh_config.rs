//! Any text as ssh_config: no panic, an error names its file, and every name that is found can be asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssh::config::{Config, Person};

fuzz_target!(|text: &str| {
    let person = Person {
        home: "/nonexistent".into(),
        user: "me".into(),
        agent: None,
    };
    match Config::of(text, "config", &person) {
        Ok(config) => {
            for name in config.names().into_iter().chain(["", "a.b", "*"]) {
                let _ = config.effective(name, &person);
            }
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
});
