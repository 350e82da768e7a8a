//! Figures of the names and comments of each crate: a reader from another project should find the field's own words.
//!
//! `xtask/vocabulary.txt` lists the crates that miss a target, each with the figure that it has reached. The list only
//! shrinks: a worse figure, an entry that is not needed any more and an entry that is much too loose are findings.

use std::collections::BTreeMap;

use super::tree::SourceTree;
use crate::finding::Finding;

/// Path of the list of exceptions.
const FILE: &str = "xtask/vocabulary.txt";

/// Fewest types of a crate for a share of its types to mean anything.
const TYPES_MIN: usize = 10;

/// Fewest words of comments of a crate for "Returns" to be expected in them.
const WORDS_MIN: usize = 1_000;

/// Part of an entry by which the reached figure may be better before the entry has to be lowered.
const SLACK: f64 = 0.25;

/// Participles that name functions in place of verbs: `taken` for `take`.
const PARTICIPLES: &str = "told named refused ended failed asked shown listed said written taken known used settled \
    judged kept quoted answered folded changed held joined watched inspected moved fitted guarded reached chosen \
    counted checked left served grouped described compared passed wanted mirrored seen signed broken accepted \
    remembered typed printed recorded waited spelled masked noted owned measured called shortened edited given \
    loosened drawn narrowed dropped woken raised borrowed claimed dated escaped trimmed expanded merged salvaged \
    repeated stopped sealed touched rested looked worded filled wrapped painted summed announced labelled turned \
    welcomed headed witnessed carried returned decided begun sent came heard found lent led made";

/// Words behind a "What" at the begin of a sentence without a subject.
const AFTER_WHAT: [&str; 12] = [
    "is", "are", "a", "it", "the", "was", "has", "there", "its", "becomes", "one", "comes",
];

/// Words behind a "where" in the place of an "if".
const AFTER_WHERE: [&str; 10] = [
    "that", "it", "one", "there", "they", "none", "a", "the", "its", "nothing",
];

/// A figure with its target; the unit is per cent, or occurrences in 10,000 words of comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WordFigure {
    RepeatedTypes,
    OneWordTypes,
    ParticipleFunctions,
    Returns,
    What,
    Where,
    Tell,
    Stands,
    Whose,
    Nobody,
}

impl WordFigure {
    const ALL: [Self; 10] = [
        Self::RepeatedTypes,
        Self::OneWordTypes,
        Self::ParticipleFunctions,
        Self::Returns,
        Self::What,
        Self::Where,
        Self::Tell,
        Self::Stands,
        Self::Whose,
        Self::Nobody,
    ];

    /// Returns the name in the list and in findings.
    fn label(self) -> &'static str {
        match self {
            Self::RepeatedTypes => "repeated-types",
            Self::OneWordTypes => "one-word-types",
            Self::ParticipleFunctions => "participle-functions",
            Self::Returns => "returns",
            Self::What => "what",
            Self::Where => "where",
            Self::Tell => "tell",
            Self::Stands => "stands",
            Self::Whose => "whose",
            Self::Nobody => "nobody",
        }
    }

    fn target(self) -> f64 {
        match self {
            Self::RepeatedTypes => 20.0,
            Self::OneWordTypes => 40.0,
            Self::ParticipleFunctions => 0.5,
            Self::Returns => 30.0,
            Self::What => 2.0,
            Self::Where => 8.0,
            Self::Tell | Self::Stands | Self::Whose | Self::Nobody => 3.0,
        }
    }

    /// Returns whether comments are counted, and not names.
    fn is_of_comments(self) -> bool {
        self >= Self::Returns
    }

    /// Returns whether more is better.
    fn is_least(self) -> bool {
        self == Self::Returns
    }

    /// Returns whether `figure` is no worse than `bound`.
    fn keeps(self, figure: f64, bound: f64) -> bool {
        match self.is_least() {
            true => figure >= bound,
            false => figure <= bound,
        }
    }

    /// Returns the figure in tenths, rounded so that an entry of it is kept.
    fn in_tenths(self, figure: f64) -> f64 {
        match self.is_least() {
            true => (figure * 10.0).floor() / 10.0,
            false => (figure * 10.0).ceil() / 10.0,
        }
    }

    /// Returns whether the entry `bound` is much looser than the reached figure.
    fn is_loose(self, figure: f64, bound: f64) -> bool {
        match self.is_least() {
            true => figure > bound * (1.0 + SLACK) + 1.0,
            false => figure < bound * (1.0 - SLACK) - 1.0,
        }
    }
}

/// Counts of one crate.
#[derive(Debug, Default)]
struct CrateCounts {
    types: BTreeMap<String, usize>,
    functions: usize,
    participles: usize,
    comments: String,
}

impl CrateCounts {
    fn read(&mut self, path: &str, text: &str) {
        for line in text.lines() {
            if let Some(comment) = line.trim_start().strip_prefix("//") {
                let comment = comment.strip_prefix(['/', '!']).unwrap_or(comment);
                self.comments.push_str(&comment.trim().to_lowercase());
                self.comments.push(' ');
            } else if !path.ends_with("tests.rs") {
                self.define(line);
            }
        }
    }

    fn define(&mut self, line: &str) {
        match definition(line) {
            Some(("fn", name)) => {
                self.functions += 1;
                self.participles += usize::from(PARTICIPLES.split(' ').any(|word| word == name));
            }
            Some((_, name)) => *self.types.entry(name.to_owned()).or_default() += 1,
            None => {}
        }
    }

    /// Returns the figures that mean something for a crate of this size.
    fn figures(&self) -> BTreeMap<WordFigure, f64> {
        let mut figures = BTreeMap::new();
        let types: usize = self.types.values().sum();
        if types >= TYPES_MIN {
            let one_word = self.types.iter().filter(|(name, _)| is_one_word(name));
            let one_word: usize = one_word.map(|(_, count)| count).sum();
            let repeated = types - self.types.len();
            figures.insert(WordFigure::RepeatedTypes, percent(repeated, types));
            figures.insert(WordFigure::OneWordTypes, percent(one_word, types));
        }
        // One occurrence is no habit, whatever its share in a small crate.
        if self.participles > 1 {
            let share = percent(self.participles, self.functions);
            figures.insert(WordFigure::ParticipleFunctions, share);
        }
        let (words, counts) = count_words(&self.comments);
        for (figure, count) in counts {
            let is_wanted = figure.is_least();
            if (is_wanted && words >= WORDS_MIN) || (!is_wanted && count > 1) {
                figures.insert(figure, percent(count, words) * 100.0);
            }
        }
        figures
    }
}

/// Checks the figures of every crate against the targets and the list of exceptions.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut crates: BTreeMap<String, CrateCounts> = BTreeMap::new();
    for (path, text) in tree.texts() {
        if let Some(folder) = crate_of(path) {
            crates
                .entry(folder.to_owned())
                .or_default()
                .read(path, text);
        }
    }
    let figures = crates
        .iter()
        .map(|(folder, counts)| (folder.as_str(), counts.figures()));
    compare(&figures.collect(), tree.text(FILE).unwrap_or_default())
}

fn compare(crates: &BTreeMap<&str, BTreeMap<WordFigure, f64>>, list: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut entries = BTreeMap::new();
    for (index, line) in list.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let at = index + 1;
        let Some((folder, figure, bound)) = entry(line) else {
            let wrong = "the line is not an entry";
            findings.push(Finding::new(
                FILE,
                at,
                wrong,
                "write `FOLDER: FIGURE NUMBER`",
            ));
            continue;
        };
        if entries.insert((folder, figure), (at, bound)).is_some() {
            findings.push(Finding::new(FILE, at, "the entry is repeated", "keep one"));
        }
    }
    for (folder, figures) in crates {
        for (figure, reached) in figures {
            let allowed = entries.remove(&(*folder, *figure));
            let bound = allowed.map_or(figure.target(), |(_, bound)| bound);
            let label = figure.label();
            let line = allowed.map_or(1, |(at, _)| at);
            let is_good = figure.keeps(*reached, figure.target());
            let shown = figure.in_tenths(*reached);
            let (wrong, remedy) = if is_good && allowed.is_some() {
                let wrong = format!("{folder} meets the target of {label}: {shown:.1}");
                (wrong, "remove the entry".to_owned())
            } else if !figure.keeps(*reached, bound) {
                let wrong = format!("{folder}: {label} is {shown:.1}, the bound is {bound}");
                (wrong, "rename or reword, see CONTRIBUTING.md".to_owned())
            } else if allowed.is_some() && figure.is_loose(*reached, bound) {
                let wrong = format!("{folder}: {label} is {shown:.1} already");
                (wrong, format!("write `{folder}: {label} {shown:.1}`"))
            } else {
                continue;
            };
            findings.push(Finding::new(FILE, line, wrong, remedy));
        }
    }
    for ((folder, figure), (at, _)) in entries {
        let wrong = format!("{folder} needs no entry of {}", figure.label());
        findings.push(Finding::new(FILE, at, wrong, "remove the entry"));
    }
    findings
}

/// Returns folder, figure and bound of a line `crates/gate: whose 16`.
fn entry(line: &str) -> Option<(&str, WordFigure, f64)> {
    let (folder, rest) = line.split_once(": ")?;
    let (label, bound) = rest.split_once(' ')?;
    let figure = WordFigure::ALL.into_iter().find(|of| of.label() == label)?;
    Some((folder, figure, bound.trim().parse().ok()?))
}

/// Returns the folder of the crate of a Rust file that is not of integration tests.
fn crate_of(path: &str) -> Option<&str> {
    let is_test = |part| ["tests", "test", "it", "benches", "fuzz", "target"].contains(&part);
    if !path.ends_with(".rs") || path.split('/').any(is_test) {
        return None;
    }
    let depth = match path.split('/').next()? {
        "crates" | "tools" => 2,
        "xtask" => 1,
        _ => return None,
    };
    let (end, _) = path.match_indices('/').nth(depth - 1)?;
    path.get(..end)
}

/// Returns keyword and name of the type or function that a line defines.
fn definition(line: &str) -> Option<(&str, &str)> {
    let mut line = line.trim_start();
    if let Some(rest) = line.strip_prefix("pub") {
        let rest = match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => rest,
        };
        line = rest.trim_start();
    }
    for word in ["const ", "async ", "unsafe "] {
        line = line.strip_prefix(word).unwrap_or(line);
    }
    let (keyword, rest) = line.split_once(' ')?;
    let known = ["fn", "struct", "enum", "trait", "union"].contains(&keyword);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = rest.get(..end.unwrap_or(rest.len()))?;
    (known && !name.is_empty()).then_some((keyword, name))
}

fn is_one_word(name: &str) -> bool {
    let capitals = name.chars().filter(|c| c.is_uppercase()).count();
    capitals == 1 && !name.contains('_') && name.len() > 1
}

fn percent(part: usize, whole: usize) -> f64 {
    match whole {
        0 => 0.0,
        _ => 100.0 * part as f64 / whole as f64,
    }
}

/// Returns the number of words, and the occurrences of each counted phrase in lower-case text.
fn count_words(text: &str) -> (usize, BTreeMap<WordFigure, usize>) {
    let of_comments = WordFigure::ALL.into_iter().filter(|of| of.is_of_comments());
    let mut counts: BTreeMap<_, _> = of_comments.map(|of| (of, 0)).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    let mut words = 0;
    let mut before = "";
    let mut begins = true;
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let gap = rest.get(..start).unwrap_or_default();
        rest = rest.get(start..).unwrap_or_default();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        rest = rest.get(end..).unwrap_or_default();
        let is_next = gap == " ";
        let figure = match word {
            "return" | "returns" => Some(WordFigure::Returns),
            "tell" | "tells" | "told" => Some(WordFigure::Tell),
            "stand" | "stands" => Some(WordFigure::Stands),
            "whose" => Some(WordFigure::Whose),
            "nobody" => Some(WordFigure::Nobody),
            _ if before == "where" && is_next && AFTER_WHERE.contains(&word) => {
                Some(WordFigure::Where)
            }
            _ if before == "what" && begins && is_next && AFTER_WHAT.contains(&word) => {
                Some(WordFigure::What)
            }
            _ => None,
        };
        if let Some(count) = figure.and_then(|figure| counts.get_mut(&figure)) {
            *count += 1;
        }
        begins = words == 0 || gap.ends_with(". ") || gap.ends_with(": ");
        before = word;
        words += 1;
    }
    (words, counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(text: &str) -> BTreeMap<WordFigure, f64> {
        let mut counts = CrateCounts::default();
        counts.read("crates/a/src/lib.rs", text);
        counts.figures()
    }

    #[test]
    fn phrases_of_comments_are_counted_and_code_is_not() {
        let text = [
            "/// What is left. What the rest has.",
            "//! Somewhat: what it is.",
            "let whose = told;",
            "// Returns a name, whose end stands",
            "// where it is told, where one is. Nobody tells.",
        ];
        let mut counts = CrateCounts::default();
        counts.read("crates/a/src/lib.rs", &text.join("\n"));
        let (words, counts) = count_words(&counts.comments);
        assert_eq!(words, 26);
        let of = |figure| counts.get(&figure).copied();
        assert_eq!(of(WordFigure::What), Some(3));
        assert_eq!(of(WordFigure::Where), Some(2));
        assert_eq!(of(WordFigure::Tell), Some(2));
        assert_eq!(of(WordFigure::Returns), Some(1));
        assert_eq!(of(WordFigure::Stands), Some(1));
        assert_eq!(of(WordFigure::Whose), Some(1));
        assert_eq!(of(WordFigure::Nobody), Some(1));
    }

    #[test]
    fn names_are_counted_by_their_definitions() {
        let one = "pub(in crate::tidy) struct Told;\nenum Told {\nimpl Told {\n    pub const fn told(\nasync fn taken(\n";
        let found = figures_of(&format!("{one}{}", "trait TwoWords {\n".repeat(8)));
        assert_eq!(found.get(&WordFigure::OneWordTypes), Some(&20.0));
        assert_eq!(found.get(&WordFigure::RepeatedTypes), Some(&80.0));
        assert_eq!(found.get(&WordFigure::ParticipleFunctions), Some(&100.0));
        assert_eq!(figures_of("struct Told;\n"), BTreeMap::new());
    }

    #[test]
    fn integration_tests_belong_to_no_crate() {
        assert_eq!(crate_of("crates/gate/src/a.rs"), Some("crates/gate"));
        assert_eq!(crate_of("xtask/src/a.rs"), Some("xtask"));
        assert_eq!(crate_of("crates/gate/tests/it/a.rs"), None);
        assert_eq!(crate_of("fuzz/targets/a.rs"), None);
        assert_eq!(crate_of("crates/gate/src/a.toml"), None);
    }

    #[test]
    fn the_list_only_shrinks() {
        let faults = |whose: f64, list: &str| -> Vec<String> {
            let figures = BTreeMap::from([(WordFigure::Whose, whose), (WordFigure::Returns, 50.0)]);
            let found = compare(&BTreeMap::from([("crates/a", figures)]), list);
            found.iter().map(ToString::to_string).collect()
        };
        let listed = "# a note\ncrates/a: whose 10\n";
        assert!(faults(2.9, "").is_empty());
        assert!(faults(9.9, listed).is_empty());
        for (whose, list, expect) in [
            (3.1, "", "whose is 3.1, the bound is 3"),
            (10.1, listed, "whose is 10.1, the bound is 10"),
            (2.0, listed, "meets the target"),
            (6.0, listed, "write `crates/a: whose 6.0`"),
            (1.0, "crates/b: whose 10\n", "crates/b needs no entry"),
            (1.0, "crates/a whose 10\n", "not an entry"),
            (9.9, "crates/a: whose 10\ncrates/a: whose 11\n", "repeated"),
        ] {
            let found = faults(whose, list);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(expect), "{found:?}");
        }
    }
}
