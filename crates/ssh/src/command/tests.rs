use gate::facts::Operation;

use super::*;

#[test]
fn quotes_are_read_as_a_shell_reads_them_and_nothing_expands() {
    let cases: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("  ls   -l  ", &["ls", "-l"]),
        ("cat 'a b' \"c d\" e\\ f", &["cat", "a b", "c d", "e f"]),
        ("cat a'b'\"c\"d", &["cat", "abcd"]),
        ("cat '' \"\"", &["cat", "", ""]),
        (
            "cat * ~ $HOME ${x} {a,b} #c !d",
            &["cat", "*", "~", "$HOME", "${x}", "{a,b}", "#c", "!d"],
        ),
        (
            r#"grep "a\"b\\c\$d\`e\n" 'x\y'"#,
            &["grep", "a\"b\\c$d`e\\n", "x\\y"],
        ),
        (
            r"grep \'\;\|\& '$(id)' '`'",
            &["grep", "';|&", "$(id)", "`"],
        ),
        ("grep é→😀", &["grep", "é→😀"]),
    ];
    for (line, words) in cases {
        assert_eq!(Command::read(line).unwrap().argv(), *words, "{line}");
    }
}

#[test]
fn what_only_a_shell_can_do_cannot_be_read() {
    for (line, wrong) in [
        ("", "the command is empty"),
        (
            "hostname\nid",
            "the command has a line end: give one line of printable characters",
        ),
        (
            "cat '\r'",
            "the command has a carriage return: give one line of printable characters",
        ),
        (
            "cat\tx",
            "the command has a tab: give one line of printable characters",
        ),
        (
            "cat \u{1b}[2J",
            "the command has the control character U+001B: give one line of printable characters",
        ),
        (
            "cat \u{85}",
            "the command has the control character U+0085: give one line of printable characters",
        ),
        ("cat 'a", "a quote is not closed"),
        ("cat \\", "the command ends in a \\"),
        (
            "A=b id",
            "the command begins with an assignment: name variables in the argument env",
        ),
        ("'' id", "the program is an empty word"),
        ("-x", "the program begins with a dash"),
        (
            "l* x",
            "the program must be a name or a path of letters, digits and . _ + - /",
        ),
        (
            "ls $(id)",
            "$( would have a shell run another command: nothing is substituted here",
        ),
        (
            "ls \"$(id)\"",
            "$( would have a shell run another command: nothing is substituted here",
        ),
        (
            "ls `id`",
            "` would have a shell run another command: nothing is substituted here",
        ),
    ] {
        assert_eq!(Command::read(line).unwrap_err().wrong, wrong, "{line:?}");
    }
    for letter in "|;&<>()".chars() {
        let wrong = Command::read(&format!("ls {letter} x")).unwrap_err().wrong;
        assert!(
            wrong.starts_with(&format!("{letter} outside of quotes is for a shell")),
            "{wrong}"
        );
    }
    assert!(Command::read(&"a".repeat(COMMAND_CHARS_MAX + 1)).is_err());
    assert!(Command::of(vec!["a".into(); WORDS_MAX + 1]).is_err());
}

#[test]
fn operands_that_are_paths_are_known_also_as_values_of_options() {
    let paths = |line: &str| -> Vec<String> {
        let command = Command::read(line).unwrap();
        let uses = command.uses();
        uses.operands
            .iter()
            .filter(|operand| operand.part == Part::Path)
            .map(|operand| operand.text.to_owned())
            .collect()
    };
    let cases: &[(&str, &[&str])] = &[
        ("ls -l /a b", &["/a", "b"]),
        ("ls -- -l", &["-l"]),
        ("head -n 3 /a", &["/a"]),
        ("head -n3 /a -", &["/a"]),
        ("grep x /a", &["/a"]),
        ("grep -e x /a", &["/a"]),
        ("grep -f /p /a", &["/p", "/a"]),
        ("grep --file=/p /a", &["/p", "/a"]),
        ("grep --fil /p /a", &["/p", "/a"]),
        ("grep -if/p /a", &["/p", "/a"]),
        ("sort -t : -k 2 /a -o /b", &["/a", "/b"]),
        ("sort --comp=/x /a", &["/x", "/a"]),
        ("wc --files0-from=/a", &["/a"]),
        ("ping -c 1 host", &[]),
        // The first operand is a file where an option gives the pattern, wherever that stands.
        ("grep /s -e x", &["/s"]),
        ("grep /s /a --regexp=x", &["/s", "/a"]),
        ("grep -v /s /a -e x", &["/s", "/a"]),
        ("grep /s -- -e", &["-e"]),
        // These take no value, or only one in the same word.
        ("df -T /a", &["/a"]),
        ("lsof -a /a", &["/a"]),
        ("lsof -g /a", &["/a"]),
        ("lsof -i -n /a", &["/a"]),
        ("lsof -F pc /a", &["/a"]),
        ("lsof -i :22", &[]),
        ("lsof -n b -i", &["b"]),
        ("lsblk -M /a", &["/a"]),
        ("lsblk -Tx /a", &["/a"]),
        ("stat --format /x /a", &["/a"]),
        ("head --lines 2 /a", &["/a"]),
        ("frob /a word --out=/b -f/c ~x ./y", &["/a", "/b", "./y"]),
    ];
    for (line, expected) in cases {
        assert_eq!(paths(line), *expected, "{line}");
    }
}

#[test]
fn values_behind_an_operand_are_files_where_options_end_there() {
    let perhaps = |line: &str| -> Vec<String> {
        let command = Command::read(line).unwrap();
        let uses = command.uses();
        let of = uses.operands.iter().filter(|of| of.part == Part::Perhaps);
        let texts = of.map(|of| of.text.to_owned()).collect();
        assert_eq!(Context::default().beside(&uses), texts, "{line}");
        texts
    };
    for (line, expected) in [
        ("tail /a -n .ssh/id", &[".ssh/id"][..]),
        ("grep x /a -e ~/id", &["~/id"]),
        ("sort /a -t .netrc", &[".netrc"]),
        ("docker run library/alpine", &["library/alpine"]),
        ("git log origin/main -f/c", &["origin/main", "/c"]),
        ("sed -n s/a/b/p /a .b", &["s/a/b/p", ".b"]),
        ("cut -d / -f 1 /a", &[]),
        ("tail /a -n 5", &[]),
        ("ping host -c a/b", &[]),
    ] {
        assert_eq!(perhaps(line), expected, "{line}");
    }
}

#[test]
fn commands_that_go_into_directories_are_known() {
    let is_below = |line: &str| Command::read(line).unwrap().uses().is_below;
    for line in [
        "ls -R /a",
        "ls -lR /a",
        "ls --recursive /a",
        "ls --rec /a",
        "ls -L /a",
        "grep -r x /a",
        "grep -inR x /a",
        "grep -d rec x /a",
        "grep --directories=recurse x /a",
        "du /a",
        "du -h -d 2 /a",
        "du -d 1 -d 5 /a",
        "du --max-depth=3 /a",
        "du -sL /a",
        "du --exclude -s /a",
        "du --time-style -s /a",
        "lsof +D/a",
        "find /a",
        "tar cf - /a",
        "chmod -R 0 /a",
        "diff -qr /a /b",
        "/usr/bin/find /a",
    ] {
        assert!(is_below(line), "{line}");
    }
    for line in [
        "ls -l /a",
        "grep x /a",
        "du -sh /a",
        "du -d1 /a",
        "du --max-depth 0 /a",
        "du --summarize /a",
        "cat /a",
        "sort -r /a",
        "frob /a",
    ] {
        assert!(!is_below(line), "{line}");
    }
}

#[test]
fn what_a_command_does_is_told_by_its_options_too() {
    for (line, operation) in [
        ("sort /a", Operation::Read),
        ("sort -no /b /a", Operation::Write),
        ("sort --outp=/b /a", Operation::Write),
        ("uniq /a", Operation::Read),
        ("uniq /a /b", Operation::Write),
        ("uniq -c /a", Operation::Read),
        ("uniq /a -c", Operation::Write),
        ("file -C", Operation::Write),
        ("systemctl status x", Operation::Read),
        ("systemctl restart x", Operation::Write),
        ("frob", Operation::Unknown),
        ("rm -rf /", Operation::Unknown),
    ] {
        assert_eq!(
            Command::read(line).unwrap().uses().operation,
            operation,
            "{line}"
        );
    }
}

#[test]
fn words_are_written_so_that_they_are_read_back() {
    for (words, line) in [
        (&["ls", "-l"][..], "'ls' '-l'"),
        (&["a b", ""], "'a b' ''"),
        (&["it's"], r"'it'\''s'"),
        (&["!\\"], r"\!\\"),
        (&["a!b"], r"'a'\!'b'"),
        (&["~x", "=y", "%z", "*"], "'~x' '=y' '%z' '*'"),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(quoted(&words).unwrap(), line);
    }
    assert_eq!(quoted(&["a\nb".into()]), Err(QuoteFault::Character));
    assert_eq!(quoted(&["a".repeat(200_000)]), Err(QuoteFault::TooLong));
}
