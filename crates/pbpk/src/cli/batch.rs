//! `sim batch`: many commands in one go, several at a time.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use clap::{Args as _, FromArgMatches as _};

use super::args::{Args, BatchArgs, Command};
use super::failure::CommandFailure;
use super::{OK, model};

/// Most commands in a file.
const COMMANDS_MAX: usize = 100_000;
/// Most commands at a time.
const THREADS_MAX: usize = 256;

/// A command of the file.
struct BatchItem {
    line: usize,
    text: String,
    args: Args,
}

/// Result of a command.
struct FinishedCommand {
    code: u8,
    out: Vec<u8>,
    err: Vec<u8>,
}

pub(super) fn run(
    args: &BatchArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let name = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|e| CommandFailure::failure(format!("cannot read {name}: {e}")))?;
    let threads = model::threads(args.threads)?.min(THREADS_MAX);
    // All lines are read before the first is carried out.
    let items = items(&text).map_err(|(line, why)| {
        CommandFailure::misuse(format!("{name}, line {line}: {why}"))
            .with_hint("write one command a line, as after 'durward sim'")
    })?;
    let mut failed = 0;
    let mut show = |item: &BatchItem, done: &FinishedCommand| -> Result<(), CommandFailure> {
        failed += usize::from(done.code != OK);
        let how = if done.code == OK { "done" } else { "failed" };
        writeln!(err, "line {}: {how}: {}", item.line, item.text)?;
        err.write_all(&done.err)?;
        Ok(out.write_all(&done.out)?)
    };
    let next = AtomicUsize::new(0);
    let (tell, told) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            let (tell, next, items) = (tell.clone(), &next, &items);
            scope.spawn(move || {
                while let Some((at, item)) = take_next(items, next) {
                    // The receiver is gone if the output could not be written.
                    if tell.send((at, carried_out(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        // Results are printed in the order of the file.
        let (mut ready, mut shown) = (BTreeMap::new(), 0);
        for (at, done) in told {
            ready.insert(at, done);
            while let (Some(done), Some(item)) = (ready.remove(&shown), items.get(shown)) {
                show(item, &done)?;
                shown += 1;
            }
        }
        Ok::<(), CommandFailure>(())
    })?;
    if failed > 0 {
        let message = format!("{failed} of {} commands failed", items.len());
        return Err(CommandFailure::failure(message));
    }
    Ok(())
}

/// Returns the next command that no thread has taken.
fn take_next<'a>(items: &'a [BatchItem], next: &AtomicUsize) -> Option<(usize, &'a BatchItem)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, items.get(at)?))
}

fn carried_out(item: &BatchItem) -> FinishedCommand {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = super::carry_out(&item.args, &mut out, &mut err);
    FinishedCommand { code, out, err }
}

/// Returns the commands of a text, or the line that is none and why. Empty lines and those that begin with `#` are left
/// out.
fn items(text: &str) -> Result<Vec<BatchItem>, (usize, String)> {
    let mut items = Vec::new();
    for (i, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if items.len() >= COMMANDS_MAX {
            return Err((i + 1, format!("more than {COMMANDS_MAX} commands")));
        }
        let args = words(text)
            .and_then(parse_words)
            .map_err(|why| (i + 1, why))?;
        items.push(BatchItem {
            line: i + 1,
            text: text.to_owned(),
            args,
        });
    }
    if items.is_empty() {
        return Err((1, "there is no command".to_owned()));
    }
    Ok(items)
}

/// Words as a command line reads them: blanks part them, quotes keep them together.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(q) if q == c => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(q) => Err(format!("the quote {q} is not closed")),
        None => Ok(words),
    }
}

/// Reads the words of a command, as after `durward sim`.
pub(super) fn parse_words(words: Vec<String>) -> Result<Args, String> {
    let command = Args::augment_args(clap::Command::new("sim").no_binary_name(true));
    // The first line says what is wrong; the rest is about how the program is called.
    let short = |e: clap::Error| {
        let text = e.to_string();
        let first = text.lines().find(|l| !l.trim().is_empty());
        first
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned()
    };
    let matches = command.try_get_matches_from(words).map_err(short)?;
    let args = Args::from_arg_matches(&matches).map_err(short)?;
    match args.command {
        Command::Batch(_) => Err("a batch holds no batches".to_owned()),
        _ => Ok(args),
    }
}

#[cfg(test)]
mod tests {
    use super::{items, words};

    #[test]
    fn words_are_parted_by_blanks_outside_quotes() {
        let found = words("run  'a b.pkml' --output \"**|x y\"z ''").unwrap_or_default();
        assert_eq!(found, ["run", "a b.pkml", "--output", "**|x yz", ""]);
        assert!(words("run 'a").is_err_and(|e| e.contains("not closed")));
    }

    #[test]
    fn a_line_that_is_no_command_is_named() {
        let wrong = |text: &str| items(text).err().unwrap_or_default();
        assert_eq!(wrong("# nothing\n\n").1, "there is no command");
        assert_eq!(wrong("info a.xml\nfly a.xml\n").0, 2);
        assert_eq!(wrong("run\n").0, 1);
        assert_eq!(
            wrong("batch x\n"),
            (1, "a batch holds no batches".to_owned())
        );
        assert_eq!(
            items("info a.xml\n# b\n  diff a.xml b.xml\n")
                .map(|i| i.len())
                .ok(),
            Some(2)
        );
    }
}
