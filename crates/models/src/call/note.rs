//! The note of a call under way: who is charged for it, and how much was used so far. What a kill cuts, before the
//! first byte or in the middle, is settled by it at the next start.

use std::sync::Arc;

use dialects::Tokens;
use gate::journal::{OpId, Usage};
use gate::{Gate, InFlight, Unfinished};
use serde::{Deserialize, Serialize};
use state::counter::{
    BudgetUnit, CounterStore, Reservation, ReservationId, ReservationRecord, ReservedAccount,
    SpendAmount,
};
use state::underway::{Left, NUMBERS, Note};

use super::Terms;

/// What a note is about.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    op: String,
    request_id: String,
    run_id: Option<String>,
    method: String,
    provider: String,
    accounts: Vec<(String, i64, u8)>,
    /// Epoch and number of the reservation; absent in notes of earlier versions.
    #[serde(default)]
    reservation: Option<(u64, u64)>,
}

/// A note that follows its call.
#[derive(Debug)]
pub(crate) struct Follow {
    note: Note,
    written: [u64; NUMBERS],
}

impl Follow {
    /// Notes that a call is on its way; `None` where no notes are kept, or this one could not be.
    pub fn begin(
        terms: &Terms,
        flight: &InFlight,
        provider: &str,
        reservation: Option<&Reservation>,
    ) -> Option<Self> {
        let underway = terms.underway.as_ref()?;
        let (facts, origin) = flight.about()?;
        let record = reservation.map(Reservation::record);
        let accounts = record.iter().flat_map(|record| &record.accounts);
        let account =
            |own: &ReservedAccount| (own.account.to_string(), own.window, number(own.unit));
        let about = About {
            op: flight.op().to_string(),
            request_id: origin.request_id.clone(),
            run_id: origin.run.as_ref().map(|run| run.as_str().to_owned()),
            method: facts.method.clone(),
            provider: provider.to_owned(),
            accounts: accounts.map(account).collect(),
            reservation: record
                .and_then(|record| record.id)
                .map(|id| (id.epoch, id.number)),
        };
        let written = [0; NUMBERS];
        let text = serde_json::to_vec(&about).ok()?;
        match underway.begin(&text, written) {
            Ok(note) => Some(Self { note, written }),
            Err(error) => {
                tracing::warn!("a call is not noted, and a kill would lose what it uses: {error}");
                None
            }
        }
    }

    /// So much was used so far.
    pub fn used(&mut self, tokens: Tokens, cost: Option<u64>) {
        let now = [
            tokens.input.unwrap_or(0),
            tokens.output.unwrap_or(0),
            tokens.cached.unwrap_or(0),
            tokens.counted.unwrap_or(0),
            cost.unwrap_or(0),
        ];
        if now == self.written {
            return;
        }
        match self.note.write(now) {
            Ok(()) => self.written = now,
            Err(error) => tracing::warn!("what a stream uses is not noted: {error}"),
        }
    }
}

fn number(unit: BudgetUnit) -> u8 {
    match unit {
        BudgetUnit::Tokens => 0,
        BudgetUnit::Micros => 1,
        BudgetUnit::Requests => 2,
    }
}

fn unit(number: u8) -> Option<BudgetUnit> {
    [BudgetUnit::Tokens, BudgetUnit::Micros, BudgetUnit::Requests]
        .into_iter()
        .find(|unit| self::number(*unit) == number)
}

/// Settles what an earlier process has left under way, in the journal and on the accounts, and gives how many calls
/// that were. What cannot be read is left where it is.
///
/// # Errors
/// What the journal says; the rest is settled at the next start.
pub fn settle_left(
    gate: &Gate,
    counter: Option<&dyn CounterStore>,
    left: Vec<Left>,
) -> Result<usize, gate::journal::JournalError> {
    let mut count = 0;
    for one in left {
        let about = serde_json::from_slice::<About>(&one.about).ok();
        let Some((about, op)) = about.and_then(|own| OpId::parse(&own.op).map(|op| (own, op)))
        else {
            tracing::warn!("a note of a stream under way cannot be read, and is dropped");
            continue;
        };
        let told = |number: u64| (number > 0).then_some(number);
        let [input, output, cached, counted, cost] = one.numbers;
        gate.settle_unfinished(&Unfinished {
            op,
            request_id: &about.request_id,
            run_id: about.run_id.as_deref(),
            method: &about.method,
            backend_id: &about.provider,
            usage: Usage {
                input_tokens: told(input),
                output_tokens: told(output),
                cached_tokens: told(cached),
                counted_tokens: told(counted),
                cost_micros: told(cost),
                ..Usage::default()
            },
        })?;
        if let Some(counter) = counter {
            let accounts = about.accounts.into_iter();
            let accounts = accounts.filter_map(|(name, window, number)| {
                Some(ReservedAccount {
                    account: Arc::from(name),
                    window,
                    unit: unit(number)?,
                })
            });
            let id = about.reservation;
            let record = ReservationRecord {
                id: id.map(|(epoch, number)| ReservationId { epoch, number }),
                accounts: accounts.collect(),
                cost: SpendAmount::default(),
            };
            let used = SpendAmount {
                tokens: input.saturating_add(output),
                micros: cost,
                requests: 1,
            };
            counter.settle(&record, used);
        }
        count += 1;
        drop(one.note);
    }
    Ok(count)
}
