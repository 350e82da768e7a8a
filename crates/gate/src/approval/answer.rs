//! Answers: what a person may say, on which channel, and what becomes of a question.

use std::fmt;

use crate::channel::Channel;

/// What a person may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Yes, and the same again without asking for a while, where the call can be remembered.
    Allow,
    /// Yes, and the same again without asking until the session ends, where the call can be remembered.
    Session,
    /// Yes, this once.
    Once,
    /// No.
    Deny,
}

impl Choice {
    /// All, in the order of the reference.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Session, Self::Once, Self::Deny];

    /// The word used on the control socket.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Session => "session",
            Self::Once => "once",
            Self::Deny => "deny",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.label() == word)
    }
}

/// An answer and who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What was said.
    pub choice: Choice,
    /// Where.
    pub channel: Channel,
    /// Who said it, as the channel knows them.
    pub approver: String,
    /// Why, in the approver's words: told to the caller where it is a no. At most
    /// [`REASON_CHARS_MAX`] characters are kept.
    pub reason: Option<String>,
    /// A yes that knows that not all of the call was shown.
    pub unseen: bool,
}

/// Longest reason that is kept, in characters.
pub const REASON_CHARS_MAX: usize = 500;

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A person answered.
    Answered(Answer),
    /// Nobody answered in time: a no.
    TimedOut,
    /// The caller went away or cancelled.
    Withdrawn,
    /// The policy changed, or the call no longer means what was asked about.
    Void,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(answer) => {
                let did = match answer.choice {
                    Choice::Allow => "allowed",
                    Choice::Session => "allowed for the session",
                    Choice::Once => "allowed once",
                    Choice::Deny => "denied",
                };
                write!(
                    f,
                    "{did} by {} on channel {}",
                    answer.approver,
                    answer.channel.label()
                )
            }
            Self::TimedOut => f.write_str("not answered in time, so denied"),
            Self::Withdrawn => f.write_str("withdrawn by its caller"),
            Self::Void => {
                f.write_str("cancelled, because the policy or the call's targets changed")
            }
        }
    }
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declined {
    /// No question has this name.
    Unknown,
    /// The beginning of a name fits several questions, waiting or ended: these.
    Ambiguous(Vec<String>),
    /// Too few letters of a name.
    TooShort,
    /// The question has ended; the first answer stands.
    Ended {
        /// Its full name.
        id: String,
        /// How.
        outcome: Outcome,
    },
    /// Not all of the call was shown, and the yes does not say that it knows.
    NotAllShown,
    /// The rule that asks does not take answers on this channel, only on these.
    Channel(Vec<Channel>),
}

impl Declined {
    /// A closed label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ambiguous(_) => "ambiguous",
            Self::TooShort => "too_short",
            Self::Ended { outcome, .. } => match outcome {
                Outcome::Answered(_) => "already_answered",
                Outcome::TimedOut => "timed_out",
                Outcome::Withdrawn => "withdrawn",
                Outcome::Void => "void",
            },
            Self::NotAllShown => "not_all_shown",
            Self::Channel(_) => "channel_not_allowed",
        }
    }
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no call with this id waits for approval"),
            Self::Ambiguous(ids) => write!(
                f,
                "several calls, waiting or answered, have an id that begins so: {}; give more of the id",
                ids.join(", ")
            ),
            Self::TooShort => write!(
                f,
                "the id is too short: give at least {} letters of it",
                super::ID_LETTERS_MIN
            ),
            Self::Ended { id, outcome } => {
                write!(f, "{id} was already {outcome}; this answer has no effect")
            }
            Self::NotAllShown => f.write_str(
                "part of this call is too long to be shown; read it again and confirm that it is allowed",
            ),
            Self::Channel(channels) => {
                let names: Vec<&str> = channels.iter().map(|c| c.label()).collect();
                write!(
                    f,
                    "the rule that asks accepts answers on these channels only: {}",
                    names.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for Declined {}
