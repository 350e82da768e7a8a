//! Any line as a command: no panic, and what a login shell reads of the quoted words is what was judged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssh::command::Command;

/// The words of a line, as every shell reads quotes and backslashes; nothing else has a meaning in what we write.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut letters) = (Vec::new(), None::<String>, line.chars());
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().push(letters.next().unwrap()),
            '\'' => {
                let quoted: String = letters.by_ref().take_while(|c| *c != '\'').collect();
                // fish reads a backslash there, and tcsh an exclamation mark.
                assert!(!quoted.contains(['\\', '!']));
                word.get_or_insert_default().push_str(&quoted);
            }
            letter => {
                assert!(
                    letter.is_ascii_alphanumeric() || "_./:@+,-".contains(letter),
                    "{letter:?} in {line:?}"
                );
                word.get_or_insert_default().push(letter);
            }
        }
    }
    words.extend(word);
    words
}

fuzz_target!(|text: &str| {
    let Ok(command) = Command::read(text) else {
        return;
    };
    assert!(!command.argv().is_empty());
    for operand in command.uses().operands {
        let is_there = |word: &String| word.contains(operand.text);
        assert!(command.argv().iter().any(is_there), "{}", operand.text);
    }
    if let Ok(line) = command.quoted() {
        assert!(!line.contains(['\n', '\r', '\0']));
        assert_eq!(words(&line), command.argv());
    }
});
