//! The questions of `durward init`. An answer that cannot be used is asked for again.

use std::io::Write;

use super::words;
use super::{First, Reached, name_of};
use crate::classes::Lines;

/// Most answers that are listened to: whoever gives none that can be used will not.
const ANSWERS_MAX: usize = 20;

/// Asks for the first server; `None` where there is to be none yet.
///
/// # Errors
/// A message, where the input ends or nothing usable comes.
pub fn first(
    name: Option<&str>,
    lines: &mut Lines<'_>,
    out: &mut dyn Write,
) -> Result<Option<First>, String> {
    let mut left = ANSWERS_MAX;
    let reached = loop {
        let line = ask(
            "command or URL of the first MCP server (empty: none yet)",
            lines,
            out,
            &mut left,
        )?;
        match read(&line) {
            Ok(reached) => break reached,
            Err(why) => complain(why, out),
        }
    };
    let Some(reached) = reached else {
        return Ok(None);
    };
    if let Some(name) = name {
        let name = name.to_owned();
        return Ok(Some(First { name, reached }));
    }
    let default = name_of(&reached);
    loop {
        let question = format!("its name in rules and in the journal (empty: {default})");
        let line = ask(&question, lines, out, &mut left)?;
        let given = line.trim();
        let given = if given.is_empty() { &default } else { given };
        match crate::names::server_name(given) {
            Ok(name) => return Ok(Some(First { name, reached })),
            Err(why) => complain(&why, out),
        }
    }
}

fn read(line: &str) -> Result<Option<Reached>, &'static str> {
    let words = words::split(line)?;
    match words.as_slice() {
        [] => Ok(None),
        [url] if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(Some(Reached::Url(url.clone())))
        }
        [program, ..] if program.trim().is_empty() => Err("the command begins with an empty word"),
        _ => Ok(Some(Reached::Command(words))),
    }
}

fn ask(
    question: &str,
    lines: &mut Lines<'_>,
    out: &mut dyn Write,
    left: &mut usize,
) -> Result<String, String> {
    *left = left
        .checked_sub(1)
        .ok_or("no valid answer was given; nothing was written")?;
    // Where the question cannot be shown, the answer will not come either.
    let _ = write!(out, "{question}: ");
    let _ = out.flush();
    match lines() {
        Some(Ok(line)) => Ok(line),
        Some(Err(error)) => Err(format!(
            "the answer cannot be read: {error}; nothing was written"
        )),
        None => Err("the input ended; nothing was written".into()),
    }
}

fn complain(why: &str, out: &mut dyn Write) {
    let _ = writeln!(out, "  {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(name: Option<&str>, answers: &[&str]) -> (Result<Option<First>, String>, String) {
        let mut answers = answers.iter().map(|answer| Ok((*answer).to_owned()));
        let mut out = Vec::new();
        let first = first(name, &mut || answers.next(), &mut out);
        (first, String::from_utf8(out).unwrap())
    }

    #[test]
    fn answers_become_a_server() {
        let (first, said) = dialog(None, &["npx -y '@a/server files'", ""]);
        let first = first.unwrap().unwrap();
        assert_eq!(first.name, "server-files");
        let words = ["npx", "-y", "@a/server files"].map(str::to_owned).to_vec();
        assert_eq!(first.reached, Reached::Command(words));
        assert!(said.contains("(empty: server-files)"), "{said}");
        let (first, _) = dialog(Some("docs"), &["https://h/mcp"]);
        assert_eq!(
            first.unwrap().unwrap().reached,
            Reached::Url("https://h/mcp".into())
        );
        assert_eq!(dialog(None, &["  "]).0, Ok(None));
    }

    #[test]
    fn wrong_answers_are_asked_for_again() {
        let (first, said) = dialog(None, &["sh 'open", "sh", "a__b", "my server", "files"]);
        assert_eq!(first.unwrap().unwrap().name, "files");
        assert!(said.contains("a quote (') is not closed"), "{said}");
        assert_eq!(said.matches("a server's name has").count(), 2, "{said}");
    }

    #[test]
    fn an_input_that_ends_or_never_helps_writes_nothing() {
        assert_eq!(
            dialog(None, &[]).0.unwrap_err(),
            "the input ended; nothing was written"
        );
        assert!(dialog(None, &["sh"]).0.is_err());
        let wrong = vec!["'"; ANSWERS_MAX + 1];
        assert_eq!(
            dialog(None, &wrong).0.unwrap_err(),
            "no valid answer was given; nothing was written"
        );
    }
}
