//! Checkers outside of Durward: what a rule looks for is found by a program of the user.
//!
//! A checker is asked with the whole message, and says whether it found something, and which texts. The texts are
//! then treated like the matches of any other rule. One that does not answer in time has found nothing and passed
//! nothing: the rule says what becomes of the message.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::finding::Finding;
use super::json::InspectedText;
use super::rule::{Action, Finds, Rule, Way};
use super::{Inspection, json};

/// Most texts that one answer may have masked; where there are more, the message is refused.
pub const TEXTS_MAX: usize = 100;

/// Which message a checker is asked about.
#[derive(Debug, Clone, Copy)]
pub struct About<'q> {
    /// Which way it goes.
    pub way: Way,
    /// The server, or the provider of models.
    pub server: &'q str,
    /// The caller's name.
    pub caller: &'q str,
    /// The method, or the path below the server's address.
    pub method: &'q str,
    /// The tool or the model.
    pub name: Option<&'q str>,
}

/// What a checker is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// The rule for which it is asked.
    pub rule: &'q str,
    /// The message.
    pub about: About<'q>,
    /// What it says, as JSON text.
    pub content: &'q str,
}

/// What a checker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// There is nothing in it.
    Nothing,
    /// There is something in it: these texts, or the message as a whole where there are none.
    Found(Vec<String>),
}

/// The answer of a checker, or why there is none.
pub type Checking<'a> = Pin<Box<dyn Future<Output = Result<Checked, String>> + Send + 'a>>;

/// A program that is asked about messages. Every question ends by itself.
pub trait Checker: fmt::Debug + Send + Sync {
    /// Asks.
    fn check<'a>(&'a self, question: Question<'a>) -> Checking<'a>;
}

/// The checker of a rule.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Who is asked.
    pub checker: Arc<dyn Checker>,
    /// Whether a message passes that could not be checked.
    pub passes_unchecked: bool,
}

/// What a checker has said: a rule that finds the texts that it named, and what there is to say besides.
type Told = (Option<Rule>, Option<Finding>);

impl Inspection {
    /// Whether a checker looks at what goes this way to or from a server.
    #[must_use]
    pub fn asks(&self, way: Way, server: &str) -> bool {
        self.asking(way, server).next().is_some()
    }

    fn asking<'r>(
        &'r self,
        way: Way,
        server: &'r str,
    ) -> impl Iterator<Item = (&'r Rule, &'r Outside)> {
        self.rules.iter().filter_map(move |rule| match &rule.finds {
            Finds::Outside(outside) if rule.looks_at(way, server) => Some((rule, outside)),
            _ => None,
        })
    }

    /// Has the checkers look at a JSON value, one after the other: each sees what those before it left. Members of
    /// the value itself that are called as one of `apart` are left alone.
    pub async fn checked<'t>(
        &self,
        about: About<'_>,
        raw: &'t str,
        apart: &[&str],
    ) -> InspectedText<'t> {
        let from = (about.way, about.server);
        let mut text = Cow::Borrowed(raw);
        let mut all: Option<Finding> = None;
        for (rule, outside) in self.asking(about.way, about.server) {
            let (texts, finding) = ask((rule, outside), about, (&text, &text), apart).await;
            let (left, found) = masked(texts, from, &text, apart);
            if let Some(left) = left {
                text = Cow::Owned(left);
            }
            for found in [finding, found].into_iter().flatten() {
                all.get_or_insert_default().join(&found);
            }
            if all.as_ref().is_some_and(|all| all.denied_by().is_some()) {
                break;
            }
        }
        (text, all)
    }

    /// The same for a text that is no JSON.
    pub async fn checked_text<'t>(&self, about: About<'_>, text: &'t str) -> InspectedText<'t> {
        let raw = serde_json::Value::from(text).to_string();
        let (left, finding) = self.checked(about, &raw, &[]).await;
        match &left {
            Cow::Borrowed(_) => (Cow::Borrowed(text), finding),
            // One string was made of one string.
            Cow::Owned(left) if left.as_str() == raw => (Cow::Borrowed(text), finding),
            Cow::Owned(left) => {
                let left = serde_json::from_str::<String>(left).unwrap_or_default();
                (Cow::Owned(left), finding)
            }
        }
    }

    /// Those of these rules that look for texts which a checker has named.
    #[must_use]
    pub fn only_texts(&self) -> Self {
        let named = |rule: &&Rule| matches!(rule.finds, Finds::Texts(_));
        Self::new(self.rules.iter().filter(named).cloned().collect())
    }

    /// For texts that came in pieces and are whole now, as a JSON value: these rules together with what the checkers
    /// want masked, and what they found besides. They see what the rules without a checker leave of it; what they name
    /// has to stand in the texts as they came, for there it is masked.
    pub async fn with_answers(&self, about: About<'_>, raw: &str) -> (Self, Option<Finding>) {
        let from = (about.way, about.server);
        // What these rules find is counted when the texts go on.
        let (mut shown, _) = json::inspect(self, from, raw, &[]);
        let mut rules = self.rules.clone();
        let mut all: Option<Finding> = None;
        for (rule, outside) in self.asking(about.way, about.server) {
            let (texts, finding) = ask((rule, outside), about, (&shown, raw), &[]).await;
            if let (Some(left), _) = masked(texts.clone(), from, &shown, &[]) {
                shown = Cow::Owned(left);
            }
            rules.extend(texts);
            if let Some(finding) = finding {
                all.get_or_insert_default().join(&finding);
            }
        }
        (Self::new(rules), all)
    }
}

/// A JSON value without the texts that a checker has named, where there are any.
fn masked(
    texts: Option<Rule>,
    from: (Way, &str),
    raw: &str,
    apart: &[&str],
) -> (Option<String>, Option<Finding>) {
    let Some(texts) = texts else {
        return (None, None);
    };
    let (left, found) = json::inspect(&Inspection::new(vec![texts]), from, raw, apart);
    (Some(left.into_owned()), found)
}

/// Asks one checker about what it is shown. What it wants masked has to stand in `within`.
async fn ask(
    (rule, outside): (&Rule, &Outside),
    about: About<'_>,
    (content, within): (&str, &str),
    apart: &[&str],
) -> Told {
    let question = Question {
        rule: &rule.name,
        about,
        content,
    };
    let mut finding = Finding::default();
    match outside.checker.check(question).await {
        Ok(Checked::Nothing) => return (None, None),
        Ok(Checked::Found(texts)) => {
            let masks = |texts: Vec<String>| Rule {
                finds: Finds::Texts(texts),
                servers: Vec::new(),
                ..rule.clone()
            };
            // What is not found as it was named would go on unmasked.
            let stands = |text: &String| {
                let looked = Inspection::new(vec![masks(vec![text.clone()])]);
                let (_, found) = json::inspect(&looked, (about.way, about.server), within, apart);
                found.is_some_and(|found| found.masked() > 0)
            };
            let are_few = (1..=TEXTS_MAX).contains(&texts.len());
            if rule.action == Action::Mask && are_few && texts.iter().all(stands) {
                return (Some(masks(texts)), None);
            }
            finding.add_left(rule, texts);
        }
        Err(_) => finding.add_unchecked(rule, outside.passes_unchecked),
    }
    (None, Some(finding))
}

#[cfg(test)]
mod tests;
