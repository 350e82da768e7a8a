//! How the screen is drawn. Colours are the terminal's own, so that it can be read on light and on dark.

use std::ops::Range;
use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::call::{Call, Kind};
use super::{Mode, Screen};
use crate::layout::cut_front;
use crate::layout::table::{Column, Long, Table};

/// Most lines of the list, which takes a third of the screen at most; the title says which calls are shown.
const LIST_LINES_MAX: u16 = 8;
/// From so many seconds on, the time that is left is shown in red.
const URGENT_S: u64 = 10;

/// Id, time that is left, tool, server and caller of a call.
const COLUMNS: [Column; 5] = [
    Column::new("", 0, Long::Whole),
    Column::new("", 0, Long::Whole),
    Column::new("", 12, Long::Cut),
    Column::new("", 9, Long::Cut).of_rank(1),
    Column::new("", 9, Long::Cut).of_rank(2),
];

/// Draws everything. A text that was scrolled past its end is scrolled back.
pub(super) fn draw(screen: &mut Screen<'_>, frame: &mut Frame<'_>, now: Instant) {
    let waiting = u16::try_from(screen.calls.len()).unwrap_or(u16::MAX);
    let most = (frame.area().height / 3).clamp(1, LIST_LINES_MAX);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(waiting.clamp(1, most)),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(2),
        Constraint::Length(2),
    ])
    .split(frame.area());
    let [head, list, between, body, notice, keys] = areas.as_ref() else {
        return;
    };
    let listed = draw_list(screen, frame, *list, now);
    let shown = match listed.len() < screen.calls.len() {
        true => format!(" ({} to {} shown)", listed.start + 1, listed.end),
        false => String::new(),
    };
    let title = match screen.calls.len() {
        0 => "durward approvals: nothing waits".to_owned(),
        1 => "durward approvals: 1 call waits".to_owned(),
        number => format!("durward approvals: {number} calls wait{shown}"),
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(title).style(bold), *head);
    let lines = screen
        .call()
        .map(|call| call.lines(usize::from(body.width)));
    if let Some(lines) = lines {
        let all = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        screen.scroll = screen.scroll.min(all.saturating_sub(body.height));
        if all > body.height {
            let last = screen.scroll.saturating_add(body.height).min(all);
            let place = format!("lines {} to {last} of {all}", screen.scroll + 1);
            frame.render_widget(Paragraph::new(place).right_aligned(), *between);
        }
        let lines: Vec<Line<'_>> = lines.into_iter().map(styled).collect();
        let text = Paragraph::new(lines);
        frame.render_widget(text.scroll((screen.scroll, 0)), *body);
    }
    let told = Paragraph::new(screen.notice.as_str()).wrap(Wrap { trim: true });
    frame.render_widget(told, *notice);
    let help = Paragraph::new(help(screen, usize::from(keys.width))).wrap(Wrap { trim: true });
    frame.render_widget(help.style(bold), *keys);
}

/// Draws the list; gives which calls it shows.
fn draw_list(screen: &Screen<'_>, frame: &mut Frame<'_>, area: Rect, now: Instant) -> Range<usize> {
    if screen.calls.is_empty() {
        let empty = "calls that need your approval appear here";
        frame.render_widget(Paragraph::new(empty), area);
        return 0..0;
    }
    let height = usize::from(area.height).max(1);
    let selected = screen.at().unwrap_or(0);
    let first = (selected + 1).saturating_sub(height);
    let cells: Vec<Vec<String>> = screen.calls.iter().map(|call| cells(call, now)).collect();
    let width = usize::from(area.width).saturating_sub(MARK);
    let table = Table::of(&COLUMNS, &cells, Some(width), 0);
    let rows = screen.calls.iter().zip(&cells).enumerate();
    let rows: Vec<Line<'_>> = rows
        .skip(first)
        .take(height)
        .map(|(at, (call, cells))| {
            let mark = if at == selected { '>' } else { ' ' };
            let text = format!("{mark} {}", table.text(cells));
            Line::styled(text, style(call, at == selected, now))
        })
        .collect();
    let listed = first..first + rows.len();
    frame.render_widget(Paragraph::new(rows), area);
    listed
}

/// Characters of the mark of the selected call.
const MARK: usize = 2;

fn cells(call: &Call, now: Instant) -> Vec<String> {
    let [what, server, caller] = call.columns();
    vec![
        call.id.clone(),
        format!("{:>3} s", call.seconds_left(now)),
        what,
        format!("on {server}"),
        format!("by {caller}"),
    ]
}

fn style(call: &Call, is_selected: bool, now: Instant) -> Style {
    let mut style = Style::new();
    if is_selected {
        style = style.add_modifier(Modifier::REVERSED);
    }
    if call.seconds_left(now) <= URGENT_S {
        style = style.fg(Color::Red);
    }
    style
}

fn styled((kind, text): (Kind, String)) -> Line<'static> {
    let style = match kind {
        Kind::Plain => Style::new(),
        Kind::Added => Style::new().fg(Color::Green),
        Kind::Removed => Style::new().fg(Color::Red),
    };
    Line::styled(text, style)
}

/// What the keys do now, on lines of this width.
fn help(screen: &Screen<'_>, width: usize) -> String {
    match &screen.mode {
        Mode::Reason(reason) => {
            const LABEL: &str = "reason (optional): ";
            let room = width.saturating_sub(LABEL.len() + 1);
            // What is being typed is in sight, however long the reason is.
            format!(
                "{LABEL}{}_\nEnter denies  Esc goes back",
                cut_front(reason, room)
            )
        }
        Mode::Confirm(_) => {
            "part of this call is not shown; allow it anyway?  y yes  any other key no".into()
        }
        Mode::Browse => match screen.call() {
            None => "q quit".into(),
            Some(call) => match call.remembered() {
                Some(time) => format!(
                    "o allow once  a allow for {time}  s allow for this session  d deny  ↑↓ select  PgUp PgDn scroll  q quit"
                ),
                None => "o allow once  d deny  ↑↓ select  PgUp PgDn scroll  q quit".into(),
            },
        },
    }
}

#[cfg(test)]
mod tests;
