//! A notification on the desktop of this machine, by the program that the system has for it.

use std::path::PathBuf;

use super::Announcement;
use super::program::Program;
use crate::program;

/// How long the program may run, in milliseconds.
const SHOW_MS_MAX: u64 = 5_000;

/// The program that shows notifications, found once: a program of its name that comes to lie before it on the `PATH` is not
/// run.
#[derive(Debug)]
pub(super) struct Desktop {
    kind: DesktopKind,
    program: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum DesktopKind {
    /// libnotify's.
    NotifySend,
    /// macOS's.
    Osascript,
}

impl DesktopKind {
    fn name(self) -> &'static str {
        match self {
            Self::NotifySend => "notify-send",
            Self::Osascript => "osascript",
        }
    }
}

impl Desktop {
    /// Returns the one that is installed.
    pub fn find() -> Option<Self> {
        let kinds = [DesktopKind::NotifySend, DesktopKind::Osascript];
        kinds.into_iter().find_map(|kind| {
            let program = program::found(kind.name().as_ref())?;
            Some(Self { kind, program })
        })
    }

    /// Shows heading and text; no arguments of a call.
    pub async fn show(&self, announcement: &Announcement) {
        if let Some(program) = Program::of(&self.command(announcement)) {
            program.run(b"", SHOW_MS_MAX).await;
        }
    }

    fn command(&self, announcement: &Announcement) -> Vec<String> {
        let Announcement { title, body, .. } = announcement;
        let words = match self.kind {
            DesktopKind::NotifySend => vec![
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
            DesktopKind::Osascript => vec![
                "-e".into(),
                format!(
                    "display notification {} with title {}",
                    script(body),
                    script(title)
                ),
            ],
        };
        let program = self.program.to_string_lossy().into_owned();
        [vec![program], words].concat()
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
