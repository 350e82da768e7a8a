//! Limits, raised: tests call faster than an agent does. They are never switched off.

/// Flags of `durward run` under which no test that is not about limits meets one.
pub const RAISED_LIMITS: [&str; 8] = [
    "--limit-requests",
    "1000000/s",
    "--limit-burst",
    "1000000",
    "--limit-tool-calls",
    "1000000",
    "--limit-concurrency",
    "1024",
];
