//! Places that no command may look at, and those beyond which none looks.

/// Trees that hold secrets, at the other end.
pub(super) const SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/passwd-",
    "/etc/group-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d/**",
    "/etc/ssh/ssh_host_*",
    "/etc/ssl/private/**",
    "/etc/krb5.keytab",
    concat!("/root", "/**"),
    "/**/.ssh/**",
    "/**/.gnupg/**",
    "/**/.aws/**",
    "/**/.kube/**",
    "/**/.docker/config.json",
    "/**/.netrc",
    "/**/.pgpass",
    "/**/.my.cnf",
    "/**/.git-credentials",
    "/**/.*_history",
    "/proc/**/mem",
    "/proc/**/environ",
    "/proc/**/root/**",
    "/proc/**/cwd/**",
    "/proc/**/fd/**",
    "/proc/**/map_files/**",
    "/proc/**/auxv",
    "/proc/**/stack",
    "/proc/**/syscall",
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/sysrq-trigger",
    "/proc/keys",
    "/proc/key-users",
    "/sys/kernel/security/**",
    "/sys/kernel/debug/**",
    "/sys/firmware/**",
];

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
