//! How a scripted model behaves, by its name.

use super::{Api, Reply, Step, failure};

/// What a model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Says its sentence; calls the first tool that it is offered where the last message is no tool's result.
    Plain,
    /// Calls the first two tools at once.
    ParallelTools,
    /// Says back the last message.
    Echo,
    /// Says back the last message, each character in an event of its own.
    Spell,
    /// Answers 429 and asks for a wait of one second.
    RateLimited,
    /// Answers 500.
    Failing,
    /// Answers 401.
    Locked,
    /// Answers 404: there is no such model.
    Missing,
    /// Answers 400: the request is longer than it can read.
    Overfull,
    /// Never begins to answer.
    Silent,
    /// Begins its reply, and says nothing in it.
    Mute,
    /// Stops after the first token.
    Stalling,
    /// Is cut off after the first token.
    Cut,
    /// Sends what is no JSON after the first token.
    Garbled,
    /// Says what it used nowhere.
    Unmetered,
    /// Sends one event of 100 MB.
    Huge,
    /// Never stops.
    Endless,
}

/// Names of models and what they do.
const TABLE: &[(&str, Manner)] = &[
    ("plain", Manner::Plain),
    ("parallel-tools", Manner::ParallelTools),
    ("echo", Manner::Echo),
    ("spell", Manner::Spell),
    ("fault-429", Manner::RateLimited),
    ("fault-500", Manner::Failing),
    ("fault-401", Manner::Locked),
    ("fault-silent", Manner::Silent),
    ("fault-mute", Manner::Mute),
    ("fault-404", Manner::Missing),
    ("fault-context", Manner::Overfull),
    ("fault-stall", Manner::Stalling),
    ("fault-cut", Manner::Cut),
    ("fault-garbled", Manner::Garbled),
    ("fault-unmetered", Manner::Unmetered),
    ("fault-huge", Manner::Huge),
    ("fault-endless", Manner::Endless),
];

/// Bytes of the one huge event, and of each part that it comes in.
const HUGE: (usize, usize) = (100_000_000, 1_000_000);

impl Manner {
    /// The names that have a manner of their own.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(name, _)| *name)
    }

    /// That of a model of this name.
    #[must_use]
    pub fn of(model: &str) -> Self {
        let found = TABLE.iter().find(|(name, _)| *name == model);
        found.map_or(Self::Plain, |(_, manner)| *manner)
    }

    /// The reply of a model that never answers well.
    pub(super) fn fault(self, api: Api) -> Option<Reply> {
        match self {
            Self::RateLimited => {
                let mut reply = failure(api, 429, "slow down");
                reply.headers.push(("retry-after", "1".to_owned()));
                Some(reply)
            }
            Self::Failing => Some(failure(api, 500, "something broke")),
            Self::Locked => Some(failure(api, 401, "bad key")),
            Self::Overfull => Some(failure(
                api,
                400,
                "prompt is too long: 9 tokens are more than the maximum of 8",
            )),
            Self::Missing => Some(failure(api, 404, "there is no such model")),
            Self::Silent => Some(Reply {
                head_ms: u64::MAX,
                ..failure(api, 500, "never said")
            }),
            _ => None,
        }
    }

    /// What becomes of a good reply.
    pub(super) fn spoil(
        self,
        steps: Vec<Step>,
        streams: bool,
    ) -> Box<dyn Iterator<Item = Step> + Send> {
        // Behind its first pause a stream has its first token.
        let pause = steps.iter().position(|step| matches!(step, Step::Wait(_)));
        let begun = pause.filter(|_| streams).map_or(0, |at| at + 2);
        let first = steps.clone().into_iter().take(begun);
        match self {
            Self::Mute => Box::new([Step::Stall].into_iter()),
            Self::Stalling => Box::new(first.chain([Step::Stall])),
            Self::Cut => Box::new(first.chain([Step::Cut])),
            Self::Garbled => {
                let garbage = Step::Bytes(b"data: {\"choices\": [oops\n\n".to_vec());
                Box::new(first.chain([garbage]).chain(steps.into_iter().skip(begun)))
            }
            Self::Huge => {
                let (bytes, part) = HUGE;
                let part = Step::Bytes(vec![b'x'; part]);
                let open = Step::Bytes(b"data: {\"x\":\"".to_vec());
                let huge = std::iter::repeat_n(part, bytes / HUGE.1);
                Box::new(first.chain([open]).chain(huge))
            }
            // Space before a value may be of any length.
            Self::Endless if !streams => {
                Box::new(std::iter::repeat_n(Step::Bytes(vec![b' '; HUGE.1]), HUGE.0))
            }
            Self::Endless => {
                let token = steps
                    .get(begun.saturating_sub(1)..begun)
                    .unwrap_or_default()
                    .to_vec();
                Box::new(first.chain(token.into_iter().cycle()))
            }
            Self::Plain
            | Self::ParallelTools
            | Self::Echo
            | Self::Spell
            | Self::Unmetered
            | Self::RateLimited
            | Self::Failing
            | Self::Locked
            | Self::Missing
            | Self::Overfull
            | Self::Silent => Box::new(steps.into_iter()),
        }
    }
}
