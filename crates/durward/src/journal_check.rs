//! Verification of the closed segments of the journal: at the start as far as a bound allows, the rest beside the calls.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use admin::status::VerificationProgress;
use gate::journal::audit::{ClosedSegments, Finding, VerifiedSegment};
use gate::journal::{
    Component, HEAD_FILE, Journal, Level, PublicKey, Record, System, SystemEvent, format_utc,
};

use crate::failure::Failure;
use crate::local;
use crate::places::Places;
use crate::verify::Verify;

/// Most bytes that a start verifies before it goes on.
const START_BYTES_MAX: u64 = 32 << 20;
/// Longest time that it takes for that, in milliseconds; a segment that is begun is read to its end.
const START_MS_MAX: u64 = 250;
/// Longest pause between two segments that are verified beside the calls, in milliseconds.
const PAUSE_MS_MAX: u64 = 1_000;

/// How far the closed segments are verified; shared by those who report it.
#[derive(Debug, Clone)]
pub struct JournalCheck {
    mode: Verify,
    progress: Arc<Mutex<Progress>>,
}

/// What is known at one moment.
#[derive(Debug, Default)]
struct Progress {
    segments: u64,
    bytes: u64,
    /// Begin of the oldest segment that was verified, in milliseconds since 1970.
    back_to_ms: Option<i64>,
    /// When the latest one was, likewise.
    at_ms: Option<i64>,
    is_complete: bool,
    /// The first thing that is wrong.
    finding: Option<String>,
}

impl JournalCheck {
    /// Verifies the newest closed segments, as many as a start has time for; returns the others.
    ///
    /// # Errors
    /// Where a segment was changed, unless the configuration says to go on.
    pub fn begin(
        places: &Places,
        key: PublicKey,
    ) -> Result<(Self, Option<ClosedSegments>), Failure> {
        let check = Self {
            mode: places.verify,
            progress: Arc::default(),
        };
        if check.mode == Verify::Off {
            return Ok((check, None));
        }
        let head = places.keys().join(HEAD_FILE);
        let mut rest =
            ClosedSegments::open(&places.journal(), &head, vec![key]).map_err(Failure::journal)?;
        let (start, mut bytes) = (Instant::now(), 0_u64);
        while let Some(next) = rest.next_bytes() {
            bytes = bytes.saturating_add(next);
            let is_late = start.elapsed() >= Duration::from_millis(START_MS_MAX);
            if bytes > START_BYTES_MAX || is_late {
                return Ok((check, Some(rest)));
            }
            if let Some(segment) = rest.verify_next().map_err(Failure::journal)? {
                check.add(&segment);
            }
            if let (Verify::Stop, Some(finding)) = (check.mode, check.finding()) {
                return Err(Failure::journal(altered(&finding)));
            }
        }
        check.lock().is_complete = true;
        Ok((check, None))
    }

    /// Writes down what was found, and verifies the rest on a thread of its own for as long as the journal is open.
    ///
    /// # Errors
    /// Where the journal takes no record, or there is no thread.
    pub fn go_on(
        &self,
        rest: Option<ClosedSegments>,
        journal: &Arc<Journal>,
    ) -> Result<(), Failure> {
        if let Some(finding) = self.finding() {
            record(journal, &finding).map_err(Failure::journal)?;
        }
        let Some(rest) = rest else { return Ok(()) };
        let (check, journal) = (self.clone(), Arc::downgrade(journal));
        std::thread::Builder::new()
            .name("journal-check".into())
            .spawn(move || check.verify_rest(rest, &journal))
            .map_err(|error| Failure::other(format!("cannot start a thread: {error}")))?;
        Ok(())
    }

    fn verify_rest(&self, mut rest: ClosedSegments, journal: &Weak<Journal>) {
        while rest.next_bytes().is_some() {
            let began = Instant::now();
            let was_found = self.finding().is_some();
            let verified = rest.verify_next();
            let Some(journal) = journal.upgrade() else {
                return;
            };
            match verified {
                Ok(Some(segment)) => self.add(&segment),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(target: "journal", "closed segments are no longer verified: {error}");
                    return;
                }
            }
            if let Some(finding) = self.finding().filter(|_| !was_found) {
                // A journal that takes no record has failed already.
                drop(record(&journal, &finding));
                if self.mode == Verify::Stop {
                    journal.fail(&altered(&finding));
                    return;
                }
            }
            drop(journal);
            // The calls have the processor at least half of the time.
            std::thread::park_timeout(began.elapsed().min(Duration::from_millis(PAUSE_MS_MAX)));
        }
        self.lock().is_complete = true;
    }

    fn add(&self, segment: &VerifiedSegment) {
        let mut progress = self.lock();
        progress.segments = progress.segments.saturating_add(1);
        progress.bytes = progress.bytes.saturating_add(segment.bytes);
        progress.at_ms = Some(local::now_ms());
        if let Some(finding) = segment.findings.first() {
            let finding = sentence(finding);
            tracing::error!(target: "journal", "{}", altered(&finding));
            progress.finding.get_or_insert(finding);
        }
        if progress.finding.is_none() {
            progress.back_to_ms = segment.named_ms.or(progress.back_to_ms);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the first thing that is wrong.
    pub fn finding(&self) -> Option<String> {
        self.lock().finding.clone()
    }

    /// Returns how far closed segments are verified; `None` if they are not to be.
    pub fn verified(&self) -> Option<VerificationProgress> {
        if self.mode == Verify::Off {
            return None;
        }
        let progress = self.lock();
        Some(VerificationProgress {
            complete: progress.is_complete,
            segments: progress.segments,
            size_bytes: progress.bytes,
            back_to: progress.back_to_ms.map(format_utc),
            at: progress.at_ms.map(format_utc),
            finding: progress.finding.clone(),
        })
    }
}

/// Where something is wrong, and what.
fn sentence(finding: &Finding) -> String {
    match finding.line {
        Some(line) => format!("{}:{line}: {}", finding.file, finding.problem),
        None => format!("{}: {}", finding.file, finding.problem),
    }
}

/// The same with what to do.
fn altered(finding: &str) -> String {
    format!(
        "the journal was changed: {finding}\n  hint: durward audit verify names everything that is wrong; durward audit repair sets it aside as evidence and begins a new chain; journal.verify: report starts all the same"
    )
}

fn record(journal: &Journal, finding: &str) -> Result<(), gate::journal::JournalError> {
    let altered = System {
        level: Some(Level::Warning),
        component: Some(Component::Journal),
        error_message: Some(finding),
        ..System::of(SystemEvent::JournalAltered)
    };
    journal
        .append(local::now_ms(), &Record::System(&altered))
        .map(drop)
}
