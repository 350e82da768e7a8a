//! The options of a form: which a command may have, and what is left of it without them.

use super::{FormError, Kind, Placed};

/// A set of options.
#[derive(Debug)]
pub(super) struct Options {
    /// Without their dashes; short ones have one character.
    known: Vec<Known>,
    /// A number behind one dash, as in `head -5`.
    numbers: bool,
}

#[derive(Debug)]
struct Known {
    name: String,
    is_long: bool,
    value: Value,
}

/// What follows an option.
#[derive(Debug, Clone, Copy)]
enum Value {
    None,
    /// `--name=value` or `--name value`; `-nvalue` or `-n value`.
    Wanted(Kind),
    /// `--name=value` or nothing.
    Attached(Kind),
}

impl Options {
    /// Reads `-a`, `-n=NUM`, `--all`, `--lines=NUM`, `--color=WORD?`, `-NUM`.
    pub fn read(texts: &[&str]) -> Result<Self, FormError> {
        let mut options = Self {
            known: Vec::new(),
            numbers: false,
        };
        for text in texts {
            if *text == "-NUM" {
                options.numbers = true;
                continue;
            }
            options.known.push(Known::read(text)?);
        }
        Ok(options)
    }

    /// The words that are no options, where all options are known and their values fit.
    pub fn taken_off<'w>(&self, words: &[&'w str]) -> Option<Vec<Placed<'w>>> {
        let mut left = Vec::new();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                left.extend(words.map(Placed::value));
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                self.long(long, &mut words)?;
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                self.short(short, &mut words)?;
            } else {
                left.push(Placed::word(word));
            }
        }
        Some(left)
    }

    fn long<'w>(&self, word: &'w str, rest: &mut impl Iterator<Item = &'w str>) -> Option<()> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let is_it = |known: &&Known| known.is_long && known.name == name;
        let fits = match (self.known.iter().find(is_it)?.value, attached) {
            (Value::None, None) | (Value::Attached(_), None) => true,
            (Value::None, Some(_)) => false,
            (Value::Wanted(kind), None) => kind.takes(Placed::value(rest.next()?)),
            (Value::Wanted(kind) | Value::Attached(kind), Some(value)) => {
                kind.takes(Placed::value(value))
            }
        };
        fits.then_some(())
    }

    fn short<'w>(&self, word: &'w str, rest: &mut impl Iterator<Item = &'w str>) -> Option<()> {
        if self.numbers && word.bytes().all(|b| b.is_ascii_digit()) {
            return Some(());
        }
        for (at, letter) in word.char_indices() {
            let is_it = |known: &&Known| !known.is_long && known.name.starts_with(letter);
            let after = word.get(at + letter.len_utf8()..)?;
            match self.known.iter().find(is_it)?.value {
                Value::None => {}
                Value::Attached(kind) => {
                    let fits = after.is_empty() || kind.takes(Placed::value(after));
                    return fits.then_some(());
                }
                Value::Wanted(kind) => {
                    let value = if after.is_empty() {
                        rest.next()?
                    } else {
                        after
                    };
                    return kind.takes(Placed::value(value)).then_some(());
                }
            }
        }
        Some(())
    }
}

impl Known {
    fn read(text: &str) -> Result<Self, FormError> {
        let wrong = || {
            FormError(format!(
                "\"{text}\" is not an option: write -a, -n=NUM, --all or --lines=NUM"
            ))
        };
        let (option, value) = match text.split_once('=') {
            None => (text, Value::None),
            Some((option, kind)) => match kind.strip_suffix('?') {
                Some(kind) => (
                    option,
                    Value::Attached(Kind::read(kind)?.ok_or_else(wrong)?),
                ),
                None => (option, Value::Wanted(Kind::read(kind)?.ok_or_else(wrong)?)),
            },
        };
        let (name, is_long) = match option.strip_prefix("--") {
            Some(name) => (name, true),
            None => (option.strip_prefix('-').ok_or_else(wrong)?, false),
        };
        let fits = if is_long {
            !name.is_empty() && !name.starts_with('-')
        } else {
            name.chars().count() == 1 && name != "-"
        };
        if !fits {
            return Err(wrong());
        }
        Ok(Self {
            name: name.to_owned(),
            is_long,
            value,
        })
    }
}
