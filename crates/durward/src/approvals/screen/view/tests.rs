use admin::approvals::ApprovalQuestion;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::*;
use crate::places::Places;

fn question(number: usize) -> ApprovalQuestion {
    let change: Vec<String> = [
        "/srv/notes.txt: 1 line removed, 1 added",
        "-old line",
        "+new line",
    ]
    .map(str::to_owned)
    .to_vec();
    let question = json!({
        "id": format!("k7f2m9q{number}"), "tool_name": "write_file", "backend_id": "files",
        "subject_id": "key:laptop", "remaining_ms": 41_200, "rule": "ask", "can_cache": true,
        "cache_ttl_seconds": 600, "change": change,
        "arguments": format!("{{\"path\": \"/srv/notes.txt\", \"content\": \"{}\"}}", "many words ".repeat(60)),
    });
    serde_json::from_value(question).unwrap()
}

/// The screen with so many waiting calls, in a terminal of this size, after `act`.
fn drawn(calls: usize, size: (u16, u16), act: impl FnOnce(&mut Screen<'_>)) -> Vec<String> {
    let places = Places::find(None, "durward".into());
    let calls = (0..calls).map(|number| Call::new("/s".into(), question(number)));
    let mut screen = Screen {
        places: &places,
        calls: calls.collect(),
        selected: None,
        scroll: 0,
        mode: Mode::Browse,
        notice: String::new(),
    };
    screen.select(0);
    act(&mut screen);
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| draw(&mut screen, frame, Instant::now()))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = (0..size.1).map(|y| {
        let cells = (0..size.0).filter_map(|x| buffer.cell((x, y)));
        cells.map(|cell| cell.symbol()).collect::<String>()
    });
    rows.map(|row| row.trim_end().to_owned()).collect()
}

fn at(screen: &[String], start: &str) -> usize {
    let found = screen.iter().position(|row| row.starts_with(start));
    found.unwrap_or_else(|| panic!("{start}: {screen:#?}"))
}

#[test]
fn a_write_shows_its_change_before_its_content_at_every_width() {
    for width in [60, 120] {
        let screen = drawn(1, (width, 24), |_| {});
        assert_eq!(screen[0], "durward approvals: 1 call waits");
        assert_eq!(
            screen[1],
            "> k7f2m9q0   42 s  write_file  on files  by key:laptop"
        );
        assert!(at(&screen, "  +new line") < at(&screen, "arguments {"));
        let keys = screen[22..].join(" ");
        for key in ["o allow once", "a allow for 10 min", "q quit"] {
            assert!(keys.contains(key), "{screen:#?}");
        }
        assert!(
            drawn(1, (width, 60), |_| {})
                .iter()
                .all(|row| !row.contains("lines 1 to"))
        );
    }
}

#[test]
fn what_has_no_room_is_said_and_a_text_is_not_scrolled_out_of_sight() {
    let screen = drawn(1, (60, 24), |_| {});
    assert!(screen[2].ends_with(" of 23"), "{screen:#?}");
    assert!(
        screen[2].trim_start().starts_with("lines 1 to "),
        "{screen:#?}"
    );
    let end = drawn(1, (60, 24), |screen| screen.scroll = 1_000);
    assert!(end[2].ends_with(" to 23 of 23"), "{end:#?}");
    assert!(
        end[..20].iter().any(|row| row.starts_with("remember")),
        "{end:#?}"
    );
}

#[test]
fn calls_without_room_are_counted_and_columns_stand_below_one_another() {
    let screen = drawn(11, (60, 24), |screen| screen.select(9));
    assert_eq!(
        screen[0],
        "durward approvals: 11 calls wait (3 to 10 shown)"
    );
    assert!(screen[8].starts_with("> k7f2m9q9"), "{screen:#?}");
    let tools = screen[1..9].iter().map(|row| row.find("write_file"));
    assert!(
        tools.clone().all(|at| at == screen[1].find("write_file")),
        "{screen:#?}"
    );
    let few = drawn(3, (60, 24), |_| {});
    assert_eq!(few[0], "durward approvals: 3 calls wait");
}

#[test]
fn the_end_of_a_long_reason_is_in_sight() {
    let reason = format!(
        "{}and not on a Friday",
        "much longer than the line ".repeat(5)
    );
    let screen = drawn(1, (60, 24), |screen| screen.mode = Mode::Reason(reason));
    assert!(screen[22].ends_with("and not on a Friday_"), "{screen:#?}");
    assert!(
        screen[22].starts_with("reason (optional): …"),
        "{screen:#?}"
    );
    assert_eq!(screen[23], "Enter denies  Esc goes back");
}

#[test]
fn a_call_that_cannot_be_remembered_offers_no_more_than_once() {
    let screen = drawn(1, (120, 24), |screen| {
        let mut question = question(0);
        question.can_cache = false;
        screen.calls = vec![Call::new("/s".into(), question)];
    });
    let keys = screen[22..].join(" ");
    assert!(keys.starts_with("o allow once  d deny"), "{screen:#?}");
}

#[test]
fn nothing_waits() {
    let screen = drawn(0, (60, 24), |_| {});
    assert_eq!(screen[0], "durward approvals: nothing waits");
    assert_eq!(screen[1], "calls that need your approval appear here");
    assert_eq!(screen[22], "q quit");
}
