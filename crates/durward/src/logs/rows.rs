//! Records as rows of a table.

use std::io::{self, Write};

use admin::calls::Record;
use serde_json::{Map, Value};

use crate::audit::show::Plain;
use crate::layout::table::{Column, Long, Table};

/// A column, and the members of a record of which the first there is shown.
pub(super) type Shown = (Column, &'static [&'static str]);

const CALLER: Shown = (
    Column::new("caller", 8, Long::Cut).of_rank(4),
    &["subject_id"],
);
const SERVER: Shown = (
    Column::new("server", 6, Long::Cut).of_rank(5),
    &["backend_id"],
);
const RULE: Shown = (
    Column::new("rule", 8, Long::Cut).of_rank(3),
    &["final_rule"],
);
const MODEL: Shown = (Column::new("model", 8, Long::Cut).of_rank(6), &["model"]);
const TOKENS_USED: Shown = (Column::new("tokens", 0, Long::Whole).of_rank(7), TOKENS);
const COST_PAID: Shown = (Column::new("cost", 0, Long::Whole).of_rank(8), COST);
/// Columns from this rank on are shown only where a record fills them.
const OPTIONAL_FROM: u8 = 6;
/// Tokens that were read and written.
const TOKENS: &[&str] = &["input_tokens", "output_tokens"];
/// What a call cost; the record has it in millionths.
const COST: &[&str] = &["cost_micros"];
/// How long something took; the record has it in microseconds.
const TOOK: &[&str] = &["duration_us"];
const MESSAGE: &[&str] = &["message", "error_message"];
/// The same where nothing stands behind it.
const LAST: Column = Column::new("message", 16, Long::Cut);

/// The columns of refusals of every kind.
pub(super) const REFUSED: &[Shown] = &[
    CALLER,
    (
        Column::new("tool or method", 10, Long::Cut),
        &["tool_name", "mcp_method", "method", "model", "event"],
    ),
    SERVER,
    (
        Column::new("reason", 10, Long::Cut),
        &["hitl_outcome", "reason"],
    ),
    RULE,
    (
        Column::new("path or message", 12, Long::CutFront).of_rank(1),
        &["path", "uri", "message"],
    ),
];

/// The columns of a run: what was decided, and what became of it.
pub(super) const RUN: &[Shown] = &[
    (Column::new("record", 9, Long::Cut).of_rank(2), &["kind"]),
    SERVER,
    (
        Column::new("tool or method", 10, Long::Cut),
        &["tool_name", "mcp_method", "method", "model"],
    ),
    (
        Column::new("result", 0, Long::Whole),
        &["decision", "status"],
    ),
    (
        Column::new("outcome", 8, Long::Cut).of_rank(3),
        &["hitl_outcome", "reason"],
    ),
    (Column::new("took", 0, Long::Whole).of_rank(4), TOOK),
    (
        Column::new("path", 14, Long::CutFront).of_rank(1),
        &["path", "uri"],
    ),
];

pub(super) const DECISIONS: &[Shown] = &[
    CALLER,
    (Column::new("decision", 0, Long::Whole), &["decision"]),
    (
        Column::new("outcome", 9, Long::Cut).of_rank(2),
        &["hitl_outcome", "reason"],
    ),
    (
        Column::new("tool or method", 10, Long::Cut),
        &["tool_name", "mcp_method", "model"],
    ),
    SERVER,
    RULE,
    (
        Column::new("result", 0, Long::Whole).of_rank(6),
        &["status"],
    ),
    MODEL,
    TOKENS_USED,
    COST_PAID,
    (
        Column::new("path", 14, Long::CutFront).of_rank(1),
        &["path", "uri"],
    ),
];

pub(super) const OPERATIONS: &[Shown] = &[
    (Column::new("status", 0, Long::Whole), &["status"]),
    (
        Column::new("tool or method", 10, Long::Cut),
        &["tool_name", "method"],
    ),
    SERVER,
    (Column::new("took", 0, Long::Whole), TOOK),
    TOKENS_USED,
    COST_PAID,
    (Column::new("reason", 8, Long::Cut).of_rank(1), &["reason"]),
];

pub(super) const AUTH: &[Shown] = &[
    (
        Column::new("event", 10, Long::Cut),
        &["event_type", "event"],
    ),
    (
        Column::new("status", 0, Long::Whole).of_rank(2),
        &["status"],
    ),
    (
        Column::new("subject", 8, Long::Cut).of_rank(1),
        &["subject_id", "subject"],
    ),
    (LAST, MESSAGE),
];

pub(super) const SYSTEM: &[Shown] = &[
    (Column::new("level", 0, Long::Whole).of_rank(2), &["level"]),
    (Column::new("event", 10, Long::Cut), &["event"]),
    SERVER,
    (LAST, MESSAGE),
];

pub(super) const HISTORY: &[Shown] = &[
    (Column::new("event", 8, Long::Cut), &["event"]),
    (
        Column::new("version", 0, Long::Whole).of_rank(2),
        &["version"],
    ),
    (
        Column::new("change", 0, Long::Whole).of_rank(3),
        &["change_type"],
    ),
    (
        Column::new("source", 12, Long::CutFront),
        &["source", "path"],
    ),
    (LAST.of_rank(1), MESSAGE),
];

/// How the time of a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    /// As the record has it.
    Whole,
    /// Month, day and time of day.
    Day,
    /// The time of day alone.
    Clock,
}

/// Lines of a terminal that have room for the whole time.
const WHOLE_FROM: usize = 100;
/// Characters of a date in a time, and where the seconds end.
const DATE: usize = 10;
const SECONDS: std::ops::Range<usize> = 11..19;

impl Time {
    /// The form for these records at this width.
    fn of(bodies: &[Map<String, Value>], width: Option<usize>, is_followed: bool) -> Self {
        let day = |body: &Map<String, Value>| {
            let time = body.get("time").and_then(Value::as_str);
            time.and_then(|time| time.get(..DATE)).map(str::to_owned)
        };
        let mut days = bodies.iter().map(day);
        let first = days.next().flatten();
        match width {
            None => Self::Whole,
            Some(width) if width >= WHOLE_FROM => Self::Whole,
            Some(_) if !is_followed && days.all(|day| day == first) => Self::Clock,
            Some(_) => Self::Day,
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Whole => "time",
            Self::Day | Self::Clock => "time UTC",
        }
    }

    fn text(self, time: &str) -> String {
        let clock = time.get(SECONDS);
        match (self, clock) {
            (Self::Clock, Some(clock)) => clock.to_owned(),
            (Self::Day, Some(clock)) => {
                format!("{} {clock}", time.get(5..DATE).unwrap_or_default())
            }
            _ => time.to_owned(),
        }
    }
}

/// Texts of a usual length: records that are still to come are not known.
const USUAL: &str = "xxxxxxxxxxxx";

/// How records are laid out.
pub(super) struct Rows {
    shown: Vec<Shown>,
    columns: Vec<Column>,
    widths: Vec<Option<usize>>,
    width: Option<usize>,
    time: Time,
    paint: bool,
}

impl Rows {
    /// For these records, at this width, and others that follow.
    pub fn of(
        shown: &'static [Shown],
        records: &[Record],
        (width, is_followed): (Option<usize>, bool),
        paint: bool,
    ) -> Self {
        let read: Vec<Map<String, Value>> = records.iter().filter_map(Record::members).collect();
        let time = Time::of(&read, width, is_followed);
        let first = Column::new(time.heading(), 0, Long::Whole);
        let is_filled = |of: &Shown| {
            let cells = |body| cells(std::slice::from_ref(of), time, body);
            read.iter()
                .any(|body| cells(body).last().is_some_and(|cell| cell != "-"))
        };
        let shown: Vec<Shown> = shown
            .iter()
            .filter(|of| of.0.rank < OPTIONAL_FROM || is_filled(of))
            .copied()
            .collect();
        let columns: Vec<Column> = std::iter::once(first)
            .chain(shown.iter().map(|(column, _)| *column))
            .collect();
        let mut rows: Vec<Vec<String>> =
            read.iter().map(|body| cells(&shown, time, body)).collect();
        if is_followed {
            let usual = columns.iter().map(|column| match column.long {
                Long::Whole => String::new(),
                _ => USUAL.to_owned(),
            });
            rows.push(usual.collect());
        }
        let widths = Table::of(&columns, &rows, width, 0).widths();
        Self {
            shown,
            columns,
            widths,
            width,
            time,
            paint,
        }
    }

    fn table(&self) -> Table<'_> {
        let table = Table::with(&self.columns, self.widths.clone(), self.width);
        match self.paint {
            true => table.painted(colour),
            false => table,
        }
    }

    pub fn heading(&self, out: &mut dyn Write) -> io::Result<()> {
        self.table().heading(out)
    }

    pub fn print(&self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        match record.members() {
            Some(members) => self
                .table()
                .row(&cells(&self.shown, self.time, &members), out),
            None => writeln!(out, "(unreadable)"),
        }
    }
}

fn cells(shown: &[Shown], time: Time, members: &Map<String, Value>) -> Vec<String> {
    let text = |names: &[&str]| {
        if names == TOKENS || names == COST {
            return used(names, members);
        }
        // Every decision has this event: it says nothing of what was called.
        let says = |value: &&Value| value.as_str() != Some("policy_decision");
        let value = names
            .iter()
            .find_map(|name| members.get(*name).filter(says));
        match value {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => Plain(text).to_string(),
            // Of the names of a model the caller's own stands first.
            Some(Value::Array(texts)) if texts.iter().all(Value::is_string) => {
                let first = texts.first().and_then(Value::as_str);
                first.map_or_else(|| "-".to_owned(), |text| Plain(text).to_string())
            }
            Some(Value::Number(number)) if names == TOOK => {
                number.as_f64().map_or_else(|| "-".to_owned(), took)
            }
            Some(other) => Plain(&other.to_string()).to_string(),
        }
    };
    let first = time.text(&text(&["time"]));
    let texts = shown.iter().map(|(_, names)| text(names));
    std::iter::once(first).chain(texts).collect()
}

/// Sum of what a call has used of these; money as a decimal of the configured currency.
fn used(names: &[&str], members: &Map<String, Value>) -> String {
    let usage = members.get("usage").and_then(Value::as_object);
    let counts = names.iter().filter_map(|name| usage?.get(*name)?.as_u64());
    let Some(sum) = counts.reduce(u64::saturating_add) else {
        return "-".to_owned();
    };
    match names == COST {
        true => format!("{}.{:06}", sum / 1_000_000, sum % 1_000_000),
        false => sum.to_string(),
    }
}

/// A span of microseconds with three significant digits, in the unit that reads best.
fn took(us: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1.0, "µs"), (1e3, "ms"), (1e6, "s")];
    let digits = |value: f64| match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    let [small, middle, large] = UNITS;
    let (one, unit) = match us {
        us if us < 999.5 => small,
        us if us < 999_500.0 => middle,
        _ => large,
    };
    let value = us / one;
    format!("{value:.*} {unit}", digits(value))
}

/// The colour of a word that says how something went.
fn colour(word: &str) -> Option<&'static str> {
    match word {
        "allow" | "user_allowed" | "Success" | "updated" => Some("32"),
        "deny" | "user_denied" | "timeout" | "Failure" | "error" | "validation_failed" => {
            Some("31")
        }
        "hitl" | "withdrawn" | "warning" | "Cancelled" | "Aborted" => Some("33"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"time":"2026-11-26T00:03:05.435Z","kind":"decision","decision":"deny","reason":"denied_by_rule","mcp_method":"tools/call","tool_name":"a\u001b[2Jb","path":"/home/me/notes.txt"}"#;

    fn printed(bodies: &[&str], paint: bool, width: Option<usize>, is_followed: bool) -> String {
        let records: Vec<Record> = bodies
            .iter()
            .map(|body| Record::new((*body).into()))
            .collect();
        let rows = Rows::of(DECISIONS, &records, (width, is_followed), paint);
        let mut out = Vec::new();
        rows.heading(&mut out).unwrap();
        for record in &records {
            rows.print(record, &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_plain_or_painted_and_never_drive_a_terminal() {
        let plain = printed(&[BODY], false, None, false);
        assert!(!plain.contains('\x1b'), "{plain:?}");
        assert!(
            plain.contains("  deny      denied_by_rule  a\\u{1b}[2Jb"),
            "{plain}"
        );
        assert!(plain.ends_with("/home/me/notes.txt\n"), "{plain}");
        let painted = printed(&[BODY], true, None, false);
        assert_eq!(painted.matches('\x1b').count(), 2, "{painted:?}");
        let stripped = painted.replace("\x1b[31m", "").replace("\x1b[0m", "");
        assert_eq!(stripped, plain);
        for width in 0..200 {
            for paint in [false, true] {
                let narrow = printed(&[BODY], paint, Some(width), false);
                let fits = |line: &str| crate::layout::fold::shown(line) <= width;
                assert!(narrow.lines().all(fits), "{width}: {narrow}");
            }
        }
        assert_eq!(
            printed(&["nonsense"], true, None, false).lines().last(),
            Some("(unreadable)")
        );
    }

    #[test]
    fn times_have_three_significant_digits_and_a_unit() {
        for (us, text) in [
            (0.0, "0.00 µs"),
            (2.345_678, "2.35 µs"),
            (9.996, "10.0 µs"),
            (99.96, "100 µs"),
            (999.6, "1.00 ms"),
            (13_698.181, "13.7 ms"),
            (999_600.0, "1.00 s"),
            (125_300_000.0, "125 s"),
        ] {
            assert_eq!(took(us), text, "{us}");
        }
        let body =
            r#"{"time":"2026-11-26T00:03:05.435Z","status":"Success","duration_us":13698.181}"#;
        let record = Record::new(body.into());
        let rows = Rows::of(
            OPERATIONS,
            std::slice::from_ref(&record),
            (None, false),
            false,
        );
        let mut out = Vec::new();
        rows.print(&record, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("  13.7 ms"), "{text}");
    }

    #[test]
    fn p10_a_narrow_terminal_shows_what_was_decided_about_which_tool_and_path() {
        let narrow = printed(&[BODY], false, Some(60), false);
        assert!(narrow.starts_with("time UTC  "), "{narrow}");
        for part in [
            "00:03:05",
            "deny",
            "denied_by_",
            "a\\u{1b}[2Jb",
            "notes.txt",
        ] {
            assert!(narrow.contains(part), "{part}: {narrow}");
        }
        let other_day = BODY.replace("11-26", "11-25");
        let two = printed(&[&other_day, BODY], false, Some(60), false);
        for part in ["11-25 00:03:05", "11-26 00:03:05"] {
            assert!(two.contains(part), "{two}");
        }
        let followed = printed(&[BODY], false, Some(60), true);
        assert!(followed.contains("11-26 00:03:05"), "{followed}");
        assert!(followed.contains("deny"), "{followed}");
    }
}
