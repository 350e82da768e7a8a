//! `inspect.NAME.checker`: a program that is asked about messages.

use std::ops::RangeInclusive;

use net::outbound::http::Target;

use crate::config::Secret;
use crate::config::fault::Fault;
use crate::config::section::Section;
use crate::config::values::{Choice, Span};

/// How long a checker may take, in milliseconds.
const DEADLINE_MS: RangeInclusive<Span> = Span(10)..=Span(30_000);
/// The same where nothing is said.
const DEADLINE: Span = Span(2_000);
/// Shortest secret, in bytes.
pub const SECRET_BYTES_MIN: usize = 16;

/// A checker.
#[derive(Debug, Clone)]
pub struct Checker {
    /// Where it is asked.
    pub target: Target,
    /// The key of the signature.
    pub secret: Secret,
    /// How long it may take.
    pub deadline: Span,
    /// What becomes of a message that could not be checked.
    pub unchecked: Unchecked,
}

/// What becomes of a message that could not be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchecked {
    /// It is refused.
    Deny,
    /// It passes, and the record says so.
    Allow,
}

impl Choice for Unchecked {
    const WORDS: &'static [(&'static str, Self)] = &[("deny", Self::Deny), ("allow", Self::Allow)];
}

/// Reads the section.
pub fn read(section: &Section<'_>) -> Result<Checker, Fault> {
    let target = section.read("url", |text| {
        Target::parse(text, false).map_err(|fault| fault.to_string())
    })?;
    let Some(target) = target else {
        let hint = "write url: http://127.0.0.1:PORT/PATH, or https:// to another machine";
        return Err(section.own_fault("has no url").hint(hint));
    };
    let Some((secret, ..)) = section.secret("secret")? else {
        let hint = "write secret: ${NAME}: questions are signed with it (HMAC-SHA-256)";
        return Err(section.own_fault("has no secret").hint(hint));
    };
    if secret.reveal().len() < SECRET_BYTES_MIN {
        let message = format!("is shorter than {SECRET_BYTES_MIN} bytes");
        return Err(section.fault("secret", message));
    }
    let deadline = section.within("deadline", DEADLINE_MS)?;
    let unchecked = section.choice::<Unchecked>("unchecked")?;
    Ok(Checker {
        target: target.value,
        secret,
        deadline: deadline.map_or(DEADLINE, |deadline| deadline.value),
        unchecked: unchecked.map_or(Unchecked::Deny, |unchecked| unchecked.value),
    })
}
