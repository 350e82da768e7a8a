//! Programs that are known: which of their options take a value, which of their words are places in the
//! file system, and what running them does.
//!
//! Nothing is allowed by standing here; a policy does that. An unknown program may do anything. A word of it that
//! begins with `/`, `./` or `../` is a path. One that has a slash further on, or begins with `~` or `.`, may be one:
//! an image, a branch and an expression of `sed` look the same, so it is judged as a path and runs as it is written.

use gate::facts::Operation;

use super::looks::looks;

/// The part that an operand plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A place in the file system that is looked at.
    Path,
    /// It may be a path: judged as one, and left as it is written.
    Perhaps,
    /// Anything else: a name, a number, a pattern.
    Other,
}

/// A word that is neither program nor option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand<'c> {
    /// The word, or its end where the word is an option with its value.
    pub text: &'c str,
    /// Which word of the command's it is, or ends.
    pub word: usize,
    /// Its part.
    pub part: Part,
}

/// What a command does, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uses<'c> {
    /// Its operands, values of options that are paths included.
    pub operands: Vec<Operand<'c>>,
    /// What it does.
    pub operation: Operation,
    /// What it does to the world.
    pub side_effects: &'static [&'static str],
    /// It looks at what lies below its paths, or where links in there lead.
    pub is_below: bool,
}

/// Which word of a command comes first behind its program.
const FIRST: usize = 1;

/// What operands of a program are.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    Paths,
    /// The first is a pattern unless an option gives it; the others are paths.
    PatternAndPaths,
    Others,
}

struct Program {
    name: &'static str,
    operands: Operands,
    /// Short options that take a value.
    short: &'static str,
    /// Short options whose value, where they have one, stands in the same word.
    attached: &'static str,
    /// Short options that take the next word only where it fits.
    loose: &'static str,
    /// Long options that take a value, where it is another word.
    long: &'static [&'static str],
    /// Options whose value is a path.
    paths: &'static [&'static str],
    /// Options by which it changes something.
    changes: &'static [&'static str],
    /// Options by which it goes into directories, or follows the links in there.
    below: &'static [&'static str],
    side_effects: &'static [&'static str],
}

const fn program(
    name: &'static str,
    operands: Operands,
    short: &'static str,
    side_effects: &'static [&'static str],
) -> Program {
    Program {
        name,
        operands,
        short,
        attached: "",
        loose: "",
        long: &[],
        paths: &[],
        changes: &[],
        below: &[],
        side_effects,
    }
}

const FILES: &[&str] = &["fs_read"];
const STATE: &[&str] = &[];
const VARIABLES: &[&str] = &["env_read"];
const NET: &[&str] = &["network_egress"];
const UNKNOWN: &[&str] = &["code_exec", "process_spawn"];
/// The option by which `ip`, `tc` and `bridge` read commands from a file; it may be cut short.
const BATCH: &str = "-batch";
/// Verbs of systemctl that change nothing.
const LOOKS: [&str; 10] = [
    "status",
    "show",
    "cat",
    "is-active",
    "is-enabled",
    "is-failed",
    "list-units",
    "list-unit-files",
    "list-timers",
    "list-dependencies",
];
/// Programs of which no more is known than that they go into directories.
const WALKERS: [&str; 16] = [
    "ag", "fd", "find", "fdfind", "git", "ncdu", "rclone", "restic", "rg", "rgrep", "rsync", "tar",
    "tree", "zip", "7z", "cpio",
];
const WRITES: &[&str] = &["fs_read", "fs_write"];

const PROGRAMS: &[Program] = &[
    Program {
        long: &["--ignore", "--hide", "--tabsize", "--width"],
        below: &["-R", "--recursive", "-L", "--dereference"],
        ..program("ls", Operands::Paths, "ITw", FILES)
    },
    program("cat", Operands::Paths, "", FILES),
    Program {
        long: &["--bytes", "--lines"],
        ..program("head", Operands::Paths, "cn", FILES)
    },
    Program {
        long: &["--bytes", "--lines"],
        ..program("tail", Operands::Paths, "cns", FILES)
    },
    Program {
        long: &["--format", "--printf"],
        ..program("stat", Operands::Paths, "c", FILES)
    },
    Program {
        paths: &["-f", "-m", "--files-from", "--magic-file"],
        long: &[
            "--files-from",
            "--magic-file",
            "--separator",
            "--exclude",
            "--parameter",
        ],
        changes: &["-C", "--compile"],
        ..program("file", Operands::Paths, "efFmP", FILES)
    },
    Program {
        paths: &["--files0-from"],
        long: &["--files0-from"],
        ..program("wc", Operands::Paths, "", FILES)
    },
    Program {
        paths: &[
            "-o",
            "--output",
            "-T",
            "--temporary-directory",
            "--files0-from",
            "--random-source",
            "--compress-program",
        ],
        long: &[
            "--output",
            "--temporary-directory",
            "--files0-from",
            "--random-source",
            "--compress-program",
            "--key",
            "--field-separator",
            "--buffer-size",
            "--parallel",
            "--batch-size",
        ],
        changes: &["-o", "--output", "--compress-program"],
        ..program("sort", Operands::Paths, "koStT", FILES)
    },
    program("uniq", Operands::Paths, "fsw", FILES),
    program("cut", Operands::Paths, "bcdf", FILES),
    Program {
        paths: &["-f", "--file", "--exclude-from"],
        long: &[
            "--file",
            "--regexp",
            "--exclude-from",
            "--max-count",
            "--after-context",
            "--before-context",
            "--context",
            "--include",
            "--exclude",
            "--exclude-dir",
        ],
        below: &["-r", "-R", "--recursive", "--dereference-recursive"],
        ..program("grep", Operands::PatternAndPaths, "efmABCdD", FILES)
    },
    Program {
        paths: &["-X", "--exclude-from", "--files0-from"],
        long: &[
            "--exclude-from",
            "--files0-from",
            "--max-depth",
            "--exclude",
            "--threshold",
            "--block-size",
        ],
        below: &["-L", "--dereference"],
        ..program("du", Operands::Paths, "BdtX", FILES)
    },
    program("df", Operands::Paths, "BFtx", FILES),
    Program {
        loose: "ADFfgiKkLmorSsTxzZ",
        ..program("lsof", Operands::Paths, "cdepu", STATE)
    },
    Program {
        attached: "T",
        paths: &["--sysroot"],
        long: &["--sysroot"],
        ..program("lsblk", Operands::Paths, "EeIowx", STATE)
    },
    Program {
        paths: &["-c", "-w", "--cache-file"],
        long: &["--cache-file"],
        ..program("blkid", Operands::Paths, "cLosStUw", STATE)
    },
    program("systemctl", Operands::Others, "CHMnopPst", STATE),
    program("true", Operands::Others, "", STATE),
    program("ps", Operands::Others, "CGgOopqstUu", STATE),
    Program {
        paths: &["-F", "--file"],
        long: &["--file"],
        ..program("hostname", Operands::Others, "F", STATE)
    },
    program("uname", Operands::Others, "", STATE),
    program("whoami", Operands::Others, "", STATE),
    program("id", Operands::Others, "", STATE),
    Program {
        paths: &["-f", "-r", "--file", "--reference"],
        long: &["--file", "--reference"],
        ..program("date", Operands::Others, "dfrs", STATE)
    },
    program("uptime", Operands::Others, "", STATE),
    program("pwd", Operands::Others, "", STATE),
    program("mount", Operands::Others, "", STATE),
    program("printenv", Operands::Others, "", VARIABLES),
    program("free", Operands::Others, "cs", STATE),
    program("vmstat", Operands::Others, "", STATE),
    program("top", Operands::Others, "dnpouU", STATE),
    program("netstat", Operands::Others, "A", STATE),
    Program {
        paths: &["-D", "-F", "--diag", "--filter"],
        long: &["--diag", "--filter"],
        ..program("ss", Operands::Others, "AfDFN", STATE)
    },
    Program {
        paths: &[BATCH],
        ..program("ip", Operands::Others, "n", STATE)
    },
    program("ethtool", Operands::Others, "", STATE),
    Program {
        paths: &[BATCH],
        ..program("tc", Operands::Others, "", STATE)
    },
    Program {
        paths: &["-f", "-I", "--file", "--includepath"],
        long: &["--file", "--includepath"],
        ..program("nft", Operands::Others, "fI", STATE)
    },
    program("iptables", Operands::Others, "t", STATE),
    program("ip6tables", Operands::Others, "t", STATE),
    Program {
        paths: &[BATCH],
        ..program("bridge", Operands::Others, "", STATE)
    },
    program("conntrack", Operands::Others, "", STATE),
    Program {
        paths: &["-p", "--load"],
        ..program("sysctl", Operands::Others, "p", STATE)
    },
    Program {
        paths: &["-f", "-k"],
        ..program("dig", Operands::Others, "bcfkpqtxy", NET)
    },
    program("nslookup", Operands::Others, "", NET),
    program("host", Operands::Others, "ctmNRW", NET),
    program("ping", Operands::Others, "cCIilMmpQSstTwW", NET),
    program("ping6", Operands::Others, "cCIilMmpQSstTwW", NET),
    program("traceroute", Operands::Others, "fgimNpqstwz", NET),
    program("traceroute6", Operands::Others, "fgimNpqstwz", NET),
    Program {
        paths: &["-F", "--filename"],
        long: &["--filename"],
        ..program("mtr", Operands::Others, "acfimsF", NET)
    },
];

/// The program that runs another one as root.
pub(crate) const SUDO: &str = "sudo";

/// What a command of these words does.
pub(super) fn uses(argv: &[String]) -> Uses<'_> {
    if let Some((SUDO, inner)) = argv.split_first().map(|(name, rest)| (name.as_str(), rest)) {
        // As root it may do more than is known of it.
        let mut uses = Uses {
            operation: Operation::Unknown,
            side_effects: UNKNOWN,
            ..uses(inner)
        };
        for operand in &mut uses.operands {
            operand.word += 1;
        }
        return uses;
    }
    let (name, rest) = match argv.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("", argv),
    };
    match PROGRAMS.iter().find(|known| known.name == name) {
        Some(known) => known.uses(rest),
        None => unknown(name, rest),
    }
}

/// What looks like a path in an unknown program's words, also behind `=`, is or may be one.
fn unknown<'c>(name: &str, words: &'c [String]) -> Uses<'c> {
    let mut operands = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let at = at + FIRST;
        match word.strip_prefix('-') {
            None => operands.push(by_looks(word, at)),
            Some(option) => {
                let value = option.split_once('=');
                let value = value.map(|(_, value)| by_looks(value, at));
                operands.extend(value);
                // `-f/etc/x`
                let attached = option.find('/').and_then(|from| option.get(from..));
                let attached = attached.filter(|_| value.is_none());
                operands.extend(attached.map(|text| Operand {
                    text,
                    word: at,
                    part: Part::Perhaps,
                }));
            }
        }
    }
    Uses {
        operands,
        operation: Operation::Unknown,
        side_effects: UNKNOWN,
        is_below: is_walker(name) || words.iter().any(|word| is_recursive(word)),
    }
}

/// Whether a word may have `ps` tell the environments of processes.
fn tells_environment(word: &str) -> bool {
    word.contains("env") || !word.starts_with('-') && word.contains('e')
}

/// Whether a program goes into directories by itself.
fn is_walker(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    WALKERS.contains(&name)
}

/// Whether an option has most programs go into directories.
fn is_recursive(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => long.starts_with("recurs"),
        None => word.strip_prefix('-').is_some_and(|letters| {
            letters.contains(['r', 'R']) && letters.chars().all(|c| c.is_ascii_alphabetic())
        }),
    }
}

fn by_looks(text: &str, word: usize) -> Operand<'_> {
    let is_path = ["/", "./", "../"]
        .iter()
        .any(|begin| text.starts_with(begin));
    let part = match looks_like_path(text) {
        true if is_path => Part::Path,
        true => Part::Perhaps,
        false => Part::Other,
    };
    Operand { text, word, part }
}

fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.starts_with(['~', '.'])
}

/// Whether a word of a program that takes no files is a path all the same.
fn is_whole(text: &str) -> bool {
    ["/", "~", "./", "../"]
        .iter()
        .any(|begin| text.starts_with(begin))
}

fn path(text: &str, word: usize) -> Operand<'_> {
    Operand {
        text,
        word,
        part: Part::Path,
    }
}

impl Program {
    fn uses<'c>(&self, words: &'c [String]) -> Uses<'c> {
        let is_looking = looks(self.name, words);
        let mut seen = Seen::of(self, words, false);
        if seen.gives_pattern {
            // Then the first operand is a file, also where it stands before that option.
            seen = Seen::of(self, words, true);
        }
        let operands = seen.operands;
        let is_below = seen.is_below
            || self.name == "du" && !seen.is_on_top
            || self.name == "lsof" && operands.iter().any(|of| of.text.starts_with("+D"));
        if is_looking == Some(false) {
            return Uses {
                operands,
                operation: Operation::Unknown,
                side_effects: UNKNOWN,
                is_below,
            };
        }
        // A second file of uniq is written, and where options end at the first operand, what follows is one; of
        // systemctl only some verbs look.
        let by_operands = match self.name {
            "uniq" => operands.len() > 1 || seen.has_late_options,
            "systemctl" => operands
                .first()
                .is_some_and(|verb| !LOOKS.contains(&verb.text)),
            _ => false,
        };
        let changed = seen.is_changed || by_operands;
        let tells_variables = match self.name {
            "systemctl" => {
                matches!(operands.first(), Some(verb) if ["show", "cat"].contains(&verb.text))
            }
            "ps" => words.iter().any(|word| tells_environment(word)),
            _ => false,
        };
        Uses {
            operands,
            operation: if changed {
                Operation::Write
            } else if is_below {
                // What it comes across nobody knows: a name that no rule lets be read may be there.
                Operation::Unknown
            } else {
                Operation::Read
            },
            side_effects: match (changed, tells_variables) {
                (true, _) => WRITES,
                (false, true) => VARIABLES,
                (false, false) => self.side_effects,
            },
            is_below,
        }
    }
}

/// What was seen of a command's words.
struct Seen<'p, 'c> {
    program: &'p Program,
    operands: Vec<Operand<'c>>,
    has_pattern: bool,
    /// An option gives the pattern.
    gives_pattern: bool,
    is_changed: bool,
    is_below: bool,
    has_operand: bool,
    /// Options stand behind an operand: programs that do not look for them there take them for operands.
    has_late_options: bool,
    /// The next word may be the value of an option.
    is_loose: bool,
    /// `du` tells of its operands and of what lies directly in them.
    is_on_top: bool,
}

impl<'p, 'c> Seen<'p, 'c> {
    fn of(program: &'p Program, words: &'c [String], is_pattern_given: bool) -> Self {
        let mut seen = Self {
            program,
            operands: Vec::new(),
            has_pattern: is_pattern_given || program.operands != Operands::PatternAndPaths,
            gives_pattern: false,
            is_changed: false,
            is_below: false,
            has_operand: false,
            has_late_options: false,
            is_loose: false,
            is_on_top: false,
        };
        let words = words.iter().map(String::as_str);
        let mut words = words.enumerate().map(|(at, word)| (at + FIRST, word));
        let takes_batch = program.paths.contains(&BATCH);
        while let Some((at, word)) = words.next() {
            if word == "--" {
                for (at, word) in words {
                    seen.operand(word, at);
                }
                break;
            }
            let is_option = word.len() > 1 && word.starts_with('-');
            seen.has_late_options |= is_option && seen.has_operand;
            seen.is_loose &= !is_option;
            if is_option && word.starts_with("--") {
                seen.long((at, word), &mut words);
            } else if is_option && takes_batch && BATCH.starts_with(word) {
                let value = words.next();
                seen.option(BATCH, value);
            } else if is_option {
                seen.short((at, word), &mut words);
            } else {
                seen.operand(word, at);
            }
        }
        seen
    }

    fn operand(&mut self, text: &'c str, word: usize) {
        self.has_operand = true;
        let is_path = match self.program.operands {
            Operands::Paths if std::mem::take(&mut self.is_loose) => looks_like_path(text),
            Operands::Paths => true,
            Operands::PatternAndPaths => std::mem::replace(&mut self.has_pattern, true),
            Operands::Others => is_whole(text),
        };
        let part = if is_path { Part::Path } else { Part::Other };
        // Standard input is no place.
        let part = if text == "-" { Part::Other } else { part };
        self.operands.push(Operand { text, word, part });
    }

    /// An option as it was given; long ones may be cut short where no other begins so.
    fn option(&mut self, option: &str, value: Option<(usize, &'c str)>) {
        let is_it = |known: &&str| -> bool {
            *known == option
                || option.len() > 2 && option.starts_with("--") && known.starts_with(option)
        };
        self.is_changed |= self.program.changes.iter().any(is_it);
        self.is_below |= self.program.below.iter().any(is_it);
        let gives_pattern = ["-e", "-f", "--regexp", "--file"].iter().any(is_it);
        self.gives_pattern |= gives_pattern;
        self.has_pattern |= gives_pattern;
        self.walk(option, value.map(|(_, value)| value));
        let Some((word, text)) = value else {
            return;
        };
        let takes_files = self.program.operands != Operands::Others;
        if self.program.paths.iter().any(is_it) || !takes_files && is_whole(text) {
            self.operands.push(path(text, word));
        } else if self.has_late_options && takes_files && looks_like_path(text) {
            let part = Part::Perhaps;
            self.operands.push(Operand { text, word, part });
        }
    }

    /// Options that say how deep `grep` and `du` go.
    fn walk(&mut self, option: &str, value: Option<&str>) {
        match (self.program.name, option, value) {
            ("grep", "-d" | "--directories", value) => {
                self.is_below |= value.is_none_or(|value| "recurse".starts_with(value));
            }
            ("du", "-s" | "--summarize", _) => self.is_on_top = true,
            ("du", "-d" | "--max-depth", Some("0" | "1")) => self.is_on_top = true,
            ("du", "-d" | "--max-depth", _) => self.is_below = true,
            // It takes the next word, whatever that looks like.
            ("du", "--time-style", None) => self.is_below = true,
            _ => {}
        }
    }

    fn long(
        &mut self,
        (at, word): (usize, &'c str),
        rest: &mut impl Iterator<Item = (usize, &'c str)>,
    ) {
        match word.split_once('=') {
            Some((option, value)) => self.option(option, Some((at, value))),
            None => {
                let takes = self
                    .program
                    .long
                    .iter()
                    .any(|known| known.starts_with(word));
                let value = if takes { rest.next() } else { None };
                self.option(word, value);
            }
        }
    }

    fn short(
        &mut self,
        (at, word): (usize, &'c str),
        rest: &mut impl Iterator<Item = (usize, &'c str)>,
    ) {
        let program = self.program;
        for (from, letter) in word.char_indices().skip(1) {
            let option = format!("-{letter}");
            let after = word.get(from + letter.len_utf8()..).unwrap_or("");
            let attached = (!after.is_empty()).then_some((at, after));
            if program.short.contains(letter) {
                let value = attached.or_else(|| rest.next());
                return self.option(&option, value);
            }
            if program.attached.contains(letter) || program.loose.contains(letter) {
                self.is_loose = program.loose.contains(letter) && attached.is_none();
                return self.option(&option, attached);
            }
            self.option(&option, None);
            if program.operands == Operands::Others && is_whole(after) {
                self.operands.push(path(after, at));
                return;
            }
        }
    }
}
