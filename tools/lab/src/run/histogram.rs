//! `latency.hlog`: an HdrHistogram interval log (V2, deflated), one histogram per operation, variant and
//! interval. Values are nanoseconds; any HdrHistogram tool can read and merge it.

use super::RunDirectory;
use crate::error::LabError;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, UNIX_EPOCH};

/// Significant figures that are kept.
const FIGURES: u8 = 3;
/// The longest latency, one hour, in nanoseconds; longer ones count as this.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// One histogram of the log.
#[derive(Debug)]
pub(crate) struct LoggedHistogram {
    tag: String,
    start: Duration,
    length: Duration,
    histogram: Histogram<u64>,
}

impl LoggedHistogram {
    /// Returns the latencies of one operation of one variant that ended within `length` of `start` (from the
    /// beginning of the run).
    pub(crate) fn of(
        operation: &str,
        arm: &str,
        start: Duration,
        length: Duration,
        latencies_us: impl Iterator<Item = f64>,
    ) -> Result<Self, LabError> {
        let failed = |error: &dyn std::fmt::Display| LabError::System {
            what: "make a histogram",
            source: io::Error::other(error.to_string()),
        };
        let mut histogram =
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, FIGURES).map_err(|e| failed(&e))?;
        for latency_us in latencies_us {
            let ns = (latency_us * 1_000.0) as u64;
            histogram
                .record(ns.clamp(1, LATENCY_NS_MAX))
                .map_err(|e| failed(&e))?;
        }
        Ok(Self {
            tag: tag(operation, arm),
            start,
            length,
            histogram,
        })
    }

    /// Writes all of them as `latency.hlog` of a run that began at `started_ms` (Unix time).
    pub(crate) fn write_all(
        run: &RunDirectory,
        started_ms: u64,
        recorded: &[Self],
    ) -> Result<(), LabError> {
        let path = run.file("latency.hlog");
        let file = File::create_new(&path).map_err(|source| LabError::path(&path, source))?;
        let mut out = BufWriter::new(file);
        let written = log(&mut out, started_ms, recorded).and_then(|()| out.flush());
        written.map_err(|source| LabError::path(&path, source))
    }
}

fn log(out: &mut impl Write, started_ms: u64, recorded: &[LoggedHistogram]) -> io::Result<()> {
    let started = UNIX_EPOCH + Duration::from_millis(started_ms);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("values are nanoseconds, the column of maxima microseconds")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(1_000.0)
        .begin_log_with(out, &mut serializer)?;
    for one in recorded {
        log.write_histogram(&one.histogram, one.start, one.length, Tag::new(&one.tag))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    Ok(())
}

/// Returns a tag without what the format uses itself.
fn tag(operation: &str, arm: &str) -> String {
    format!("{operation}/{arm}").replace(|c: char| c.is_whitespace() || c == ',', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    /// Returns how many histograms, and how many values in all, a log holds; an error for what is no log.
    fn counts(log: &[u8]) -> Result<(usize, u64), String> {
        let mut deserializer = hdrhistogram::serialization::Deserializer::new();
        let (mut histograms, mut values) = (0, 0);
        for entry in IntervalLogIterator::new(log) {
            let interval = match entry {
                Ok(LogEntry::Interval(interval)) => interval,
                Ok(_) => continue,
                Err(error) => return Err(format!("{error:?}")),
            };
            let bytes = base64::Engine::decode(
                &base64::engine::general_purpose::STANDARD,
                interval.encoded_histogram(),
            )
            .map_err(|error| error.to_string())?;
            let histogram: Histogram<u64> = deserializer
                .deserialize(&mut bytes.as_slice())
                .map_err(|error| format!("{error:?}"))?;
            histograms += 1;
            values += histogram.len();
        }
        Ok((histograms, values))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let second = Duration::from_secs(1);
        let one = |arm: &str, values: &[f64]| {
            LoggedHistogram::of(
                "tools/call a,b",
                arm,
                second,
                second,
                values.iter().copied(),
            )
            .unwrap()
        };
        let recorded = [one("direct", &[3.9, 4.1, 1e12]), one("x y", &[20.0])];
        assert_eq!(recorded[1].tag, "tools/call_a_b/x_y");
        // Three figures of a nanosecond value.
        assert!(recorded[0].histogram.value_at_quantile(0.3).abs_diff(3_900) <= 4);
        let mut bytes = Vec::new();
        log(&mut bytes, 1_700_000_000_123, &recorded).unwrap();
        assert_eq!(counts(&bytes), Ok((2, 4)));
        assert!(counts(b"Tag=x,1,2,3,nonsense\n").is_err());
    }
}
