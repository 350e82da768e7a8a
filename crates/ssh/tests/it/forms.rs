//! The shipped forms beside what is known of their programs, and beside the programs themselves: whatever a line of a
//! form names as a file is judged as one, and a program touches no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use gate::effect::Effect;
use gate::policy::Policy;
use serde_json::Value;
use ssh::rules;

use crate::random::Random;
use crate::target::{has, program};

/// Lines of each form.
const LINES: usize = 60;
/// Lines of each form that are run.
const RUNS: usize = 6;
/// Files that may be named.
const FILES: usize = 24;
/// Programs that read files or the system, end by themselves and change nothing.
const RUN: [&str; 22] = [
    "ls", "cat", "head", "tail", "grep", "stat", "file", "wc", "sort", "uniq", "cut", "du", "df",
    "ps", "lsof", "lsblk", "hostname", "uname", "id", "date", "free", "ss",
];

/// A line made of a form.
struct Made {
    words: Vec<String>,
    /// Those of them that stand where the form has a path.
    paths: Vec<String>,
}

/// Makes lines of forms, each word that is free to choose another file of a folder.
struct Maker {
    random: Random,
    folder: PathBuf,
    next: usize,
}

impl Maker {
    fn file(&mut self) -> String {
        self.next += 1;
        let name = format!("f{}", self.next % FILES);
        self.folder.join(name).display().to_string()
    }

    /// A word of this kind, or itself.
    fn word(&mut self, kind: &str) -> String {
        match kind {
            "WORD" | "PATH" | "TEXT" | "NAME" => self.file(),
            "NUM" => "1".into(),
            "HOST" => "localhost".into(),
            "IF" => "lo".into(),
            range if range.contains("..") => range.split("..").next().unwrap().to_owned(),
            own => own.to_owned(),
        }
    }

    /// Words of an option of a set, in one of the ways to write it.
    fn option(&mut self, set: &[&str]) -> Vec<String> {
        let option = set[self.random.below(set.len())];
        if option == "-NUM" {
            return vec!["-1".into()];
        }
        let Some((name, kind)) = option.split_once('=') else {
            return vec![option.to_owned()];
        };
        let value = self.word(kind.trim_end_matches('?'));
        let is_long = name.starts_with("--");
        match (kind.ends_with('?'), self.random.below(2)) {
            (true, 0) => vec![name.to_owned()],
            (false, 0) => vec![name.to_owned(), value],
            _ if is_long => vec![format!("{name}={value}")],
            _ => vec![format!("{name}{value}")],
        }
    }

    /// The operands of what a form says behind its program.
    fn operands(&mut self, tokens: &[&str], made: &mut Vec<(String, bool)>) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            if *token == "[" {
                let mut depth = 1;
                let from = at;
                while depth > 0 {
                    depth += match tokens[at] {
                        "[" => 1,
                        "]" => -1,
                        _ => 0,
                    };
                    at += 1;
                }
                if self.random.below(4) > 0 {
                    self.operands(&tokens[from..at - 1], made);
                }
                continue;
            }
            let repeats = token.ends_with("...");
            let kinds: Vec<&str> = token.trim_end_matches("...").split('|').collect();
            for _ in 0..if repeats { 1 + self.random.below(2) } else { 1 } {
                let kind = kinds[self.random.below(kinds.len())];
                let word = self.word(kind);
                made.push((word, kind == "PATH"));
            }
        }
    }

    fn line(&mut self, form: &str) -> Made {
        let (before, rest) = form.split_once('{').unwrap_or((form, ""));
        let (set, after) = rest.split_once('}').unwrap_or(("", rest));
        let set: Vec<&str> = set.split_whitespace().collect();
        let spaced = format!("{before} {after}")
            .replace('[', " [ ")
            .replace(']', " ] ");
        let tokens: Vec<&str> = spaced.split_whitespace().collect();
        let mut operands = Vec::new();
        self.operands(&tokens[1..], &mut operands);
        let paths = operands.iter().filter(|(_, is_path)| *is_path);
        let paths = paths.map(|(word, _)| word.clone()).collect();
        // A name of several stands for one of them.
        let name = tokens[0].split('|').next().unwrap().to_owned();
        let mut groups: Vec<Vec<String>> =
            operands.into_iter().map(|(word, _)| vec![word]).collect();
        if !set.is_empty() {
            for _ in 0..self.random.below(4) {
                let at = self.random.below(groups.len() + 1);
                let option = self.option(&set);
                groups.insert(at, option);
            }
        }
        let words = [name].into_iter().chain(groups.into_iter().flatten());
        Made {
            words: words.collect(),
            paths,
        }
    }
}

/// Every form of a rule that allows.
fn forms() -> Vec<String> {
    let policy: Value = serde_json::from_str(&rules::policy()).unwrap();
    let rules = policy["rules"].as_array().unwrap();
    let allow = rules.iter().filter(|rule| rule["effect"] == "allow");
    let forms = allow.flat_map(|rule| rule["conditions"]["argv"].as_array().into_iter().flatten());
    let forms: BTreeSet<&str> = forms.filter_map(Value::as_str).collect();
    assert!(forms.len() > 40, "{}", forms.len());
    forms.into_iter().map(str::to_owned).collect()
}

fn written(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{word}'"));
    quoted
        .collect::<Vec<_>>()
        .join(" ")
        .replacen(&format!("'{}'", words[0]), &words[0], 1)
}

/// What is judged as a place of this line, where it is allowed.
fn judged(policy: &Policy, line: &str) -> Option<BTreeSet<String>> {
    let facts = rules::facts(line, None).unwrap_or_else(|fault| panic!("{line}: {fault}"));
    if policy.judge(&facts).verdict().effect != Effect::Allow {
        return None;
    }
    let places = facts.paths.known().into_iter().flatten();
    Some(
        places
            .flat_map(|path| path.meaning.places.clone())
            .collect(),
    )
}

#[test]
fn what_a_form_has_for_a_path_is_judged_as_one() {
    let policy = Policy::load(&rules::policy(), None, &[]).unwrap();
    let (seed, random) = Random::fresh();
    let folder = PathBuf::from("/tmp/forms");
    let mut maker = Maker {
        random,
        folder,
        next: 0,
    };
    for form in forms() {
        let mut allowed = 0;
        for _ in 0..LINES {
            let made = maker.line(&form);
            let line = written(&made.words);
            let Some(places) = judged(&policy, &line) else {
                continue;
            };
            allowed += 1;
            let missing: Vec<_> = made
                .paths
                .iter()
                .filter(|path| !places.contains(*path))
                .collect();
            assert!(
                missing.is_empty(),
                "seed {seed}: {line} ({form}): {missing:?} not in {places:?}"
            );
        }
        // A path is no name of a setting below net, of a variable, and none of what nft lists.
        let takes_none = ["sysctl", "nft", "printenv"];
        let takes_none = takes_none.iter().any(|name| form.starts_with(name));
        assert!(
            allowed > 0 || takes_none,
            "seed {seed}: no line of {form} is allowed"
        );
    }
}

/// Files of the folder that a traced program has named to the kernel.
fn touched(trace: &Path, folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(trace).unwrap();
    let folder = folder.display().to_string();
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| !line.contains("execve(")) {
        for (at, _) in line.match_indices(&folder) {
            let end = line[at..].find('"').unwrap();
            found.insert(line[at..at + end].trim_end_matches('/').to_owned());
        }
    }
    found
}

#[test]
fn a_program_touches_no_file_that_was_not_judged() {
    if !has("strace") {
        return;
    }
    let policy = Policy::load(&rules::policy(), None, &[]).unwrap();
    let (seed, random) = Random::fresh();
    let folder = std::env::temp_dir().join(format!("forms-{seed}"));
    fs::create_dir_all(&folder).unwrap();
    let mut maker = Maker {
        random,
        folder: folder.clone(),
        next: 0,
    };
    for number in 0..FILES {
        fs::write(folder.join(format!("f{number}")), "1 a\n").unwrap();
    }
    let trace = folder.join("trace");
    let mut runs = 0;
    for form in forms() {
        let name = form.split([' ', '|']).next().unwrap();
        if !RUN.contains(&name) || program(name).is_none() {
            continue;
        }
        for _ in 0..RUNS {
            let made = maker.line(&form);
            let line = written(&made.words);
            let follows =
                |word: &String| word.starts_with('-') && (word.contains("follow") || word == "-f");
            let is_endless = name == "tail" && made.words.iter().any(follows);
            let Some(places) = judged(&policy, &line).filter(|_| !is_endless) else {
                continue;
            };
            runs += 1;
            // Where options end at the first operand, they are operands themselves.
            for ends in [false, true] {
                let mut process = Process::new("strace");
                process
                    .args(["-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o"])
                    .arg(&trace);
                process.args(["timeout", "10"]).args(&made.words);
                process
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                if ends {
                    process.env("POSIXLY_CORRECT", "1");
                }
                process.status().unwrap();
                // Programs look at the directories on the way to a file.
                let own = [&trace, &folder].map(|path| path.display().to_string());
                let own = BTreeSet::from(own);
                let found = &touched(&trace, &folder) - &own;
                let wrong: Vec<_> = found.difference(&places).collect();
                assert!(
                    wrong.is_empty(),
                    "seed {seed}, options end early: {ends}: {line} touched {wrong:?}"
                );
            }
        }
    }
    assert!(runs > 50, "seed {seed}: only {runs} ran");
    fs::remove_dir_all(&folder).unwrap();
}
