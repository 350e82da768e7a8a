//! Manifest of a run: the plan, the machine and the program.

use crate::LabContext;
use crate::host::{self, HostInfo};
use crate::wall_clock;
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The name and version of the run directory's format.
pub(crate) const FORMAT: &str = "durward-lab-run/1";

/// The document `manifest.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunManifest {
    pub(crate) format: String,
    /// What kind of measurement it is: `overhead` or `load`.
    pub(crate) kind: String,
    /// When it began, ISO 8601 in UTC.
    pub(crate) started: String,
    pub(crate) argv: Vec<String>,
    /// The commit of the working directory, if it has one.
    pub(crate) commit: Option<String>,
    pub(crate) version: String,
    /// How the lab itself was built: `release` or `debug`.
    pub(crate) build: String,
    /// A fingerprint of everything that was asked for, to find like runs by.
    pub(crate) config_digest: String,
    pub(crate) seed: u64,
    pub(crate) host: HostInfo,
    pub(crate) load_average_before: Option<[f64; 3]>,
    /// The smallest step of the clock that was seen, in nanoseconds.
    pub(crate) clock_resolution_ns: u64,
    pub(crate) warnings: Vec<String>,
}

impl RunManifest {
    /// Describes a run that begins now. `plan` is everything that was asked for, as text.
    pub(crate) fn of(kind: &str, plan: &str, seed: u64, context: &LabContext) -> Self {
        Self {
            format: FORMAT.into(),
            kind: kind.into(),
            started: wall_clock::iso(wall_clock::now_ms()),
            argv: context.argv.clone(),
            commit: commit(),
            version: context.version.into(),
            build: build().into(),
            config_digest: format!("{:016x}", fingerprint(plan.as_bytes())),
            seed,
            host: HostInfo::read(),
            load_average_before: host::load_average(),
            clock_resolution_ns: clock_resolution_ns(),
            warnings: Vec::new(),
        }
    }
}

/// How this program was built.
pub(crate) fn build() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

/// FNV-1a of 64 bits: distinguishes plans, protects nothing.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && text.len() >= 40).then(|| text.to_owned())
}

fn clock_resolution_ns() -> u64 {
    let mut least = Duration::from_secs(1);
    for _ in 0..1_000 {
        let start = Instant::now();
        let step = start.elapsed();
        if !step.is_zero() {
            least = least.min(step);
        }
    }
    u64::try_from(least.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_of_the_published_examples() {
        for (text, expect) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fingerprint(text.as_bytes()), expect);
        }
    }

    #[test]
    fn the_clock_has_a_resolution() {
        assert!((1..1_000_000_000).contains(&clock_resolution_ns()));
    }
}
