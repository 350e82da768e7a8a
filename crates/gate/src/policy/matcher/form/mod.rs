//! Forms of commands, written as usage lines are: `ls {-a -l --all} [PATH...]`.
//!
//! A command matches a form as a whole: every word has to have its place in it, so what a form does not
//! name is not in the command. Words in capitals stand for arguments ([`Kind`]); all others for
//! themselves.
//!
//! ```text
//! word             this word                      a|b      one of these
//! WORD PATH …      an argument of this kind       1..5     a whole number from 1 to 5
//! [ … ]            once or not at all             LAST...  once or more, only at the end
//! {-a -n=NUM --all --lines=NUM --color=WORD?}     options, in any order and number, before and between
//!                  the arguments, short ones also together (`-an5`); `--` ends them
//! ```

mod options;
mod read;

use options::Options;

use super::of_fact;
use super::read::texts;
use crate::effect::Effect;
use crate::facts::FactId;
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::seen::Seen;
use crate::policy::tri::Tri;

/// Longest form, in bytes.
const FORM_BYTES_MAX: usize = 1_024;
/// Most optional groups of a form.
const GROUPS_MAX: usize = 8;
/// Longest command that is held against forms, in words.
const WORDS_MAX: usize = 1_024;

/// Forms, one of which a command has to have.
#[derive(Debug)]
pub(in crate::policy) struct Forms {
    forms: Vec<Form>,
    fact: FactId,
}

/// One form.
#[derive(Debug)]
struct Form {
    /// The set of options, where there is one: options are then looked for everywhere.
    options: Option<Options>,
    steps: Vec<Step>,
}

/// A place in a form.
#[derive(Debug)]
enum Step {
    One(Vec<Piece>),
    OnceOrMore(Vec<Piece>),
    Group(Vec<Step>),
}

#[derive(Debug)]
enum Piece {
    Literal(String),
    Kind(Kind),
}

/// What a word in capitals stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `WORD`, `PATH`: anything without the shell's own characters, not empty, not like an option.
    Plain,
    /// `TEXT`: any text.
    Text,
    /// `NAME`: letters, digits and `. _ - / : @ +`.
    Name,
    /// `HOST`: a name or an address of a machine.
    Host,
    /// `IF`: the name of a network interface.
    Interface,
    /// `NUM` and `1..5`.
    Number(u64, u64),
}

/// A word of a command in its place.
#[derive(Debug, Clone, Copy)]
struct Placed<'w> {
    text: &'w str,
    /// It cannot be an option: it follows `--` or is the value of one.
    is_value: bool,
}

/// Why a form cannot be read.
#[derive(Debug, PartialEq, Eq)]
struct FormError(String);

impl Forms {
    pub fn new(texts: &[String], fact: FactId) -> Result<Self, String> {
        let forms: Result<Vec<Form>, FormError> =
            texts.iter().map(|text| Form::read(text)).collect();
        forms
            .map(|forms| Self { forms, fact })
            .map_err(|FormError(wrong)| wrong)
    }

    /// Whether a command has one of the forms. What is too long for that is refused or asked about, and not allowed.
    pub fn hold(&self, seen: &Seen<'_>, effect: Effect) -> Tri {
        of_fact(seen, self.fact, |value| {
            let words: Vec<&str> = value.texts().take(WORDS_MAX + 1).collect();
            let fits = |command: &[&str]| self.forms.iter().any(|form| form.fits(command));
            if words.len() > WORDS_MAX {
                return effect != Effect::Allow;
            }
            fits(&words)
        })
    }
}

pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<String>, PolicyError> {
    let list = texts(doc, entry)?;
    list.into_iter()
        .map(|(text, at)| match Form::read(&text) {
            Ok(_) => Ok(text),
            Err(FormError(wrong)) => {
                let message = format!("bad form in {}: {wrong}", entry.name);
                let hint = "write it as a usage line: ls {-a -l} [PATH...]".to_owned();
                Err(doc.error(at, message, Some(hint)))
            }
        })
        .collect()
}

impl Form {
    fn fits(&self, words: &[&str]) -> bool {
        let Some((program, rest)) = words.split_first() else {
            return false;
        };
        let mut placed = vec![Placed::word(program)];
        match &self.options {
            None => placed.extend(rest.iter().map(|word| Placed::word(word))),
            Some(options) => match options.taken_off(rest) {
                Some(left) => placed.extend(left),
                None => return false,
            },
        }
        fit(&self.steps, &placed)
    }
}

/// Whether these words fill these places.
fn fit(steps: &[Step], words: &[Placed<'_>]) -> bool {
    let Some((step, after)) = steps.split_first() else {
        return words.is_empty();
    };
    match step {
        Step::One(pieces) => match words.split_first() {
            Some((word, rest)) => one_of(pieces, *word) && fit(after, rest),
            None => false,
        },
        // It is the last place: `read` sees to that.
        Step::OnceOrMore(pieces) => {
            !words.is_empty() && words.iter().all(|word| one_of(pieces, *word))
        }
        Step::Group(inner) => {
            fit(after, words)
                || (after.is_empty() && fit(inner, words))
                || (1..=words.len()).any(|taken| match words.split_at_checked(taken) {
                    Some((here, rest)) => !after.is_empty() && fit(inner, here) && fit(after, rest),
                    None => false,
                })
        }
    }
}

fn one_of(pieces: &[Piece], word: Placed<'_>) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => text == word.text,
        Piece::Kind(kind) => kind.takes(word),
    })
}

impl<'w> Placed<'w> {
    fn word(text: &'w str) -> Self {
        Self {
            text,
            is_value: false,
        }
    }

    fn value(text: &'w str) -> Self {
        Self {
            text,
            is_value: true,
        }
    }
}

impl Kind {
    fn takes(self, word: Placed<'_>) -> bool {
        let text = word.text;
        // `-` alone is standard input.
        let is_option = text.len() > 1 && text.starts_with('-') && !word.is_value;
        if is_option {
            return false;
        }
        match self {
            Self::Text => true,
            Self::Plain => !text.is_empty() && !text.chars().any(is_of_shells),
            Self::Name => is_named(text, "._-/:@+"),
            Self::Host => is_named(text, ".-_:"),
            Self::Interface => is_named(text, "@._-"),
            Self::Number(least, most) => {
                text.bytes().all(|b| b.is_ascii_digit())
                    && text
                        .parse()
                        .is_ok_and(|number| (least..=most).contains(&number))
            }
        }
    }
}

/// Characters by which shells do more than run a program.
fn is_of_shells(c: char) -> bool {
    "|;&<>$`\\".contains(c) || c.is_control()
}

fn is_named(text: &str, beside: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || beside.contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
}

#[cfg(test)]
mod tests;
