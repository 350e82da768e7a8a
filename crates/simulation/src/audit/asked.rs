//! Query for events: over HTTP, or as a URI over MCP.

use crate::fault::Fault;
use crate::percent::{decoded, encoded};

/// The URI of the newest events.
const EVENTS: &str = "sim://audit/events";
/// What every URI about the journal begins with.
const PREFIX: &str = "sim://audit";
/// A URI that is judged as any other and that nothing is read for.
pub const UNREAD: &str = "sim://audit/events?limit=0";

/// Most events at a time.
pub const LIMIT_MAX: u64 = 1_000;
/// Default number of events.
const LIMIT: u64 = 100;
/// Longest type of an event, in characters.
pub const TYPE_CHARS_MAX: usize = 256;

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// At most so many, the newest.
    pub limit: usize,
    /// Of this type only.
    pub event_type: Option<String>,
}

/// Returns whether a URI is about the journal, spelled right or not.
#[must_use]
pub fn is_named(uri: &str) -> bool {
    uri.starts_with(PREFIX)
}

impl EventQuery {
    /// Reads the texts of a query.
    ///
    /// # Errors
    /// [`Fault`] with the member that is wrong.
    pub fn of(limit: Option<&str>, event_type: Option<&str>) -> Result<Self, Fault> {
        let wrong = |field: &str, wrong: String| Fault::input(field, wrong).code("value_error");
        let limit = match limit {
            None => LIMIT,
            Some(text) => {
                let number = text.parse().ok();
                let number = number.filter(|number| (1..=LIMIT_MAX).contains(number));
                number.ok_or_else(|| {
                    let said = format!("limit has to be a number from 1 to {LIMIT_MAX}");
                    wrong("limit", said)
                })?
            }
        };
        let chars = event_type.map_or(1, |text| text.chars().count());
        if !(1..=TYPE_CHARS_MAX).contains(&chars) {
            let said = format!("eventType has to be a text of 1 to {TYPE_CHARS_MAX} characters");
            return Err(wrong("eventType", said));
        }
        Ok(Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            event_type: event_type.map(str::to_owned),
        })
    }

    /// Reads a URI. There is one spelling of each, so that a rule that names it cannot be walked around.
    ///
    /// # Errors
    /// What is wrong, and how it is written.
    pub fn read(uri: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "there is no such part of the journal; write {EVENTS}, and behind it ?limit=N&eventType=TYPE"
            )
        };
        let rest = uri.strip_prefix(EVENTS).ok_or_else(unknown)?;
        let query = match rest.strip_prefix('?') {
            None if rest.is_empty() => "",
            None => return Err(unknown()),
            Some(query) => query,
        };
        let (mut limit, mut event_type) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(unknown)?;
            let member = match name {
                "limit" => &mut limit,
                "eventType" => &mut event_type,
                _ => return Err(unknown()),
            };
            if member.replace(decoded(value)).is_some() {
                return Err(format!("{name} is given twice in the query"));
            }
        }
        let asked =
            Self::of(limit.as_deref(), event_type.as_deref()).map_err(|fault| fault.message)?;
        let spelled = asked.written_with(limit.is_some());
        match spelled == uri {
            true => Ok(asked),
            false => Err(format!("the uri has another spelling; write {spelled}")),
        }
    }

    /// Returns the URI, which says the limit.
    #[must_use]
    pub fn to_uri(&self) -> String {
        self.written_with(true)
    }

    fn written_with(&self, limit: bool) -> String {
        let limit = limit.then(|| format!("limit={}", self.limit));
        let of_type = self.event_type.as_deref();
        let of_type = of_type.map(|text| format!("eventType={}", encoded(text)));
        let members: Vec<String> = limit.into_iter().chain(of_type).collect();
        match members.is_empty() {
            true => EVENTS.to_owned(),
            false => format!("{EVENTS}?{}", members.join("&")),
        }
    }
}
