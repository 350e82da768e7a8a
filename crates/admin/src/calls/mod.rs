//! Records of calls, and of what else the journal holds: pages of the latest, counts of each kind, and records as they
//! are written.

mod outcomes;
mod query;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use gate::journal::audit::{self, Filter, Follower};
use gate::journal::parse_utc;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::AdminError;

pub use query::{RecordConditions, RecordKind, Since};

/// Most records of one page.
pub const PAGE_RECORDS_MAX: usize = 1_000_000;

/// A request for a page of records.
#[derive(Debug, Clone, Default)]
pub struct CallQuery {
    /// Conditions that each record meets.
    pub filter: Filter,
    /// Most records of the page, at most [`PAGE_RECORDS_MAX`].
    pub limit: usize,
    /// Continues after an earlier page, with older records.
    pub cursor: Option<PageCursor>,
    /// Adds status and usage of the operation to the decision about it.
    pub with_outcomes: bool,
}

/// A page of records, oldest first.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CallPage {
    /// The latest records that the query asks for.
    pub records: Vec<Record>,
    /// Lines that cannot be read as records.
    pub skipped: u64,
    /// Cursor of the page of older records; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<PageCursor>,
}

/// One record of the journal: the JSON that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(Vec<u8>);

impl Record {
    /// Wraps the body of a line of the journal.
    #[must_use]
    pub fn new(body: Vec<u8>) -> Self {
        Self(body)
    }

    /// Returns the JSON as it was written.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.0
    }

    /// Returns the members; `None` if the body is no object.
    #[must_use]
    pub fn members(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&self.0).ok()
    }

    /// Returns when the record was written, in milliseconds since 1970.
    fn time_ms(&self) -> Option<i64> {
        parse_utc(self.members()?.get("time")?.as_str()?)
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Record {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Record".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "One record of the journal, as it was written; docs/reference/events.md lists the members.",
            "type": "object",
            "properties": { "time": { "type": "string" }, "kind": { "type": "string" } },
            "required": ["time", "kind"]
        })
    }
}

/// Place between two pages, as text `TIME_MS.COUNT`: the time of the oldest record of a page, and how many records of
/// that millisecond were on it or on earlier pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCursor {
    time_ms: i64,
    delivered: usize,
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.time_ms, self.delivered)
    }
}

impl FromStr for PageCursor {
    type Err = AdminError;

    fn from_str(text: &str) -> Result<Self, AdminError> {
        let parse = || {
            let (time_ms, delivered) = text.split_once('.')?;
            Some(Self {
                time_ms: time_ms.parse().ok()?,
                delivered: delivered.parse().ok().filter(|&n| n <= PAGE_RECORDS_MAX)?,
            })
        };
        parse().ok_or_else(|| AdminError::Cursor(text.to_owned()))
    }
}

impl Serialize for PageCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for PageCursor {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PageCursor".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl PageCursor {
    /// Returns the cursor behind a page; `None` if the page is empty or a record has no time.
    fn after(records: &[Record], earlier: Option<Self>) -> Option<Self> {
        let time_ms = records.first()?.time_ms()?;
        let on_page = records
            .iter()
            .take_while(|record| record.time_ms() == Some(time_ms))
            .count();
        let before = earlier.filter(|earlier| earlier.time_ms == time_ms);
        Some(Self {
            time_ms,
            delivered: on_page + before.map_or(0, |before| before.delivered),
        })
    }
}

/// Rejects a journal that was never begun.
///
/// # Errors
/// [`AdminError::NoJournal`].
pub fn check_journal(journal: &Path) -> Result<(), AdminError> {
    match journal.exists() {
        true => Ok(()),
        false => Err(AdminError::NoJournal(journal.to_path_buf())),
    }
}

/// Returns the latest records that the query asks for.
///
/// # Errors
/// A journal that cannot be read.
pub fn list(journal: &Path, query: &CallQuery) -> Result<CallPage, AdminError> {
    let limit = query.limit.min(PAGE_RECORDS_MAX);
    let delivered = query.cursor.map_or(0, |cursor| cursor.delivered);
    let until_ms = query.cursor.map(|cursor| cursor.time_ms);
    let filter = Filter {
        until_ms: until_ms.or(query.filter.until_ms),
        ..query.filter.clone()
    };
    let (mut bodies, skipped) = audit::latest(journal, &filter, limit.saturating_add(delivered))?;
    // Records of the cursor's millisecond that earlier pages had are the last ones.
    bodies.truncate(bodies.len().saturating_sub(delivered));
    let is_full = limit > 0 && bodies.len() >= limit;
    let records = match query.with_outcomes {
        true => outcomes::with_outcomes(journal, &bodies),
        false => bodies,
    };
    let records: Vec<Record> = records.into_iter().map(Record).collect();
    let next = PageCursor::after(&records, query.cursor).filter(|_| is_full);
    Ok(CallPage {
        records,
        skipped,
        next,
    })
}

/// How many records of one kind there are.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct KindCount {
    /// When the latest was written, UTC; empty if there is none.
    pub latest: String,
    /// How many there are.
    pub records: u64,
    /// The kind.
    #[serde(rename = "type")]
    pub kind: RecordKind,
}

/// Counts of every kind.
#[derive(Debug)]
pub struct KindCounts {
    /// In the order of [`RecordKind::ALL`].
    pub kinds: Vec<KindCount>,
    /// Lines that cannot be read as records.
    pub skipped: u64,
}

/// Counts the records of each kind. Reads the whole journal, one line at a time.
///
/// # Errors
/// A journal that cannot be read.
pub fn count_kinds(journal: &Path) -> Result<KindCounts, AdminError> {
    let mut counts: Vec<(Filter, KindCount)> = RecordKind::ALL
        .iter()
        .map(|&kind| {
            let count = KindCount {
                latest: String::new(),
                records: 0,
                kind,
            };
            (kind.filter(), count)
        })
        .collect();
    let skipped = audit::each(journal, &Filter::default(), &mut |body| {
        for (filter, count) in &mut counts {
            if filter.takes(body) == Some(true) {
                count.records += 1;
                let members = serde_json::from_slice::<Map<String, Value>>(body);
                let time = members
                    .ok()
                    .and_then(|m| m.get("time")?.as_str().map(str::to_owned));
                count.latest = time
                    .unwrap_or_default()
                    .max(std::mem::take(&mut count.latest));
            }
        }
    })?;
    let kinds = counts.into_iter().map(|(_, count)| count).collect();
    Ok(KindCounts { kinds, skipped })
}

/// Records as they are written.
#[derive(Debug)]
pub struct RecordFeed(Follower);

impl RecordFeed {
    /// Starts at the present end of the journal. A feed that is opened before a page is listed misses nothing, and may
    /// repeat records of the page.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn open(journal: &Path, filter: &Filter) -> Result<Self, AdminError> {
        Ok(Self(Follower::new(journal, filter.clone())?))
    }

    /// Hands over what was added since the latest poll, in the order of time; returns how many lines cannot be read.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn poll(&mut self, each: &mut dyn FnMut(Record)) -> Result<u64, AdminError> {
        Ok(self.0.poll(&mut |body| each(Record(body.to_vec())))?)
    }
}

#[cfg(test)]
mod tests;
