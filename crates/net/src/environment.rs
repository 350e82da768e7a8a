//! What a child may see of our environment: an allow-list, because tokens live there.

use std::ffi::{OsStr, OsString};

/// Variables that are passed on where they are set.
const NAMES: [&str; 22] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "PWD",
    "COLORTERM",
    "NO_COLOR",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Families of variables that are passed on.
const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// A variable that the user asked for: `NAME` passes ours on, `NAME=VALUE` sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Its name.
    pub name: String,
    /// Its value; absent means ours.
    pub value: Option<String>,
}

impl std::str::FromStr for Extra {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!("\"{text}\" is not NAME or NAME=VALUE"));
        }
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }
}

/// The child's environment out of ours.
pub fn for_child(
    ours: impl Iterator<Item = (OsString, OsString)>,
    extra: &[Extra],
) -> Vec<(OsString, OsString)> {
    let mut out: Vec<(OsString, OsString)> = ours
        .filter(|(name, _)| {
            is_allowed(name)
                || extra
                    .iter()
                    .any(|e| e.value.is_none() && OsStr::new(&e.name) == name)
        })
        .collect();
    for wanted in extra {
        if let Some(value) = &wanted.value {
            out.retain(|(name, _)| name != OsStr::new(&wanted.name));
            out.push((wanted.name.clone().into(), value.clone().into()));
        }
    }
    out
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_at_home() {
        let ours = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("API_TOKEN", "s3cret"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("WANTED", "w"),
        ];
        let ours = ours
            .iter()
            .map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let extra = [
            "WANTED".parse().unwrap(),
            "PATH=/usr/bin".parse().unwrap(),
            "ABSENT".parse().unwrap(),
        ];
        let child = for_child(ours, &extra);
        let names: Vec<_> = child
            .iter()
            .map(|(k, v)| format!("{}={}", k.to_str().unwrap(), v.to_str().unwrap()))
            .collect();
        assert_eq!(names, ["LC_ALL=C", "WANTED=w", "PATH=/usr/bin"]);
        assert!("=x".parse::<Extra>().is_err());
    }
}
