//! What a program receives is what was judged, behind every login shell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use ssh::command::Command;

use crate::random::Random;
use crate::target::{Client, Target, folder, has, is_root, keygen};

const SHELLS: [&str; 5] = ["bash", "dash", "zsh", "fish", "tcsh"];
/// Start-up files that change how a shell reads quotes, patterns and blanks, where it has such options.
const OPTIONS: [(&str, &str, &str); 4] = [
    (
        "bash",
        ".bashrc",
        "set -H -f -o posix; shopt -s extglob nullglob failglob globstar xpg_echo expand_aliases\nIFS=a-; alias words='echo '; export LC_ALL=C\n",
    ),
    (
        "zsh",
        ".zshenv",
        "setopt RC_QUOTES CSH_JUNKIE_QUOTES SH_WORD_SPLIT GLOB_SUBST BRACE_CCL EXTENDED_GLOB KSH_GLOB BANG_HIST MAGIC_EQUAL_SUBST INTERACTIVE_COMMENTS\nalias -g a=b Z='| cat' -- -=x\n",
    ),
    (
        "fish",
        ".config/fish/config.fish",
        "set -g fish_features all; set -gx LC_ALL C\n",
    ),
    (
        "tcsh",
        ".cshrc",
        "set backslash_quote noglob; setenv LC_ALL C\n",
    ),
];
/// Stands between the lines of the corpus that go in one command.
const APART: &str = "=apart=";

/// A program that prints its words, each with a NUL behind it; its other stream and its exit code say how many they are.
fn helper(target: &Target) -> String {
    let path = target.folder.join("words");
    fs::write(
        &path,
        "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\nprintf '%d\\377' $# >&2\nexit $(($# % 100))\n",
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// The words that the helper got from this line.
async fn received(client: &Client, session: &str, line: &str) -> Vec<String> {
    let said = client.run(session, line).await.unwrap();
    let data = &said["structuredContent"];
    let bytes = |stream: &str| {
        let text = data[stream].as_str().unwrap();
        match data[format!("{stream}_encoding")].as_str() {
            Some("base64") => base64(text),
            _ => text.as_bytes().to_vec(),
        }
    };
    let text = String::from_utf8(bytes("stdout")).unwrap();
    let mut words: Vec<String> = text.split('\0').map(str::to_owned).collect();
    assert_eq!(words.pop().as_deref(), Some(""));
    let count = words.len();
    assert_eq!(data["exit_code"], json!(count % 100), "{line}: {said}");
    let counted = [count.to_string().as_bytes(), &[0xff]].concat();
    assert_eq!(bytes("stderr"), counted, "{line}: {said}");
    words
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

impl Random {
    /// A line that can be read, of letters that shells love.
    fn line(&mut self) -> String {
        const LETTERS: &[&str] = &[
            "a",
            "Z",
            "0",
            " ",
            "'",
            "\"",
            "\\",
            "!",
            "$",
            "`",
            "*",
            "?",
            "[",
            "]",
            "{",
            "}",
            "~",
            "#",
            "%",
            "^",
            "&",
            "|",
            ";",
            "<",
            ">",
            "(",
            ")",
            "=",
            "-",
            ",",
            ".",
            "/",
            ":",
            "@",
            "+",
            "_",
            "é",
            "ß",
            "→",
            "😀",
            "$HOME",
            "!!",
            "$(",
            "${x}",
            "~root",
            "=ls",
            "\\n",
            "&&",
            "$'a'",
            "$\"a\"",
            "{a,b}",
            "{1..3}",
            "<(a)",
            ">&2",
            "<<a",
            "$((1+1))",
            "[[",
            "]]",
            "^a^b",
            "!$",
            "%1",
            "~+",
            "~-",
            "=(a)",
            "(#q)",
            "-n",
            "--",
            "#a",
            "\\",
            "\\'",
            "\\!",
            // Blanks, quotes and marks of direction that are none for a shell.
            "\u{a0}",
            "\u{2003}",
            "\u{3000}",
            "\u{2028}",
            "\u{200b}",
            "\u{feff}",
            "\u{2019}",
            "\u{ff07}",
            "\u{202e}",
            "e\u{301}",
            "\u{ff5c}",
            // fish has meanings of its own for some that nobody uses.
            "\u{fdd0}",
            "\u{fdd4}",
            "\u{fdde}",
            "\u{f600}",
            "\u{f65c}",
            "\u{f6ff}",
            "\u{10ffff}",
        ];
        let mut line = String::new();
        for _ in 0..1 + self.below(6) {
            line.push(' ');
            for _ in 0..self.below(8) {
                line.push_str(LETTERS[self.below(LETTERS.len())]);
            }
        }
        line
    }

    /// Words, each written in quotes of one kind or the other.
    fn quoted(&mut self) -> String {
        let mut line = String::new();
        for word in self.line().split(' ') {
            line.push(' ');
            if self.below(2) == 0 {
                line.push_str(&format!("'{}'", word.replace('\'', r"'\''")));
            } else {
                let escaped = word
                    .replace('\\', r"\\")
                    .replace('"', "\\\"")
                    .replace('$', r"\$")
                    .replace('`', r"\`");
                line.push_str(&format!("\"{escaped}\""));
            }
        }
        line
    }
}

/// Lines of the corpus in few commands, then lines that this run made.
fn lines(helper: &str, seed: u64) -> Vec<String> {
    let corpus = include_str!("../corpus/allowed.txt");
    let mut lines = Vec::new();
    let mut line = helper.to_owned();
    for next in corpus
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        if line.chars().count() + next.chars().count() + APART.len() + 2 > 1_000 {
            lines.push(std::mem::replace(&mut line, helper.to_owned()));
        }
        line.push_str(&format!(" {APART} {next}"));
    }
    lines.push(line);
    let mut random = Random(seed);
    while lines.len() < 60 {
        let made = match random.below(3) {
            0 => random.line(),
            1 => random.quoted(),
            // Options behind `--`, `@file` and assignments are words like others.
            _ => random.smuggled(),
        };
        let made = format!("{helper} {made}");
        if Command::read(&made).is_ok() {
            lines.push(made);
        }
    }
    lines
}

#[tokio::test]
async fn every_login_shell_gives_exactly_the_words_that_were_judged() {
    if !has("sshd") {
        return;
    }
    let (seed, _) = Random::fresh();
    for shell in SHELLS {
        if !has(shell) {
            continue;
        }
        let target = Target::with_shell(shell);
        let client = free(&target);
        let session = client.connect("free").await;
        if is_root() {
            let said = client.run(&session, "printenv SHELL").await.unwrap();
            let login = said["structuredContent"]["stdout"].as_str().unwrap();
            assert!(login.trim_end().ends_with(&format!("/{shell}")), "{said}");
        }
        gives_words((&client, &session), &target, shell, seed).await;
    }
    for (shell, name, text) in OPTIONS {
        if !has(shell) || !is_root() {
            continue;
        }
        let target = Target::with_home(shell, (name, text), None);
        let client = free(&target);
        let session = client.connect("free").await;
        gives_words((&client, &session), &target, shell, seed).await;
    }
}

/// A client for which it is another matter whether there are the files that words look like.
fn free(target: &Target) -> Client {
    let free = "  free: { address: 127.0.0.1, port: PORT, credential: me, links: trusted }\n";
    Client::new(target.hosts_as(free), None)
}

/// A program gets the words of generated lines.
async fn gives_words((client, session): (&Client, &str), target: &Target, shell: &str, seed: u64) {
    let helper = helper(target);
    for line in lines(&helper, seed) {
        let judged = Command::read(&line).unwrap();
        let got = received(client, session, &line).await;
        assert_eq!(got, judged.argv()[1..], "{shell}, seed {seed}: {line}");
    }
}

/// Pieces of a line in which a shell finds nothing to expand: quotes, and what stands in them and behind a backslash.
const PIECES: &[&str] = &[
    "a", "Z", "0", " ", "  ", "'", "\"", "\\", "\\\\", "\\'", "\\\"", "''", "\"\"", "'a b'",
    "\"c d\"", "'\\'", "\"\\a\"", "\"\\\\\"", "\"\\$\"", "\"\\`\"", "\"\\!\"", "\"'\"", "'\"'",
    "\\ ", "\\;", "\\#", "x#y", "a=b", "!", "%", "^", ",", ".", "/", ":", "@", "+", "-", "_", "]",
    "é", "\\é", "\u{a0}", "\u{3000}", "\u{2019}", "'|'", "\";\"", "'('",
];

#[test]
fn a_line_is_read_as_bash_and_dash_read_it() {
    let (seed, mut random) = Random::fresh();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..400 {
        let pieces = (0..=random.below(9)).map(|_| PIECES[random.below(PIECES.len())]);
        let line = format!("f {}", pieces.collect::<String>());
        // Nothing is expanded here, and so neither there.
        let script =
            format!("set -f; f() {{ for w; do command printf '%s\\0' \"$w\"; done; }}; {line}");
        let told = ["bash", "dash"].map(|shell| {
            let output = std::process::Command::new(shell)
                .args(["-c", &script])
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let words = text.split_terminator('\0').map(str::to_owned);
            output.status.success().then(|| words.collect::<Vec<_>>())
        });
        let about = format!("seed {seed}: {line}");
        match Command::read(&line) {
            Ok(command) => {
                read += 1;
                for words in told {
                    assert_eq!(words.as_deref(), Some(&command.argv()[1..]), "{about}");
                }
            }
            Err(fault) if fault.wrong.contains("a quote is not closed") => {
                refused += 1;
                assert_eq!(told, [None, None], "{about}");
            }
            Err(_) => {}
        }
    }
    assert!(read > 50 && refused > 5, "seed {seed}: {read}, {refused}");
}

#[test]
fn a_program_is_no_alias_of_a_login_shell() {
    let folder = std::env::temp_dir().join(format!("aliases-{}", Random::fresh().0));
    fs::create_dir_all(&folder).unwrap();
    // These two read aliases for scripts, too.
    fs::write(folder.join(".cshrc"), "alias uname 'echo other'\n").unwrap();
    fs::write(folder.join(".zshenv"), "alias uname='echo other'\n").unwrap();
    let line = Command::read("uname -s").unwrap().quoted().unwrap();
    for shell in SHELLS {
        if !has(shell) {
            continue;
        }
        let said = std::process::Command::new(shell)
            .args(["-c", &line])
            .env("HOME", &folder)
            .env_remove("ZDOTDIR")
            .output()
            .unwrap();
        assert_eq!(said.stdout, b"Linux\n", "{shell}: {line}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_login_shell_that_reads_words_in_another_way_is_given_no_command() {
    if !has("sshd") {
        return;
    }
    // One that splits at blanks and knows no quotes, and one that runs something else.
    for (shell, times) in [
        ("set -f; exec $SSH_ORIGINAL_COMMAND", 2),
        ("exec echo welcome", 1),
    ] {
        let folder = folder();
        let place = folder.display();
        let script = format!("echo \"$SSH_ORIGINAL_COMMAND\" >> {place}/asked; {shell}");
        fs::write(folder.join("shell"), script).unwrap();
        keygen(&folder.join("host"), &[]);
        keygen(&folder.join("user"), &[]);
        let forced = format!("ForceCommand . {place}/shell\n");
        let target = Target::start(folder.clone(), &forced, None);
        target.open_file("asked");
        let free = "  free: { address: 127.0.0.1, port: PORT, credential: me, links: trusted }\n";
        let client = Client::new(target.hosts(free), None);
        let session = client.connect("free").await;
        let wrong = client.run(&session, "uname -s").await.unwrap().to_string();
        assert!(wrong.contains("unknown_login_shell"), "{shell}: {wrong}");
        assert!(wrong.contains("did not run"), "{shell}: {wrong}");
        let asked = fs::read_to_string(target.folder.join("asked")).unwrap();
        let lines: Vec<&str> = asked.lines().collect();
        // With `exec`, and without it where that did not end well.
        let ways = ["exec 'printf' ", "'printf' "];
        assert_eq!(lines.len(), times, "{asked}");
        let is_asked = |(line, way): (&&str, &str)| line.starts_with(way);
        assert!(lines.iter().zip(ways).all(is_asked), "{asked}");
    }
}
