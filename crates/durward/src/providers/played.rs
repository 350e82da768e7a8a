//! `MOCK_MODE`: every provider is played by a script, whatever its kind, and nothing leaves the machine.

use std::sync::Arc;

use ::models::Provider;
use ::models::mock::{MockProvider, Options};

use crate::config::models::Provider as Configured;
use crate::config::values::Span;
use crate::failure::Failure;
use crate::places;

/// Whether providers are played: `true` or `1`, `false` or `0`.
const MODE: &str = "MOCK_MODE";
/// The time before each token then, in seconds.
const LATENCY: &str = "MOCK_LATENCY";
/// The same where nothing is said, in milliseconds.
const LATENCY_MS: u64 = 10;
/// The longest, in seconds.
const LATENCY_S_MAX: f64 = 60.0;

/// How providers are played.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Played {
    token: Span,
}

impl Played {
    /// The script in the place of a provider.
    pub fn instead_of(&self, own: &Configured) -> Arc<dyn Provider> {
        let options = Options {
            token_ms: self.token.0,
        };
        Arc::new(MockProvider::new(&own.name, own.models.clone(), options))
    }
}

/// Whether providers are played, and how.
pub(super) fn mode() -> Result<Option<Played>, Failure> {
    let text = |name| {
        let found = places::variable(name);
        found.map(|found| found.to_string_lossy().into_owned())
    };
    let played = of(text(MODE).as_deref(), text(LATENCY).as_deref());
    let played = played.map_err(Failure::configuration)?;
    if played.is_some() {
        tracing::warn!("{MODE}: a script answers for every model provider; no provider is called");
    }
    Ok(played)
}

fn of(mode: Option<&str>, latency: Option<&str>) -> Result<Option<Played>, String> {
    match mode.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false" | "0") => return Ok(None),
        Some("true" | "1") => {}
        Some(_) => return Err(format!("{MODE} is not true or false")),
    }
    let Some(latency) = latency else {
        return Ok(Some(Played {
            token: Span(LATENCY_MS),
        }));
    };
    match latency.parse::<f64>() {
        Ok(seconds) if (0.0..=LATENCY_S_MAX).contains(&seconds) => {
            let ms = std::time::Duration::from_secs_f64(seconds).as_millis();
            Ok(Some(Played {
                token: Span(u64::try_from(ms).unwrap_or(LATENCY_MS)),
            }))
        }
        _ => Err(format!(
            "{LATENCY} is not a number of seconds from 0 to {LATENCY_S_MAX}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_read_and_what_is_neither_is_refused() {
        let ms = |mode, latency| of(mode, latency).map(|played| played.map(|own| own.token.0));
        assert_eq!(ms(None, Some("oops")), Ok(None));
        assert_eq!(ms(Some("False"), None), Ok(None));
        assert_eq!(ms(Some("True"), None), Ok(Some(10)));
        assert_eq!(ms(Some("1"), Some("0.05")), Ok(Some(50)));
        assert_eq!(ms(Some("1"), Some("0")), Ok(Some(0)));
        for (mode, latency) in [
            ("yes", "0"),
            ("1", "-1"),
            ("1", "nan"),
            ("1", "61"),
            ("1", "x"),
        ] {
            assert!(ms(Some(mode), Some(latency)).is_err(), "{mode} {latency}");
        }
    }
}
