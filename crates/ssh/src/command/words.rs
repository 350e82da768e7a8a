//! From a line to its words.

use super::CommandFault;

/// Longest line, in characters.
pub const COMMAND_CHARS_MAX: usize = 1_024;
/// Most words of a command.
pub const WORDS_MAX: usize = 512;
/// Longest name of a program, in characters.
const PROGRAM_CHARS_MAX: usize = 256;

/// Characters that make a shell do more than run one program, where no quote has them.
const OF_SHELLS: &str = "|;&<>()`";

#[derive(Clone, Copy, PartialEq)]
enum In {
    Blank,
    Word,
    Single,
    Double,
}

/// Splits a line into words.
pub(super) fn read(line: &str) -> Result<Vec<String>, CommandFault> {
    if line.chars().count() > COMMAND_CHARS_MAX {
        return Err(CommandFault::new(format!(
            "the command is longer than {COMMAND_CHARS_MAX} characters"
        )));
    }
    check_characters(line)?;
    let mut words = Vec::new();
    let mut word = String::new();
    let mut state = In::Blank;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        state = match (state, letter) {
            (In::Single, '\'') | (In::Double, '"') => In::Word,
            (In::Single, _) => push(&mut word, letter, In::Single),
            (In::Double, '\\') => match letters.next_if(|next| "\"\\$`".contains(*next)) {
                Some(escaped) => push(&mut word, escaped, In::Double),
                None => push(&mut word, letter, In::Double),
            },
            (In::Double, '`') => return Err(substitution("`")),
            (In::Double | In::Blank | In::Word, '$') if letters.peek() == Some(&'(') => {
                return Err(substitution("$("));
            }
            (In::Double, _) => push(&mut word, letter, In::Double),
            (In::Blank, ' ') => In::Blank,
            (In::Word, ' ') => {
                words.push(std::mem::take(&mut word));
                In::Blank
            }
            (In::Blank | In::Word, '\'') => In::Single,
            (In::Blank | In::Word, '"') => In::Double,
            (In::Blank | In::Word, '\\') => match letters.next() {
                Some(escaped) => push(&mut word, escaped, In::Word),
                None => return Err(CommandFault::new("the command ends in a \\")),
            },
            (In::Blank | In::Word, '`') => return Err(substitution("`")),
            (In::Blank | In::Word, _) if OF_SHELLS.contains(letter) => {
                return Err(CommandFault::new(format!(
                    "{letter} outside of quotes is for a shell, and none runs here: give one program and its words, and quote what is data"
                )));
            }
            (In::Blank | In::Word, _) => push(&mut word, letter, In::Word),
        };
    }
    match state {
        In::Single | In::Double => Err(CommandFault::new("a quote is not closed")),
        In::Word => {
            words.push(word);
            Ok(words)
        }
        In::Blank => Ok(words),
    }
}

fn push(word: &mut String, letter: char, state: In) -> In {
    word.push(letter);
    state
}

fn substitution(what: &str) -> CommandFault {
    CommandFault::new(format!(
        "{what} would have a shell run another command: nothing is substituted here"
    ))
}

/// Control characters stand in no word, quoted or not.
pub(super) fn check_characters(word: &str) -> Result<(), CommandFault> {
    match word.chars().find(|letter| letter.is_control()) {
        None => Ok(()),
        Some(letter) => {
            let name = match letter {
                '\n' => "a line end".to_owned(),
                '\r' => "a carriage return".to_owned(),
                '\t' => "a tab".to_owned(),
                other => format!("the control character U+{:04X}", u32::from(other)),
            };
            Err(CommandFault::new(format!(
                "the command has {name}: give one line of printable characters"
            )))
        }
    }
}

/// A program is a name or a path that no shell reads as anything else: no assignment, no glob, no option.
pub(super) fn check_program(program: &str) -> Result<(), CommandFault> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._+-/".contains(letter);
    let wrong = if program.is_empty() {
        "the program is an empty word"
    } else if program.contains('=') {
        "the command begins with an assignment: name variables in the argument env"
    } else if program.starts_with('-') {
        "the program begins with a dash"
    } else if !program.chars().all(fits) {
        "the program must be a name or a path of letters, digits and . _ + - /"
    } else if program.chars().count() > PROGRAM_CHARS_MAX {
        return Err(CommandFault::new(format!(
            "the program is longer than {PROGRAM_CHARS_MAX} characters"
        )));
    } else {
        return Ok(());
    };
    Err(CommandFault::new(wrong))
}
