//! The page: its rows and the commands in them.

/// A row: the part of the paper, and what became of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) part: String,
    /// The other cells: command or word, the seed's figure, ours.
    cells: Vec<String>,
}

/// Whether a row says anything.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Told,
    Empty,
}

impl Entry {
    pub(super) fn state(&self) -> State {
        match self.cells.first() {
            Some(told) if !told.is_empty() => State::Told,
            _ => State::Empty,
        }
    }
}

/// The rows below a heading of the page.
pub(super) fn entries(text: &str, section: &str) -> Vec<Entry> {
    text.lines()
        .skip_while(|line| line.trim_start_matches(['#', ' ']) != section)
        .skip(1)
        .take_while(|line| !line.starts_with('#'))
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(|line| {
            let mut cells = line.trim_matches(['|', ' ']).split(" | ").map(str::trim);
            Entry {
                part: cells.next().unwrap_or_default().to_owned(),
                cells: cells.map(str::to_owned).collect(),
            }
        })
        .collect()
}

/// The commands of the lab on the page, each once.
pub(super) fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, piece) in text.split('`').enumerate() {
        // Every second piece stands between backticks.
        let is_command = at % 2 == 1 && piece.starts_with("durward lab ") && piece.contains(" --");
        if is_command && !found.iter().any(|known| known == piece) {
            found.push(piece.to_owned());
        }
    }
    found
}

/// A command in its quick form.
pub(super) fn quick(command: &str) -> String {
    let mut words = command.split(' ');
    match words.nth(2) {
        Some("overhead") => format!("{command} --quick --quiet"),
        Some("load") => format!("{command} --duration 500ms --quiet"),
        Some("standard") => format!("{command} --quick"),
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# P\n## One\n| part | now |\n|---|---|\n| A / B | `durward lab load tool --x` | 1 |\n| C |  |\n## Two\n| part |\n|---|\n| D | `durward lab load tool --x` |\n";

    #[test]
    fn rows_of_one_section() {
        let found = entries(TEXT, "One");
        let parts: Vec<&str> = found.iter().map(|entry| entry.part.as_str()).collect();
        assert_eq!(parts, ["A / B", "C"]);
        assert_eq!(
            (found[0].state(), found[1].state()),
            (State::Told, State::Empty)
        );
    }

    #[test]
    fn commands_once_and_quick() {
        assert_eq!(commands(TEXT), ["durward lab load tool --x"]);
        assert_eq!(
            quick("durward lab overhead --a"),
            "durward lab overhead --a --quick --quiet"
        );
        assert_eq!(
            quick("durward lab audit-latency --a"),
            "durward lab audit-latency --a"
        );
    }
}
