//! Spend: tokens and cost of model calls, summed from the journal by caller, team, model, provider, run and day.

mod ledger;

use std::collections::BTreeMap;
use std::path::Path;

use gate::journal::audit::{self, Reach};
use serde::{Deserialize, Serialize};

use crate::calls::check_journal;
use crate::error::AdminError;
use ledger::Ledger;

/// Most rows of a report.
pub const ROWS_MAX: usize = 100_000;

/// The whole journal.
const REACH: Reach = Reach {
    bytes_max: u64::MAX,
    segments_max: usize::MAX,
};

/// A property by which calls are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum SpendDimension {
    /// The caller, as in rules: `user:NAME`, `key:NAME`, `uid:NUMBER`.
    Caller,
    /// The caller's first team.
    Team,
    /// The alias or name that the client asked for.
    Alias,
    /// The model that answered, or was asked last, by its provider's name.
    Model,
    /// The provider that answered, or was asked last.
    Provider,
    /// The run that the client or an agent named.
    Run,
    /// The agent that called on the caller's behalf.
    Agent,
    /// The client program.
    Client,
    /// The UTC day on which the call ended.
    Day,
    /// The UTC month in which the call ended.
    Month,
}

impl SpendDimension {
    /// Every dimension, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::Caller,
        Self::Team,
        Self::Alias,
        Self::Model,
        Self::Provider,
        Self::Run,
        Self::Agent,
        Self::Client,
        Self::Day,
        Self::Month,
    ];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Team => "team",
            Self::Alias => "alias",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Run => "run",
            Self::Agent => "agent",
            Self::Client => "client",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns the dimension of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// A request for a report.
#[derive(Debug, Clone, Default)]
pub struct SpendQuery {
    /// Dimensions of the rows, in the order of their columns. Without any, the report has one row.
    pub by: Vec<SpendDimension>,
    /// Calls that ended at this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Calls that ended before this time, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Calls of which each of these dimensions has this value.
    pub only: Vec<(SpendDimension, String)>,
}

/// Sums over model calls that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SpendSums {
    /// Calls that were let through and have ended.
    pub calls: u64,
    /// Those that ended without success.
    pub failed: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Tokens read from providers' caches, part of `input_tokens`.
    pub cached_tokens: u64,
    /// Tokens of reasoning, part of `output_tokens`.
    pub reasoning_tokens: u64,
    /// Tokens that Durward counted because a provider did not report them.
    pub counted_tokens: u64,
    /// Cost in millionths of the currency's unit.
    pub cost_micros: u64,
    /// Calls that used tokens of a model without a price; `cost_micros` lacks them.
    pub unpriced: u64,
}

/// One row of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SpendRow {
    /// Value of each dimension; null for calls without one.
    pub group: BTreeMap<SpendDimension, Option<String>>,
    /// Sums over the calls of the row.
    #[serde(flatten)]
    pub sums: SpendSums,
}

/// Report on the use of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SpendReport {
    /// Dimensions of the rows.
    pub by: Vec<SpendDimension>,
    /// Rows in the order of days and months, then of cost and tokens, largest first.
    pub rows: Vec<SpendRow>,
    /// Sums over all rows.
    pub total: SpendSums,
}

/// Sums tokens and cost of model calls. Reads the segments of the time range and checks each line against the journal's chain.
///
/// # Errors
/// A journal that cannot be read or was altered, and [`AdminError::TooManyRows`].
pub fn report(journal: &Path, query: &SpendQuery) -> Result<SpendReport, AdminError> {
    check_journal(journal)?;
    let mut ledger = Ledger::new(query);
    audit::back(journal, REACH, &mut ledger)?;
    ledger.into_report()
}

impl SpendSums {
    fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.calls, more.calls),
            (&mut self.failed, more.failed),
            (&mut self.input_tokens, more.input_tokens),
            (&mut self.output_tokens, more.output_tokens),
            (&mut self.cached_tokens, more.cached_tokens),
            (&mut self.reasoning_tokens, more.reasoning_tokens),
            (&mut self.counted_tokens, more.counted_tokens),
            (&mut self.cost_micros, more.cost_micros),
            (&mut self.unpriced, more.unpriced),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}
