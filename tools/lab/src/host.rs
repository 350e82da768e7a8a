//! The machine a measurement was made on, and how busy it was.

use serde::{Deserialize, Serialize};
use std::fs;

/// What must be known of a machine to judge figures from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HostInfo {
    /// The processor's name.
    pub(crate) processor: String,
    /// How many cores this process may use.
    pub(crate) cores: usize,
    /// The frequency governor, if the system shows one.
    pub(crate) governor: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// Memory, in MiB.
    pub(crate) memory_mib: u64,
}

impl HostInfo {
    /// Reads it from the system; what cannot be read is `unknown`.
    pub(crate) fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        Self {
            processor: field(&text("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            governor: Some(text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim())
                .filter(|governor| !governor.is_empty())
                .map(str::to_owned),
            // The part behind the hyphen names a build, not a version.
            kernel: text("/proc/sys/kernel/osrelease")
                .trim()
                .split('-')
                .next()
                .filter(|release| !release.is_empty())
                .map_or_else(unknown, str::to_owned),
            memory_mib: field(&text("/proc/meminfo"), "MemTotal")
                .and_then(|size| size.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
        }
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        let governor = self
            .governor
            .as_deref()
            .map_or(String::new(), |g| format!(", governor {g}"));
        format!(
            "{}, {} cores{governor}, {} MiB, Linux {}",
            self.processor, self.cores, self.memory_mib, self.kernel
        )
    }
}

/// Returns the load averages of 1, 5 and 15 minutes; `None` if the system does not report them.
pub(crate) fn load_average() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// Returns the value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}
