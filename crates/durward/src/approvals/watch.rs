//! `durward approvals watch`: calls as they begin and end to wait, in every running instance; at a
//! terminal, answers by one letter.

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use admin::approvals::{
    self, ApprovalAnswer, ApprovalEvent, ApprovalFeed, EVENTS_MAX, FeedItem, InstanceEvent,
    NOT_ALL_SHOWN, SEARCH_MS,
};
use clap::Args;
use gate::approval::Choice;

use crate::layout;
use crate::places::Places;

use super::decide::sentence;
use super::{screen, text, warn};

/// How long the screen has to have stood still before a call can be answered without its id, in
/// milliseconds: what is typed is meant for what was read.
pub(super) const READ_MS: u64 = 1_000;

/// Arguments of `durward approvals watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Print one JSON object for each event, and read no answers
    #[arg(long)]
    json: bool,
    /// Print lines instead of the live screen, and read answers as lines
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// End after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

/// Event that a reading thread sends.
enum Event {
    /// From an instance.
    Feed(FeedItem),
    /// A line typed by the person.
    Typed(String),
    /// No more lines will be typed.
    InputEnded,
}

impl From<FeedItem> for Event {
    fn from(item: FeedItem) -> Self {
        Self::Feed(item)
    }
}

/// What is known while watching.
struct Watch<'a> {
    places: &'a Places,
    json: bool,
    answering: bool,
    feed: ApprovalFeed<'a>,
    /// Waiting calls, oldest first: instance and id.
    waiting: Vec<(PathBuf, String)>,
    /// When that last changed.
    changed: Instant,
}

/// Watches until interrupted, or until the time is over.
pub fn run(
    args: &WatchArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let end = args
        .timeout
        .map(|s| Instant::now() + Duration::from_secs(s));
    if !args.json && !args.plain && screen::is_possible() {
        return screen::run(places, end);
    }
    let (send, events) = sync_channel(EVENTS_MAX);
    let answering = !args.json && io::stdin().is_terminal();
    let mut watch = Watch {
        places,
        json: args.json,
        answering,
        feed: ApprovalFeed::new(&places.runtime),
        waiting: Vec::new(),
        changed: Instant::now(),
    };
    if answering {
        writeln!(
            out,
            "watching; answer with a (allow), s (for this session), o (once) or d (deny) and the id, which may be left out where only one call waits;\nd ID REASON tells the caller why; q ends\n"
        )?;
        let typed = send.clone();
        std::thread::spawn(move || read_lines(&typed));
    } else if !args.json {
        writeln!(
            out,
            "watching; answer with: durward approvals allow|once|deny ID"
        )?;
    }
    out.flush()?;
    watch.follow(&send, &events, end, out, err)
}

fn read_lines(events: &SyncSender<Event>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if events.send(Event::Typed(line)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::InputEnded);
}

impl Watch<'_> {
    fn follow(
        &mut self,
        send: &SyncSender<Event>,
        events: &Receiver<Event>,
        end: Option<Instant>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<u8> {
        let mut look = Instant::now();
        loop {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) {
                return Ok(0);
            }
            if now >= look {
                warn(&self.feed.search(send), err);
                look = now + Duration::from_millis(SEARCH_MS);
            }
            let until = end.map_or(look, |end| end.min(look));
            match events.recv_timeout(until.saturating_duration_since(now)) {
                Ok(Event::Feed(FeedItem::Event(event))) => self.print_event(*event, out)?,
                Ok(Event::Feed(FeedItem::Ended(socket))) => {
                    self.feed.forget(&socket);
                    self.waiting.retain(|(holder, _)| *holder != socket);
                    self.changed = Instant::now();
                }
                Ok(Event::Typed(line)) => {
                    if !self.typed(&line, out, err)? {
                        return Ok(0);
                    }
                }
                Ok(Event::InputEnded) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
            out.flush()?;
        }
    }

    fn print_event(&mut self, event: InstanceEvent, out: &mut dyn Write) -> io::Result<()> {
        if self.json {
            return layout::json_line(&event, out);
        }
        match event.event {
            ApprovalEvent::Asked(question) => {
                text::print_question(&question, layout::screen_width(), out)?;
                if self.answering {
                    writeln!(out, "    answer    a, s, o or d {}", question.id)?;
                }
                self.waiting.push((event.socket, question.id));
                self.changed = Instant::now();
                writeln!(out)
            }
            ApprovalEvent::Ended(ended) => {
                self.waiting.retain(|(_, id)| *id != ended.id);
                self.changed = Instant::now();
                writeln!(out, "{}  {}\n", ended.id, ended.outcome)
            }
            ApprovalEvent::ReloadFailed(failure) => {
                writeln!(out, "{}\n", text::failed_reload(&failure))
            }
            ApprovalEvent::Unknown(_) => Ok(()),
        }
    }

    /// Takes a typed line; `false` where the person wants to end.
    fn typed(&mut self, line: &str, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
        let mut words = line.split_whitespace();
        let choice = match words.next() {
            None => return Ok(true),
            Some("q" | "quit") => return Ok(false),
            Some("a" | "allow") => Choice::Allow,
            Some("s" | "session") => Choice::Session,
            Some("o" | "once") => Choice::Once,
            Some("d" | "deny") => Choice::Deny,
            Some(other) => {
                let other = gate::approval::display::text(other, 32);
                writeln!(out, "\"{other}\" is not an answer: type a, s, o, d or q")?;
                return Ok(true);
            }
        };
        let id = match (words.next(), self.waiting.as_slice()) {
            (Some(id), _) => id.to_owned(),
            (None, []) => {
                writeln!(out, "nothing waits")?;
                return Ok(true);
            }
            (None, [(_, id)]) if self.changed.elapsed() >= Duration::from_millis(READ_MS) => {
                id.clone()
            }
            (None, [_]) => {
                writeln!(out, "the list has just changed; read the call, then answer")?;
                return Ok(true);
            }
            (None, _) => {
                writeln!(out, "several calls wait; add the id of the one you mean")?;
                return Ok(true);
            }
        };
        let rest: Vec<&str> = words.collect();
        let denies = choice == Choice::Deny;
        let answer = ApprovalAnswer {
            choice,
            reason: (denies && !rest.is_empty()).then(|| rest.join(" ")),
            unseen: !denies && rest.first() == Some(&"unseen"),
        };
        let report = approvals::answer(&self.places.runtime, &id, &answer);
        warn(&report.warnings, err);
        match report.outcome {
            Ok(answered) => writeln!(out, "{}", sentence(choice, &answered))?,
            Err(error) if error.label() == NOT_ALL_SHOWN => {
                writeln!(out, "{error} with: {} {id} unseen", choice.label())?;
            }
            Err(error) => writeln!(out, "{error}")?,
        }
        Ok(true)
    }
}
