//! A notification on the desktop of this machine, by the program that the system has for it.

use super::Announcement;
use super::program::Program;
use crate::{places, program};

/// How long the program may run, in milliseconds.
const SHOW_MS_MAX: u64 = 5_000;

/// The program that shows notifications.
#[derive(Debug, Clone, Copy)]
pub(super) enum Desktop {
    /// libnotify's.
    NotifySend,
    /// macOS's.
    Osascript,
}

impl Desktop {
    /// The one that is here.
    pub fn find() -> Option<Self> {
        let search = places::search_path().unwrap_or_default();
        [Self::NotifySend, Self::Osascript]
            .into_iter()
            .find(|way| program::missing(way.name().as_ref(), None, &search).is_none())
    }

    fn name(self) -> &'static str {
        match self {
            Self::NotifySend => "notify-send",
            Self::Osascript => "osascript",
        }
    }

    /// Shows heading and text; no arguments of a call.
    pub async fn show(self, announcement: &Announcement) {
        if let Some(program) = Program::of(&self.command(announcement)) {
            program.run(b"", SHOW_MS_MAX).await;
        }
    }

    fn command(self, announcement: &Announcement) -> Vec<String> {
        let Announcement { title, body, .. } = announcement;
        let words = match self {
            Self::NotifySend => vec![
                "--app-name=durward".into(),
                "--urgency=critical".into(),
                format!(
                    "--expire-time={}",
                    announcement.time_s.saturating_mul(1_000)
                ),
                "--".into(),
                title.clone(),
                markup(body),
            ],
            Self::Osascript => vec![
                "-e".into(),
                format!(
                    "display notification {} with title {}",
                    script(body),
                    script(title)
                ),
            ],
        };
        [vec![self.name().to_owned()], words].concat()
    }
}

/// A text of AppleScript.
fn script(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A body of libnotify, which may hold markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_quotes() {
        assert_eq!(script("a\" & \\b"), "\"a\\\" & \\\\b\"");
        assert_eq!(markup("<b>&"), "&lt;b&gt;&amp;");
    }
}
