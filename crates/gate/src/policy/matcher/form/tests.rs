use super::*;

/// Forms, and what matches and does not match them; words are split at blanks, `_` is an empty word.
#[test]
fn commands_are_held_against_forms_as_a_whole() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "hostname",
            &["hostname"],
            &["hostname x", "hostname -f", "Hostname", "hostnam"],
        ),
        (
            "sort {-n -r -k=WORD --reverse --key=WORD --color=WORD? -NUM} [PATH...]",
            &[
                "sort",
                "sort -nr",
                "sort -k2 /a",
                "sort -nk 2 /a /b",
                "sort /a -n",
                "sort --key=1",
                "sort --key 1 /x",
                "sort --color /x",
                "sort --color=no",
                "sort -5",
                "sort -- -n",
                "sort -",
            ],
            &[
                "sort -o /x",
                "sort -no/x",
                "sort --output=/x",
                "sort --rev",
                "sort --reverse=x",
                "sort -k",
                "sort --key",
                "sort $HOME",
                "sort a;b",
                "sort _",
                "sort --key=a|b",
                "sort -n5",
                "sort --compress-program=x",
            ],
        ),
        (
            "ip [-4|-6] [-j] link|addr show|list [IF]",
            &[
                "ip link show",
                "ip -4 -j addr list eth0",
                "ip -j addr show veth@if2",
            ],
            &[
                "ip -j -4 addr show",
                "ip link set eth0 down",
                "ip link",
                "ip link show -j",
                "ip link show eth0 x",
                "ip -n link show",
            ],
        ),
        (
            "ping -c 1..5 HOST",
            &["ping -c 5 a.example", "ping -c 1 ::1"],
            &[
                "ping -c 6 a",
                "ping -c5 a",
                "ping -c 1 -f",
                "ping -c +1 a",
                "ping -c 0 a",
            ],
        ),
        (
            "grep {-i -e=TEXT} TEXT [PATH...]",
            &["grep a|b /x", "grep _", "grep -e -x y"],
            &["grep", "grep -x y", "grep -i"],
        ),
        (
            "tc [-j|-s] qdisc|class show [dev IF]",
            &["tc qdisc show", "tc -s class show dev lo"],
            &["tc qdisc show dev", "tc qdisc show lo"],
        ),
    ];
    for (form, fits, others) in cases {
        let form = Form::read(form).unwrap();
        let read = |line: &str| -> Vec<String> {
            line.split(' ')
                .map(|word| if word == "_" { "" } else { word }.to_owned())
                .collect()
        };
        for (lines, expected) in [(fits, true), (others, false)] {
            for line in *lines {
                let words = read(line);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                assert_eq!(form.fits(&words), expected, "{line} against {form:?}");
            }
        }
    }
}

#[test]
fn a_form_that_cannot_be_read_says_why() {
    for (form, wrong) in [
        ("", "it must begin with the program's name"),
        ("WORD", "it must begin with the program's name"),
        ("[a] b", "it must begin with the program's name"),
        (
            "a PATHS",
            "PATHS is not one of WORD, PATH, TEXT, NAME, HOST, IF and NUM",
        ),
        (
            "a PATH... b",
            "only its last argument may be followed by ...",
        ),
        (
            "a [PATH...] b",
            "only its last argument may be followed by ...",
        ),
        ("a [b", "a [ is not closed"),
        ("a ]", "] closes nothing"),
        ("a {-b", "a { is not closed"),
        ("a {-b} {-c}", "it has more than one {set of options}"),
        (
            "a {b}",
            "\"b\" is not an option: write -a, -n=NUM, --all or --lines=NUM",
        ),
        (
            "a {-bc}",
            "\"-bc\" is not an option: write -a, -n=NUM, --all or --lines=NUM",
        ),
        ("a []", "[] is empty"),
    ] {
        assert_eq!(
            Form::read(form).unwrap_err(),
            FormError(wrong.into()),
            "{form}"
        );
    }
    assert!(Form::read(&format!("a {}", "b".repeat(FORM_BYTES_MAX))).is_err());
    assert!(Form::read(&format!("a{}", " [b]".repeat(GROUPS_MAX + 1))).is_err());
}
