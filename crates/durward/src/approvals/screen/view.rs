//! How the screen is drawn. Colours are the terminal's own, so that it can be read on light and on dark.

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::call::{Call, Kind};
use super::{Mode, Screen};

/// Most lines of the list; further calls are counted.
const LIST_LINES_MAX: u16 = 8;
/// From so many seconds on, the time that is left is shown in red.
const URGENT_S: u64 = 10;

/// Draws everything.
pub(super) fn draw(screen: &Screen<'_>, frame: &mut Frame<'_>, now: Instant) {
    let waiting = u16::try_from(screen.calls.len()).unwrap_or(u16::MAX);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(waiting.clamp(1, LIST_LINES_MAX)),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(2),
        Constraint::Length(2),
    ])
    .split(frame.area());
    let [head, list, _, body, notice, keys] = areas.as_ref() else {
        return;
    };
    let title = match screen.calls.len() {
        0 => "durward approvals: nothing waits".to_owned(),
        1 => "durward approvals: 1 call waits".to_owned(),
        number => format!("durward approvals: {number} calls wait"),
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(title).style(bold), *head);
    draw_list(screen, frame, *list, now);
    if let Some(call) = screen.call() {
        let lines: Vec<Line<'_>> = call.lines().into_iter().map(styled).collect();
        let text = Paragraph::new(lines).wrap(Wrap { trim: false });
        frame.render_widget(text.scroll((screen.scroll, 0)), *body);
    }
    let told = Paragraph::new(screen.notice.as_str()).wrap(Wrap { trim: true });
    frame.render_widget(told, *notice);
    let help = Paragraph::new(help(screen)).wrap(Wrap { trim: true });
    frame.render_widget(help.style(bold), *keys);
}

fn draw_list(screen: &Screen<'_>, frame: &mut Frame<'_>, area: Rect, now: Instant) {
    if screen.calls.is_empty() {
        let empty = "calls that need your approval appear here";
        frame.render_widget(Paragraph::new(empty), area);
        return;
    }
    let height = usize::from(area.height).max(1);
    let selected = screen.at().unwrap_or(0);
    let first = (selected + 1).saturating_sub(height);
    let rows: Vec<Line<'_>> = screen
        .calls
        .iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(at, call)| row(call, at == selected, now))
        .collect();
    frame.render_widget(Paragraph::new(rows), area);
}

fn row(call: &Call, is_selected: bool, now: Instant) -> Line<'static> {
    let left = call.seconds_left(now);
    let [what, server, caller] = call.columns();
    let mark = if is_selected { '>' } else { ' ' };
    let text = format!(
        "{mark} {}  {left:>3} s  {what}  on {server}  by {caller}",
        call.id
    );
    let mut style = Style::new();
    if is_selected {
        style = style.add_modifier(Modifier::REVERSED);
    }
    if left <= URGENT_S {
        style = style.fg(Color::Red);
    }
    Line::styled(text, style)
}

fn styled((kind, text): (Kind, String)) -> Line<'static> {
    let style = match kind {
        Kind::Plain => Style::new(),
        Kind::Added => Style::new().fg(Color::Green),
        Kind::Removed => Style::new().fg(Color::Red),
    };
    Line::styled(text, style)
}

fn help(screen: &Screen<'_>) -> String {
    match &screen.mode {
        Mode::Reason(reason) => format!("reason (optional): {reason}_   Enter denies  Esc goes back"),
        Mode::Confirm(_) => "part of this call is not shown; allow it anyway?  y yes  any other key no".into(),
        Mode::Browse if screen.calls.is_empty() => "q quit".into(),
        Mode::Browse => "o allow once  a allow for a while  s allow for this session  d deny  ↑↓ select  PgUp PgDn scroll  q quit".into(),
    }
}
