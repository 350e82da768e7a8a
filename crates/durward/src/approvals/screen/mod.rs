//! The live screen of `durward approvals watch`: what waits, with the time that is left, the whole call, and answers by
//! one key.
//!
//! The selection follows its call, never its line, and a call can be answered only after it has been shown for a
//! moment: a key is meant for what was read.

mod call;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::decide::sentence;
use super::text;
use super::watch::READ_MS;
use crate::places::{self, Places};
use admin::approvals::{
    self, ApprovalAnswer, ApprovalEvent, ApprovalFeed, EVENTS_MAX, FeedItem, InstanceEvent,
    NOT_ALL_SHOWN, SEARCH_MS,
};
use call::Call;
use gate::approval::{Choice, REASON_CHARS_MAX};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// How often the screen is drawn at least, in milliseconds: for the countdown.
const DRAW_MS: u64 = 250;
/// Lines that a page key moves the call's text by.
const PAGE_LINES: u16 = 10;

/// What happens on the screen.
enum Event {
    Feed(FeedItem),
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// No more keys will come.
    InputEnded,
}

impl From<FeedItem> for Event {
    fn from(item: FeedItem) -> Self {
        Self::Feed(item)
    }
}

/// What the next key is for.
enum Mode {
    Browse,
    /// The reason of a no is being typed.
    Reason(String),
    /// A yes to a call of which not all is shown has to be confirmed.
    Confirm(Choice),
}

/// All that the screen shows.
struct Screen<'p> {
    places: &'p Places,
    calls: Vec<Call>,
    /// The id of the selected call.
    selected: Option<String>,
    /// Lines of the call's text above the first that is shown.
    scroll: u16,
    mode: Mode,
    /// What the last answer came to.
    notice: String,
}

/// Whether there is a terminal to draw on and to read keys from.
pub(super) fn is_possible() -> bool {
    let is_dumb = places::variable("TERM").is_none_or(|term| term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Gives the terminal back as it was, however the screen ends.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

/// Shows the screen until the person ends it, or until `end`.
pub(super) fn run(places: &Places, end: Option<Instant>) -> io::Result<u8> {
    let mut terminal = ratatui::try_init()?;
    let restored = Restored;
    let (send, events) = sync_channel(EVENTS_MAX);
    let keys = send.clone();
    std::thread::spawn(move || read_keys(&keys));
    let mut feed = ApprovalFeed::new(&places.runtime);
    let mut screen = Screen {
        places,
        calls: Vec::new(),
        selected: None,
        scroll: 0,
        mode: Mode::Browse,
        notice: String::new(),
    };
    let mut look = Instant::now();
    loop {
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            break;
        }
        if now >= look {
            if let Some(warning) = feed.search(&send).pop() {
                screen.notice = format!("warning: {warning}");
            }
            look = now + Duration::from_millis(SEARCH_MS);
        }
        terminal.draw(|frame| view::draw(&mut screen, frame, Instant::now()))?;
        match events.recv_timeout(Duration::from_millis(DRAW_MS)) {
            Ok(Event::Feed(FeedItem::Event(event))) => screen.on_event(*event)?,
            Ok(Event::Feed(FeedItem::Ended(socket))) => {
                feed.forget(&socket);
                screen.calls.retain(|call| call.socket != socket);
                screen.select_some();
            }
            Ok(Event::Key(key)) => {
                if !screen.key(key) {
                    break;
                }
            }
            Ok(Event::Resized) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Event::InputEnded) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(restored);
    Ok(0)
}

fn read_keys(events: &SyncSender<Event>) {
    loop {
        let event = match event::read() {
            Ok(event::Event::Key(key)) if key.kind == KeyEventKind::Press => Event::Key(key),
            Ok(event::Event::Resize(_, _)) => Event::Resized,
            Ok(_) => continue,
            Err(_) => {
                let _ = events.send(Event::InputEnded);
                return;
            }
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

impl Screen<'_> {
    fn on_event(&mut self, event: InstanceEvent) -> io::Result<()> {
        match event.event {
            ApprovalEvent::Asked(question) => {
                self.calls.push(Call::new(event.socket, *question));
                let mut out = io::stdout();
                out.write_all(b"\x07")?;
                out.flush()?;
            }
            ApprovalEvent::Ended(ended) => {
                self.calls.retain(|call| call.id != ended.id);
                // The result of the person's own answer stays.
                if !self.notice.starts_with(&ended.id) {
                    self.notice = format!("{}: {}", ended.id, ended.outcome);
                }
            }
            ApprovalEvent::ReloadFailed(failure) => self.notice = text::failed_reload(&failure),
            ApprovalEvent::Unknown(_) => {}
        }
        self.select_some();
        Ok(())
    }

    fn at(&self) -> Option<usize> {
        let id = self.selected.as_ref()?;
        self.calls.iter().position(|call| call.id == *id)
    }

    fn call(&self) -> Option<&Call> {
        self.calls.get(self.at()?)
    }

    /// Selects the oldest call where the selected one is gone.
    fn select_some(&mut self) {
        if self.at().is_none() {
            self.select(0);
            // What was being typed was about the call that is gone.
            self.mode = Mode::Browse;
        }
    }

    fn select(&mut self, at: usize) {
        let call = self.calls.get_mut(at);
        let chosen = call.map(|call| {
            call.shown = Some(Instant::now());
            call.id.clone()
        });
        self.selected = chosen;
        self.scroll = 0;
    }

    /// Takes a key; `false` where the person wants to end.
    fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return false;
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => return self.browse(key.code),
            Mode::Reason(reason) => self.reason(reason, key.code),
            Mode::Confirm(choice) => match key.code {
                KeyCode::Char('y') => self.answer(choice, None, true),
                _ => self.notice = "nothing was answered".into(),
            },
        }
        true
    }

    fn browse(&mut self, key: KeyCode) -> bool {
        let at = self.at().unwrap_or(0);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Up | KeyCode::Char('k') if at > 0 => self.select(at - 1),
            KeyCode::Down | KeyCode::Char('j') if at + 1 < self.calls.len() => self.select(at + 1),
            KeyCode::PageDown | KeyCode::Char(' ') => {
                self.scroll = self.scroll.saturating_add(PAGE_LINES);
            }
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE_LINES),
            KeyCode::Char('o') => self.answer(Choice::Once, None, false),
            KeyCode::Char('a') => self.answer(Choice::Allow, None, false),
            KeyCode::Char('s') => self.answer(Choice::Session, None, false),
            KeyCode::Char('d') if self.is_read() => self.mode = Mode::Reason(String::new()),
            _ => {}
        }
        true
    }

    fn reason(&mut self, mut reason: String, key: KeyCode) {
        match key {
            KeyCode::Enter => {
                let said = (!reason.trim().is_empty()).then(|| reason.trim().to_owned());
                self.answer(Choice::Deny, said, false);
                return;
            }
            KeyCode::Esc => {
                self.notice = "nothing was answered".into();
                return;
            }
            KeyCode::Backspace => {
                reason.pop();
            }
            KeyCode::Char(c) if reason.chars().count() < REASON_CHARS_MAX => reason.push(c),
            _ => {}
        }
        self.mode = Mode::Reason(reason);
    }

    /// Whether the selected call has been shown long enough to be answered; says so where it has not.
    fn is_read(&mut self) -> bool {
        let Some(call) = self.call() else {
            self.notice = "nothing waits".into();
            return false;
        };
        let is_read = call
            .shown
            .is_some_and(|since| since.elapsed() >= Duration::from_millis(READ_MS));
        if !is_read {
            self.notice = "this call has just appeared; read it, then answer".into();
        }
        is_read
    }

    fn answer(&mut self, choice: Choice, reason: Option<String>, unseen: bool) {
        if !self.is_read() {
            return;
        }
        let Some(id) = self.selected.clone() else {
            return;
        };
        let answer = ApprovalAnswer {
            choice,
            reason,
            unseen,
        };
        match approvals::answer(&self.places.runtime, &id, &answer).outcome {
            Ok(answered) => self.notice = sentence(choice, &answered),
            Err(error) => {
                self.notice = error.to_string();
                if error.label() == NOT_ALL_SHOWN {
                    self.mode = Mode::Confirm(choice);
                }
            }
        }
    }
}
