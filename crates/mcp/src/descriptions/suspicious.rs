//! Phrases that a description has no honest use for. They are flagged, never taken out: a reader
//! decides, and a rewritten sentence would hide what the server tried.
//!
//! Texts are compared word by word, so that case, punctuation and blanks do not matter; words with
//! letters beyond ASCII are compared by what they look like.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use gate::names::skeleton;

/// What is suspicious: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Tells the model to put aside what it was told before.
    InstructionOverride,
    /// Tells the model to be somebody else.
    RoleAssumption,
    /// Speaks of the system prompt, or imitates its markup.
    SystemPrompt,
    /// Tells the model to keep something from the user.
    Concealment,
    /// Tells the model how to use other tools.
    ToolSteering,
    /// Asks for keys, configuration or the conversation.
    DataCollection,
    /// A long run of encoded text.
    EncodedBlob,
}

impl Suspicion {
    /// All, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::InstructionOverride,
        Self::RoleAssumption,
        Self::SystemPrompt,
        Self::Concealment,
        Self::ToolSteering,
        Self::DataCollection,
        Self::EncodedBlob,
    ];

    /// The word used in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::InstructionOverride => "instruction_override",
            Self::RoleAssumption => "role_assumption",
            Self::SystemPrompt => "system_prompt",
            Self::Concealment => "concealment",
            Self::ToolSteering => "tool_steering",
            Self::DataCollection => "data_collection",
            Self::EncodedBlob => "encoded_blob",
        }
    }
}

/// One phrase: its words in order, alternatives separated by `|`, and how many other words may
/// stand before each of them (the first excepted).
struct Phrase {
    suspicion: Suspicion,
    words: &'static [(usize, &'static str)],
}

const fn phrase(suspicion: Suspicion, words: &'static [(usize, &'static str)]) -> Phrase {
    Phrase { suspicion, words }
}

const PUT_ASIDE: &str =
    "ignore|disregard|forget|override|overrides|bypass|discard|supersede|supersedes";
const TOLD: &str = "instruction|instructions|rule|rules|prompt|prompts|guideline|guidelines|directive|directives|constraint|constraints|restrictions|safeguards";
const USER: &str = "user|users|human|person|operator|owner";
const TELL: &str = "tell|telling|mention|mentioning|reveal|revealing|inform|informing|notify|notifying|alert|alerting|disclose|disclosing|warn|warning";
const NOT: &str = "not|never|dont|without|avoid";
const CALL: &str = "call|invoke|use|run|using|calling|invoking|running";
const TOOL: &str = "tool|tools|function|functions";
const TAKE: &str =
    "read|pass|send|include|copy|forward|append|upload|attach|post|provide|insert|leak";

use Suspicion::{
    Concealment, DataCollection, InstructionOverride, RoleAssumption, SystemPrompt, ToolSteering,
};

const PHRASES: &[Phrase] = &[
    phrase(
        InstructionOverride,
        &[
            (0, PUT_ASIDE),
            (
                2,
                "previous|prior|above|all|earlier|preceding|your|other|any|these|those|existing|safety",
            ),
            (2, TOLD),
        ],
    ),
    phrase(
        InstructionOverride,
        &[
            (0, "not|dont|never|stop"),
            (0, "follow|obey|following|obeying"),
            (2, "previous|prior|above|earlier|your|other|system"),
            (2, TOLD),
        ],
    ),
    phrase(
        InstructionOverride,
        &[
            (0, "new|real|actual|updated|true"),
            (0, "instructions|directives"),
            (1, "for|are|from|follow"),
            (1, "you|the|below|now|system|administrator"),
        ],
    ),
    phrase(
        InstructionOverride,
        &[
            (0, PUT_ASIDE),
            (1, "everything"),
            (2, "above|before|previously|earlier|told|said"),
        ],
    ),
    phrase(
        RoleAssumption,
        &[
            (0, "you"),
            (0, "are"),
            (0, "now|henceforth"),
            (0, "a|an|the|my|acting|no|in|dan|free"),
        ],
    ),
    phrase(
        RoleAssumption,
        &[
            (0, "pretend|pretending|imagine"),
            (1, "to|that|you|youre"),
            (0, "be|you|are|youre"),
        ],
    ),
    phrase(
        RoleAssumption,
        &[
            (0, "act|behave|respond|answer|operate"),
            (0, "as|like"),
            (
                3,
                "admin|administrator|root|unrestricted|jailbroken|dan|superuser|uncensored",
            ),
        ],
    ),
    phrase(
        RoleAssumption,
        &[
            (0, "assume|adopt|take|play"),
            (1, "the|a"),
            (1, "role|persona|identity"),
            (0, "of|as"),
        ],
    ),
    phrase(
        RoleAssumption,
        &[
            (0, "from"),
            (0, "now"),
            (0, "on"),
            (1, "you|your|always|act|respond"),
        ],
    ),
    phrase(
        RoleAssumption,
        &[
            (0, "developer|god|dan|jailbreak|unrestricted|maintenance"),
            (0, "mode"),
            (1, "enabled|activated|active|on"),
        ],
    ),
    phrase(
        SystemPrompt,
        &[
            (0, "system|developer|hidden|initial"),
            (0, "prompt|prompts"),
        ],
    ),
    phrase(
        SystemPrompt,
        &[(0, "system"), (0, "instructions|directive|override")],
    ),
    phrase(Concealment, &[(0, NOT), (2, TELL), (2, USER)]),
    phrase(
        Concealment,
        &[
            (0, NOT),
            (1, TELL),
            (
                1,
                "this|it|that|these|them|anyone|anybody|anything|about|any",
            ),
        ],
    ),
    phrase(
        Concealment,
        &[
            (0, NOT),
            (1, "show|display|explain|let"),
            (3, "to|the"),
            (1, USER),
        ],
    ),
    phrase(
        Concealment,
        &[
            (0, "without"),
            (2, USER),
            (
                1,
                "knowing|noticing|knowledge|consent|awareness|approval|confirmation",
            ),
        ],
    ),
    phrase(
        Concealment,
        &[
            (0, "without"),
            (1, "asking|consulting|prompting"),
            (2, "user|human|permission|confirmation|approval"),
        ],
    ),
    phrase(
        Concealment,
        &[(0, "hide|conceal|keep|hidden"), (4, "from"), (1, USER)],
    ),
    phrase(
        Concealment,
        &[
            (0, "keep|keeping|remain|stay"),
            (2, "secret|confidential|quiet|hidden"),
        ],
    ),
    phrase(
        Concealment,
        &[
            (0, USER),
            (1, "must|should|may|need|needs|does|will"),
            (0, "not|never|nt"),
            (1, "know|see|be|notice|learn|need"),
        ],
    ),
    phrase(
        Concealment,
        &[
            (0, "silently|secretly|quietly|covertly|discreetly"),
            (
                1,
                "send|call|read|copy|forward|upload|execute|run|append|pass|post|include|exfiltrate|add|transmit",
            ),
        ],
    ),
    phrase(
        ToolSteering,
        &[
            (0, "before|prior|after|instead|whenever"),
            (2, "any|all|every|each|another|other"),
            (2, "tool|tools|request|requests|action|actions"),
        ],
    ),
    phrase(
        ToolSteering,
        &[
            (0, "rather"),
            (0, "than"),
            (1, "any|all|every|other|the"),
            (2, TOOL),
        ],
    ),
    phrase(
        ToolSteering,
        &[(0, NOT), (1, CALL), (1, "other|any|another|the"), (1, TOOL)],
    ),
    phrase(
        ToolSteering,
        &[
            (0, "must|always|shall|required|mandatory|important"),
            (2, CALL),
            (3, "first|before|prior"),
        ],
    ),
    phrase(
        ToolSteering,
        &[
            (0, "when|whenever|if|after|once"),
            (3, "tool|tools"),
            (3, "is|are|was|gets"),
            (0, "used|called|invoked|available|executed"),
            (6, "must|always|also|first|instead|bcc|add|set|change"),
        ],
    ),
    phrase(
        ToolSteering,
        &[
            (0, "takes|take|has|have"),
            (0, "precedence|priority"),
            (0, "over"),
            (2, "all|any|other|every|previous"),
        ],
    ),
    phrase(
        ToolSteering,
        &[
            (0, "all|every|any|other"),
            (1, TOOL),
            (1, "are|is|were"),
            (1, "deprecated|broken|disabled|unsafe|forbidden|obsolete"),
        ],
    ),
    phrase(
        DataCollection,
        &[(0, TAKE), (8, "id"), (0, "rsa|ed25519|ecdsa")],
    ),
    phrase(
        DataCollection,
        &[
            (0, TAKE),
            (6, "ssh"),
            (1, "key|keys|config|directory|folder|authorized"),
        ],
    ),
    phrase(
        DataCollection,
        &[
            (0, TAKE),
            (5, "conversation|chat|message"),
            (0, "history|log|transcript"),
        ],
    ),
    phrase(
        DataCollection,
        &[
            (0, TAKE),
            (6, "cursor|claude|vscode"),
            (2, "mcp|config"),
            (1, "json"),
        ],
    ),
    phrase(
        DataCollection,
        &[
            (0, TAKE),
            (3, "all|any|every|users|their|your"),
            (2, "api|access|secret|environment|private|session"),
            (
                0,
                "key|keys|token|tokens|secrets|variables|credentials|cookies",
            ),
        ],
    ),
];

/// Markup by which prompts of known models mark who speaks.
const MARKUP: [&str; 12] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|assistant|>",
    "<|endoftext|>",
    "<<sys>>",
    "[inst]",
    "<system>",
    "</system>",
    "<important>",
    "<secret>",
    "### instruction",
];

/// Shortest run of base64 or hexadecimal digits that is flagged, in characters.
const BLOB_CHARS_MIN: usize = 80;
/// Fewest escapes of the kind `\x41` or `%41` in a row that are flagged.
const ESCAPES_MIN: usize = 12;
/// Longest text that is looked through, in bytes; what stands behind it is not.
pub const TEXT_BYTES_MAX: usize = 256 * 1_024;

/// What is suspicious about a text, each once, in the order of [`Suspicion::ALL`].
#[must_use]
pub fn find(text: &str) -> Vec<Suspicion> {
    let text = text
        .get(..text.floor_char_boundary(TEXT_BYTES_MAX))
        .unwrap_or(text);
    let words = words(text);
    let by_first = by_first_word();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let phrases = by_first.get(word.as_ref()).map_or(&[][..], Vec::as_slice);
        for phrase in phrases {
            if !found.contains(&phrase.suspicion) && continues(&words, at + 1, phrase.words) {
                found.push(phrase.suspicion);
            }
        }
    }
    if has_markup(text) {
        found.push(SystemPrompt);
    }
    if has_blob(text) {
        found.push(Suspicion::EncodedBlob);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Words in lower case, apostrophes dropped; those with other letters by their looks.
fn words(text: &str) -> Vec<Cow<'_, str>> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '\u{2019}'))
        .filter(|word| !word.is_empty())
        .map(|word| {
            if word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            {
                return Cow::Borrowed(word);
            }
            let plain: String = word
                .to_lowercase()
                .chars()
                .filter(|c| !matches!(c, '\'' | '\u{2019}'))
                .collect();
            Cow::Owned(if plain.is_ascii() {
                plain
            } else {
                skeleton(&plain)
            })
        })
        .collect()
}

/// The phrases by each of the words that they may begin with, as it is and by its looks.
fn by_first_word() -> &'static HashMap<String, Vec<&'static Phrase>> {
    static INDEX: OnceLock<HashMap<String, Vec<&'static Phrase>>> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index: HashMap<String, Vec<&'static Phrase>> = HashMap::new();
        for phrase in PHRASES {
            let first = phrase.words.first().map_or("", |(_, words)| words);
            for word in first.split('|') {
                let looks = skeleton(word);
                if looks != word {
                    index.entry(looks).or_default().push(phrase);
                }
                index.entry(word.to_owned()).or_default().push(phrase);
            }
        }
        index
    })
}

/// Whether a phrase whose first word has been met goes on at `next`. A step takes the nearest word
/// that fits.
fn continues(words: &[Cow<'_, str>], mut next: usize, steps: &[(usize, &str)]) -> bool {
    let rest = steps.get(1..).unwrap_or_default();
    rest.iter().all(|(gap, alternatives)| {
        let found = words
            .iter()
            .enumerate()
            .skip(next)
            .take(gap + 1)
            .find(|(_, word)| is_one_of(word, alternatives));
        found.is_some_and(|(at, _)| {
            next = at + 1;
            true
        })
    })
}

fn is_one_of(word: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|known| {
        // The skeleton of an `m` is `rn`: a word that came as a skeleton is met by one.
        known == word
            || (known.contains(['m', 'w']) && word.contains("rn") && skeleton(known) == word)
    })
}

fn has_markup(text: &str) -> bool {
    if !text.contains(['<', '[', '#']) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    MARKUP.iter().any(|mark| lower.contains(mark))
}

fn has_blob(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-');
    let runs = text.split(|c: char| !is_digit(c));
    runs.filter(|run| run.len() >= BLOB_CHARS_MIN).any(|run| {
        let count = |test: fn(&char) -> bool| run.chars().filter(test).count();
        let digits = count(char::is_ascii_digit);
        let mixed = digits > 0
            && count(char::is_ascii_uppercase) > 0
            && count(char::is_ascii_lowercase) > 0;
        let separators = count(|c| matches!(c, '/' | '-' | '_' | '+' | '='));
        let hexadecimal = digits > 0 && run.chars().all(|c| c.is_ascii_hexdigit());
        hexadecimal || (mixed && separators * 12 < run.len())
    }) || longest_escapes(text) >= ESCAPES_MIN
}

/// The most escapes in a row: `\x41`, `\u0041` or `%41`.
fn longest_escapes(text: &str) -> usize {
    let (mut longest, mut row) = (0, 0);
    let mut rest = text.as_bytes();
    while let Some(first) = rest.first() {
        let hex = |from: usize, len: usize| {
            rest.get(from..from + len)
                .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
        };
        let len = match (first, rest.get(1)) {
            (b'%', _) if hex(1, 2) => 3,
            (b'\\', Some(b'x')) if hex(2, 2) => 4,
            (b'\\', Some(b'u')) if hex(2, 4) => 6,
            _ => 0,
        };
        row = if len > 0 { row + 1 } else { 0 };
        longest = longest.max(row);
        rest = rest.get(len.max(1)..).unwrap_or_default();
    }
    longest
}
