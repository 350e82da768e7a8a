//! Reading forms.

use super::options::Options;
use super::{FORM_BYTES_MAX, Form, FormError, GROUPS_MAX, Kind, Piece, Step};

impl Form {
    /// Reads one form.
    pub(super) fn read(text: &str) -> Result<Self, FormError> {
        if text.len() > FORM_BYTES_MAX {
            return Err(FormError(format!(
                "it is longer than {FORM_BYTES_MAX} bytes"
            )));
        }
        if text.chars().any(char::is_control) {
            return Err(FormError("it has a control character".into()));
        }
        let spaced = ["[", "]", "{", "}"]
            .iter()
            .fold(text.to_owned(), |text, bracket| {
                text.replace(bracket, &format!(" {bracket} "))
            });
        let mut reading = Reading {
            tokens: spaced
                .split_whitespace()
                .collect::<Vec<_>>()
                .into_iter()
                .peekable(),
            options: None,
            groups: 0,
        };
        let steps = reading.steps(false)?;
        match steps.first() {
            Some(Step::One(pieces)) if pieces.iter().all(|p| matches!(p, Piece::Literal(_))) => {}
            _ => return Err(FormError("it must begin with the program's name".into())),
        }
        if repeats_early(&steps, true) {
            return Err(FormError(
                "only its last argument may be followed by ...".into(),
            ));
        }
        Ok(Self {
            options: reading.options,
            steps,
        })
    }
}

struct Reading<'t> {
    tokens: std::iter::Peekable<std::vec::IntoIter<&'t str>>,
    options: Option<Options>,
    groups: usize,
}

impl Reading<'_> {
    fn steps(&mut self, inside: bool) -> Result<Vec<Step>, FormError> {
        let mut steps = Vec::new();
        while let Some(token) = self.tokens.next() {
            let step = match token {
                "]" if inside => return Ok(steps),
                "[" => {
                    self.groups += 1;
                    if self.groups > GROUPS_MAX {
                        return Err(FormError(format!("it has more than {GROUPS_MAX} [groups]")));
                    }
                    let inner = self.steps(true)?;
                    if inner.is_empty() {
                        return Err(FormError("[] is empty".into()));
                    }
                    Step::Group(inner)
                }
                "{" => {
                    self.set()?;
                    continue;
                }
                "]" | "}" => return Err(FormError(format!("{token} closes nothing"))),
                _ => place(token)?,
            };
            steps.push(step);
        }
        if inside {
            return Err(FormError("a [ is not closed".into()));
        }
        Ok(steps)
    }

    fn set(&mut self) -> Result<(), FormError> {
        if self.options.is_some() {
            return Err(FormError("it has more than one {set of options}".into()));
        }
        let mut texts = Vec::new();
        loop {
            match self.tokens.next() {
                Some("}") => break,
                Some(text) => texts.push(text),
                None => return Err(FormError("a { is not closed".into())),
            }
        }
        self.options = Some(Options::read(&texts)?);
        Ok(())
    }
}

fn place(token: &str) -> Result<Step, FormError> {
    let (token, repeats) = match token.strip_suffix("...") {
        Some(token) => (token, true),
        None => (token, false),
    };
    let pieces: Result<Vec<Piece>, FormError> = token
        .split('|')
        .map(|piece| match Kind::read(piece)? {
            Some(kind) => Ok(Piece::Kind(kind)),
            None if piece.is_empty() => Err(FormError("a word is empty".into())),
            None => Ok(Piece::Literal(piece.to_owned())),
        })
        .collect();
    Ok(if repeats {
        Step::OnceOrMore(pieces?)
    } else {
        Step::One(pieces?)
    })
}

/// Whether a place that may be filled more than once has another one after it.
fn repeats_early(steps: &[Step], is_last: bool) -> bool {
    steps.iter().enumerate().any(|(at, step)| {
        let is_last = is_last && at + 1 == steps.len();
        match step {
            Step::One(_) => false,
            Step::OnceOrMore(_) => !is_last,
            Step::Group(inner) => repeats_early(inner, is_last),
        }
    })
}

impl Kind {
    /// What a word stands for; `None` where it stands for itself.
    pub(super) fn read(word: &str) -> Result<Option<Self>, FormError> {
        Ok(match word {
            "WORD" | "PATH" => Some(Self::Plain),
            "TEXT" => Some(Self::Text),
            "NAME" => Some(Self::Name),
            "HOST" => Some(Self::Host),
            "IF" => Some(Self::Interface),
            "NUM" => Some(Self::Number(0, u64::MAX)),
            _ => {
                let range = word.split_once("..").map(|(a, b)| (a.parse(), b.parse()));
                if let Some((Ok(least), Ok(most))) = range {
                    return Ok(Some(Self::Number(least, most)));
                }
                let is_capital = |c: char| c.is_ascii_uppercase();
                if word.len() > 1 && word.chars().all(is_capital) {
                    let wrong =
                        format!("{word} is not one of WORD, PATH, TEXT, NAME, HOST, IF and NUM");
                    return Err(FormError(wrong));
                }
                None
            }
        })
    }
}
