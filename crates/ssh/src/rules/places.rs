//! Places that no command may look at, and those beyond which none looks.

use gate::policy::secrets::SECRET_PATHS;

/// Further trees that no command looks at on a host: root's home, and ways around the list of secrets.
const FURTHER: [&str; 8] = [
    concat!("/root", "/**"),
    "/proc/**/root/**",
    "/proc/**/cwd/**",
    "/proc/**/fd/**",
    "/sys/kernel/security/**",
    "/sys/kernel/debug/**",
    "/sys/kernel/tracing/**",
    "/sys/firmware/**",
];

/// Returns the trees that hold secrets, at the other end.
pub(super) fn secrets() -> Vec<&'static str> {
    SECRET_PATHS.iter().chain(&FURTHER).copied().collect()
}

/// What may be looked at.
pub(super) const ROOTS: &[&str] = &[
    "/etc",
    // Where links in /etc lead on many systems.
    "/usr/lib/os-release",
    "/run/systemd/resolve",
    "/var/log",
    "/home",
    "/tmp",
    "/opt",
    "/usr/share",
    "/proc",
    "/sys",
];

/// The expression that holds for a call with a path outside of the roots.
pub(super) fn outside() -> String {
    let roots: Vec<String> = ROOTS.iter().map(|root| format!("'{root}/'")).collect();
    format!(
        "paths.exists(path, ![{}].exists(root, (path + '/').startsWith(root)))",
        roots.join(", ")
    )
}
