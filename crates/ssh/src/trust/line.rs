//! One line of a file of known hosts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub mark: Mark,
    names: Names,
    /// The type of the key, as its name on the wire.
    pub kind: String,
    /// The key, as on the wire.
    pub blob: Vec<u8>,
}

/// What a line says of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is the host's.
    None,
    /// It signs the certificates of the hosts.
    Authority,
    /// It is not to be trusted.
    Revoked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    Patterns(Vec<String>),
    Hashed { salt: Vec<u8>, digest: Vec<u8> },
}

/// The lines of a file; those that cannot be read are left out, as OpenSSH does.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line> {
    text.lines().filter_map(Line::read)
}

impl Line {
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().peekable();
        let mark = match *words.peek()? {
            "@cert-authority" => Mark::Authority,
            "@revoked" => Mark::Revoked,
            word if word.starts_with('@') || word.starts_with('#') => return None,
            _ => Mark::None,
        };
        if mark != Mark::None {
            words.next();
        }
        let names = words.next()?;
        let names = match names.strip_prefix("|1|") {
            Some(hashed) => {
                let (salt, digest) = hashed.split_once('|')?;
                Names::Hashed {
                    salt: STANDARD.decode(salt).ok()?,
                    digest: STANDARD.decode(digest).ok()?,
                }
            }
            None => Names::Patterns(names.split(',').map(str::to_ascii_lowercase).collect()),
        };
        let kind = words.next()?.to_owned();
        let blob = STANDARD.decode(words.next()?).ok()?;
        Some(Self {
            mark,
            names,
            kind,
            blob,
        })
    }

    /// Whether the line is about a host, by the name under which it is filed.
    pub fn is_of(&self, host: &str) -> bool {
        match &self.names {
            Names::Hashed { salt, digest } => {
                let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
                hmac::verify(&key, host.as_bytes(), digest).is_ok()
            }
            Names::Patterns(patterns) => {
                let mut is_named = false;
                for pattern in patterns {
                    match pattern.strip_prefix('!') {
                        Some(not) if matches(not.as_bytes(), host.as_bytes()) => return false,
                        Some(_) => {}
                        None => is_named |= matches(pattern.as_bytes(), host.as_bytes()),
                    }
                }
                is_named
            }
        }
    }
}

/// `*` and `?`, as OpenSSH has them.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), text.get(t)) {
            (Some(b'*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some(wanted), Some(is)) if *wanted == b'?' || wanted == is => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    p = at + 1;
                    t = taken + 1;
                    star = Some((at, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|letter| *letter == b'*'))
}
