//! Whether something grows that should not, over a long run: memory, descriptors, the time of a call.

mod series;

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use crate::error::LabError;
use crate::judge::EXIT_REGRESSED;
use crate::stats::{CONFIDENCE, Interval, median, theil_sen};
use series::{TimeSeries, series};

/// Hours from which on a slope for an hour needs no caveat.
const LONG_H: f64 = 0.15;

/// Tell whether memory, descriptors or times grow over a stored load run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  durward-lab load tool --target 'durward run -- my-server' --workers 8 --duration 30m --out runs
  durward-lab soak runs/20261126T050000Z-load
  durward-lab load tool --target http://127.0.0.1:8765/mcp/echo --watch serve=4711 --duration 30m --out runs

The slope is the median of the slopes between all pairs of points (Theil-Sen), with Sen's interval. Something leaks where
the whole interval lies above 0 and the slope is more than --limit.

Exit codes: 0 nothing leaks; 1 the run cannot be read, or is too short to tell; 2 wrong usage; 99 something leaks.")]
pub struct SoakArgs {
    /// A run of `lab load --out`
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// How much of the run is left out at its beginning, while buffers and caches fill, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u8).range(0..=90))]
    warm: u8,
    /// How much something may grow in an hour, in per cent of its median
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    limit: f64,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What became of one quantity of one process.
#[derive(Debug, Serialize)]
struct GrowthTrend {
    who: String,
    quantity: &'static str,
    first: f64,
    last: f64,
    /// In per cent of the median, for each hour; nothing if there are too few points.
    slope_percent_per_hour: Option<Interval>,
    /// `flat`, `leak` or `too short`.
    verdict: &'static str,
}

impl GrowthTrend {
    fn of(series: &TimeSeries, limit: f64) -> Self {
        let values: Vec<f64> = series.points.iter().map(|(_, value)| *value).collect();
        let centre = median(&values);
        let slope = theil_sen(&series.points, CONFIDENCE)
            .filter(|_| centre > 0.0)
            .map(|slope| slope.scaled(100.0 / centre));
        Self {
            who: series.who.clone(),
            quantity: series.quantity,
            first: values.first().copied().unwrap_or_default(),
            last: values.last().copied().unwrap_or_default(),
            verdict: match &slope {
                None => "too short",
                Some(slope) if slope.lower() > 0.0 && slope.point > limit => "leak",
                Some(_) => "flat",
            },
            slope_percent_per_hour: slope,
        }
    }
}

/// Runs `lab soak`.
pub(crate) fn run(args: &SoakArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    let found = series(&args.run, f64::from(args.warm) / 100.0)?;
    let grown: Vec<GrowthTrend> = found
        .iter()
        .map(|one| GrowthTrend::of(one, args.limit))
        .collect();
    let leaks = grown.iter().any(|one| one.verdict == "leak");
    let is_short = grown.is_empty() || grown.iter().any(|one| one.verdict == "too short");
    let written = match args.json {
        true => {
            let document = json!({
                "format": "durward-lab-soak/1", "confidence": CONFIDENCE, "warm_percent": args.warm,
                "limit_percent_per_hour": args.limit, "leaks": leaks, "quantities": grown,
            });
            writeln!(out, "{document:#}")
        }
        false => table(&grown, lasted(&found), out),
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    if leaks {
        return Ok(EXIT_REGRESSED);
    }
    if is_short {
        let wrong = "the run is too short to tell: ten seconds are needed behind --warm";
        return Err(LabError::Incomparable(wrong.into()));
    }
    Ok(0)
}

/// Returns how long the series are, in hours.
fn lasted(found: &[TimeSeries]) -> f64 {
    let spans = found
        .iter()
        .filter_map(|one| Some(one.points.last()?.0 - one.points.first()?.0));
    spans.fold(0.0, f64::max)
}

fn table(grown: &[GrowthTrend], hours: f64, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<16} {:<12} {:>12} {:>12}  {:<34} verdict",
        "process", "quantity", "first", "last", "per hour, % of its median"
    )?;
    for one in grown {
        let slope = one.slope_percent_per_hour.map_or("-".to_owned(), |slope| {
            format!(
                "{:+.2} [{:+.2}, {:+.2}]",
                slope.point,
                slope.lower(),
                slope.upper()
            )
        });
        writeln!(
            out,
            "{:<16} {:<12} {:>12.1} {:>12.1}  {slope:<34} {}",
            one.who, one.quantity, one.first, one.last, one.verdict
        )?;
    }
    if hours < LONG_H {
        let minutes = hours * 60.0;
        writeln!(
            out,
            "the points are of {minutes:.1} minutes: in a run this short one more page of memory can be a leak; let it run for 30 minutes"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Returns a run of a minute; its server grows by so many KiB a second, and its calls take so many milliseconds.
    fn stored(place: &Path, kib: u64, seconds: u64, latency_ms: impl Fn(u64) -> f64) {
        fs::create_dir_all(place.join("ops")).unwrap();
        let (mut resources, mut ops) = (String::new(), String::new());
        for at in 0..seconds {
            for (who, rss) in [("serve", 20_000 + kib * at + at % 3), ("generator", 9_000)] {
                let sample = json!({"ts": "", "elapsed_ms": at * 1_000, "who": who, "pid": 1, "command": "", "cpu_ms": 0.0,
                    "cpu_percent": null, "rss_kib": rss, "hwm_kib": rss, "fds": 12, "threads": 2, "voluntary_switches": 0,
                    "involuntary_switches": 0});
                resources.push_str(&format!("{sample}\n"));
            }
            let call = json!({"ts": "", "worker": 1, "op": "tools/call echo", "latency_ms": latency_ms(at), "status": "ok",
                "arm": "steady", "launch": 1, "pair": at, "intended_us": 1e6 * at as f64, "start_us": 1e6 * at as f64,
                "bytes": 9, "ttft_us": null});
            ops.push_str(&format!("{call}\n"));
        }
        fs::write(place.join("resources.jsonl"), resources).unwrap();
        fs::write(place.join("ops/w1.jsonl"), ops).unwrap();
    }

    fn run_soak(
        name: &str,
        kib: u64,
        seconds: u64,
        latency_ms: impl Fn(u64) -> f64,
    ) -> (u8, String) {
        let place = std::env::temp_dir().join(format!("lab-soak-{name}-{}", std::process::id()));
        stored(&place, kib, seconds, latency_ms);
        let args = SoakArgs {
            run: place.clone(),
            warm: 25,
            limit: 1.0,
            json: false,
        };
        let mut out = Vec::new();
        let code = run(&args, &mut out).unwrap_or_else(|error| error.exit_code());
        fs::remove_dir_all(&place).unwrap();
        (code, String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_grows_is_told_and_what_does_not_is_not() {
        let steady = |at: u64| 1.0 + (at % 7) as f64 / 100.0;
        let (code, text) = run_soak("flat", 0, 60, steady);
        assert_eq!((code, text.matches(" flat\n").count()), (0, 3), "{text}");
        let (code, text) = run_soak("memory", 4, 60, steady);
        assert_eq!(
            (code, text.matches(" leak\n").count()),
            (EXIT_REGRESSED, 1),
            "{text}"
        );
        assert!(text.contains("serve            memory, KiB"), "{text}");
        let (code, text) = run_soak("times", 0, 60, |at| 1.0 + at as f64 / 50.0);
        assert_eq!(
            (code, text.matches(" leak\n").count()),
            (EXIT_REGRESSED, 1),
            "{text}"
        );
        let (code, text) = run_soak("short", 0, 9, steady);
        assert_eq!(
            (code, text.matches(" too short\n").count()),
            (1, 3),
            "{text}"
        );
    }
}
