//! Generated lines that hide an option, a file or a variable among words that look harmless: behind `--`, in a cluster
//! of short options, as an abbreviation, as `@file`, or in front of the program.

use gate::effect::Effect;
use gate::policy::Policy;
use ssh::command::Command;
use ssh::rules;

use crate::random::Random;

/// Lines of one run.
const LINES: usize = 3_000;

/// Commands that the shipped rules allow, each with options that have to stay refused beside them. One that ends in `=`
/// takes a value.
const OPTIONS: &[(&str, &[&str])] = &[
    (
        "sort /etc/hosts",
        &[
            "-o=",
            "-T=",
            "--output=",
            "--compress-program=",
            "--files0-from=",
            "--random-source=",
        ],
    ),
    ("file /etc/hosts", &["-f=", "-m=", "-C", "--files-from="]),
    ("wc /etc/hosts", &["--files0-from="]),
    (
        "grep a /etc/hosts",
        &["-f=", "-r", "--file=", "--exclude-from=", "--recursive"],
    ),
    ("du -s /etc", &["-X=", "--files0-from=", "--exclude-from="]),
    ("date", &["-s=", "-f=", "-r=", "--set="]),
    ("hostname", &["-F=", "--file="]),
    ("ss", &["-K", "-D=", "-F=", "--kill"]),
    ("sysctl net.ipv4.ip_forward", &["-w", "-p="]),
    ("nft list ruleset", &["-f="]),
    ("ping -c 1 localhost", &["-f", "-I="]),
    ("systemctl status ssh", &["-H=", "-M="]),
    ("dig localhost", &["-f=", "-k="]),
];

/// Short options of these programs that may stand before another one in one word.
const BEFORE: &[(&str, &str)] = &[
    ("sort", "-runbs"),
    ("file", "-bhL"),
    ("grep", "-inovw"),
    ("du", "-achs"),
    ("date", "-uR"),
    ("ss", "-tuln"),
];

/// Options that are allowed and take a value, so that `--` behind them ends nothing.
const VALUES: &[(&str, &str, &str)] = &[
    ("grep", "-e", "-f"),
    ("sort", "-k", "-o"),
    ("sort", "-t", "-o"),
    ("du", "-d", "-X"),
];

/// Programs that run another one; none of them is known to the rules.
const RUNNERS: &[&str] = &[
    "env", "nice", "nohup", "setsid", "exec", "command", "builtin", "timeout", "xargs", "stdbuf",
    "busybox", "chroot", "doas", "eval", "time",
];

/// Variables that are set where a word is read as an assignment.
const VARIABLES: &[&str] = &["LD_PRELOAD", "PATH", "IFS", "BASH_ENV", "A", "_"];

/// Files that are named in what is hidden.
const FILES: &[&str] = &[
    "/etc/shadow",
    "/tmp/x",
    "/etc/passwd",
    "x",
    "../x",
    "-",
    "/home/me/.ssh/id_ed25519",
];

/// Programs that read words from a file that is named behind `@`.
const READERS: &[&str] = &[
    "dig @",
    "curl -d @",
    "curl --data-binary @",
    "gcc @",
    "javac @",
    "wget --post-file @",
];

/// What a line has to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    /// It is no command at all.
    NoCommand,
    /// A rule refuses it.
    Refused,
    /// All that stands behind `--` is an operand.
    Operands,
}

impl Random {
    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// A word as somebody may write it: bare, in quotes, escaped, or in several ways at once.
    fn spelled(&mut self, word: &str) -> String {
        let letters: Vec<char> = word.chars().collect();
        let cut = self.below(letters.len() + 1);
        let (before, after) = letters.split_at(cut);
        if before.is_empty() || self.below(3) > 0 {
            return self.spelled_once(&letters);
        }
        self.spelled_once(before) + &self.spelled_once(after)
    }

    fn spelled_once(&mut self, letters: &[char]) -> String {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_./=@".contains(*letter);
        let text: String = letters.iter().collect();
        match self.below(4) {
            0 if letters.iter().all(is_plain) && !text.is_empty() => text,
            1 if !text.is_empty() => letters.iter().map(|letter| format!("\\{letter}")).collect(),
            2 => format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")),
            _ => format!("'{}'", text.replace('\'', r"'\''")),
        }
    }

    /// Words as a line.
    fn joined(&mut self, words: &[String]) -> String {
        let mut line = String::new();
        for word in words {
            if !line.is_empty() {
                line.push_str(&" ".repeat(1 + self.below(2)));
            }
            line.push_str(&self.spelled(word));
        }
        line
    }

    /// Some way to give an option to this program.
    fn option(&mut self, program: &str, option: &str) -> Vec<String> {
        let value = self.one(FILES);
        let Some(name) = option.strip_suffix('=') else {
            return vec![self.clustered(program, option)];
        };
        if name.starts_with("--") {
            // As short as it can be told apart from others.
            let least = name.len().min(6);
            let name = &name[..least + self.below(name.len() - least + 1)];
            return match self.below(2) {
                0 => vec![format!("{name}={value}")],
                _ => vec![name.to_owned(), value.to_owned()],
            };
        }
        let name = self.clustered(program, name);
        match self.below(2) {
            0 => vec![format!("{name}{value}")],
            _ => vec![name, value.to_owned()],
        }
    }

    /// A short option, alone or behind others in its word.
    fn clustered(&mut self, program: &str, option: &str) -> String {
        let others = BEFORE.iter().find(|(known, _)| *known == program);
        match others {
            Some((_, others)) if !option.starts_with("--") && self.below(2) == 0 => {
                let many = 2 + self.below(others.len() - 1);
                format!("{}{}", &others[..many], &option[1..])
            }
            _ => option.to_owned(),
        }
    }

    /// A line that hides something.
    pub fn smuggled(&mut self) -> String {
        let (words, _) = self.hidden();
        self.joined(&words)
    }

    /// Words that hide something, and what they have to become.
    fn hidden(&mut self) -> (Vec<String>, Meant) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (harmless, options) = OPTIONS[self.below(OPTIONS.len())];
        let option = self.one(options);
        let harmless: Vec<String> = harmless.split(' ').map(str::to_owned).collect();
        let program = harmless[0].as_str();
        let file = self.one(FILES);
        let looks: Vec<String> = owned(&["cat", "/etc/hosts"]);
        match self.below(7) {
            0 | 1 => {
                // Options are read behind operands, too.
                let at = 1 + self.below(harmless.len());
                let mut words = harmless.clone();
                words.splice(at..at, self.option(program, option));
                (words, Meant::Refused)
            }
            2 => {
                let (program, takes, then) = VALUES[self.below(VALUES.len())];
                (owned(&[program, takes, "--", then, file]), Meant::Refused)
            }
            3 => {
                let reader = self.one(READERS);
                let mut words: Vec<String> = reader.split(' ').map(str::to_owned).collect();
                words.last_mut().unwrap().push_str(file);
                (words, Meant::Refused)
            }
            4 => {
                let set = format!("{}={file}", self.one(VARIABLES));
                let mut words = match self.below(3) {
                    0 => vec![set],
                    1 => vec!["sudo".to_owned(), set],
                    _ => vec!["sudo".to_owned(), "-E".to_owned()],
                };
                words.extend(looks);
                (words, Meant::NoCommand)
            }
            5 => {
                let mut words: Vec<String> = owned(&[self.one(RUNNERS)]);
                if self.below(2) == 0 {
                    words.push(format!("{}={file}", self.one(VARIABLES)));
                }
                words.extend(looks);
                (words, Meant::Refused)
            }
            _ => {
                let mut words: Vec<String> = owned(&[program, "--"]);
                words.extend(self.option(program, option));
                words.extend(owned(&["--", "-o", file]));
                (words, Meant::Operands)
            }
        }
    }
}

#[test]
fn what_is_hidden_among_words_is_refused_by_a_rule() {
    let policy = Policy::load(&rules::policy(), None, &[]).unwrap();
    for (harmless, _) in OPTIONS {
        let judgement = policy.judge(&rules::facts(harmless, None).unwrap());
        // Refused is what is beside it, and not itself.
        assert_eq!(judgement.verdict().effect, Effect::Allow, "{harmless}");
    }
    let (seed, mut random) = Random::fresh();
    for _ in 0..LINES {
        let (words, meant) = random.hidden();
        let line = random.joined(&words);
        let about = format!("seed {seed}: {line}");
        let command = match (Command::read(&line), meant) {
            (Err(fault), Meant::NoCommand) => {
                assert!(!fault.wrong.is_empty(), "{about}");
                continue;
            }
            (command, Meant::NoCommand) => panic!("{about}: {command:?}"),
            (command, _) => command.unwrap_or_else(|fault| panic!("{about}: {fault}")),
        };
        assert_eq!(command.argv(), words, "{about}");
        if meant == Meant::Operands {
            // None of them is an option: each is an operand, in its place.
            let uses = command.uses();
            let told: Vec<(usize, &str)> = uses.operands.iter().map(|o| (o.word, o.text)).collect();
            let own: Vec<(usize, &str)> = words
                .iter()
                .enumerate()
                .skip(2)
                .map(|(at, word)| (at, word.as_str()))
                .collect();
            assert_eq!(told, own, "{about}");
        }
        let facts = rules::facts(&line, None).unwrap_or_else(|fault| panic!("{about}: {fault}"));
        let judgement = policy.judge(&facts);
        let verdict = judgement.verdict();
        assert!(!verdict.final_rule.is_empty(), "{about}");
        if meant == Meant::Refused {
            assert_eq!(
                verdict.effect,
                Effect::Deny,
                "{about}: {}",
                verdict.final_rule
            );
        }
    }
}
