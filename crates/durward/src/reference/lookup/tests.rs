use clap::CommandFactory as _;

use super::*;
use crate::help::{GROUPS, HELP};

fn help(words: &[&str]) -> (u8, String, String) {
    let args = HelpArgs {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, Path::new("/nowhere/durward"), &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

#[test]
fn every_command_is_in_one_group() {
    let line = Cli::command();
    let mut grouped: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let mut shown: Vec<&str> = line
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(Command::get_name)
        .collect();
    grouped.sort_unstable();
    shown.sort_unstable();
    assert_eq!(grouped, shown);
}

#[test]
fn commands_and_pages_are_printed() {
    let (code, out, _) = help(&[]);
    assert_eq!(code, 0);
    for part in [
        "Guard your servers:\n  wrap ",
        "Answer:\n",
        "Options:\n",
        "Examples:\n",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    for (words, part) in [
        (&["run"][..], "Usage: durward run "),
        (&["policy", "test"], "Usage: durward policy test "),
        (&["policy"], "# Policy\n"),
        (&["config"], "# Keys"),
        (&["reasons"], "# Reasons\n"),
        (&["events"], "# "),
        (&["glossary"], "# Glossary\n"),
        (&["cookbook"], "# "),
    ] {
        let (code, out, err) = help(words);
        assert_eq!(code, 0, "{words:?}: {err}");
        assert!(out.contains(part), "{words:?}: {out}");
    }
    for topic in TOPICS {
        let line = format!("\n  {} ", topic.name);
        assert!(HELP.contains(&line), "{} is not listed", topic.name);
    }
}

#[test]
fn unknown_words_are_answered_with_the_nearest() {
    for (words, part) in [
        (
            &["polcy"][..],
            "no page \"polcy\"\n  hint: did you mean \"policy\"?",
        ),
        (&["glosary"], "did you mean \"glossary\"?"),
        (
            &["policy", "tset"],
            "no command \"tset\"\n  hint: did you mean \"test\"?",
        ),
        (&["zzzzzzzz"], "`durward help` lists the commands"),
        (&["run", "x\u{1b}y"], "\"x\\u{1b}y\""),
    ] {
        let (code, out, err) = help(words);
        assert_eq!((code, out.as_str()), (EXIT_UNKNOWN, ""));
        assert!(err.contains(part), "{words:?}: {err}");
    }
}
