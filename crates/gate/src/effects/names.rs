//! What the words of a tool's name say of its effects. A name only makes a class worse: whoever writes a server
//! chooses its names.

use super::OperationSet;
use super::shipped::{ShippedTool, shipped};
use crate::memo::Memo;
use crate::words::words;

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NameEffects {
    /// Row of the shipped table.
    pub shipped: Option<ShippedTool>,
    /// Operations that its words name; reading is never among them.
    pub operations: OperationSet,
    /// One of its words stands for more than reading, or for what is not read lightly: a secret, a browser, a query.
    pub is_delicate: bool,
    /// It names what no proposal calls a read.
    pub is_guarded: bool,
    /// It reads as a verb that reads and the thing that is read, whatever verb that thing is also called by.
    pub is_reading_phrase: bool,
    /// It is a verb that searches and does not say what is searched.
    pub is_bare_search: bool,
    /// What is at the call's paths is elsewhere afterwards.
    pub moves: bool,
    /// It writes what its arguments do not name: beside a path that they name, or wherever its server keeps its files.
    pub writes_beside: bool,
}

/// Longest name that is read, in bytes; a longer one says nothing.
const NAME_BYTES_MAX: usize = 256;

/// What a word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Write,
    /// Writes what its arguments do not name.
    Beside,
    /// Moves what it names.
    Move,
    Delete,
    Execute,
    Send,
    /// A noun that may stand for more than reading.
    Delicate,
    /// What is not read lightly, or lies beyond this machine: a secret, a screen, a page of the web.
    Guarded,
}

/// The words, by what they say.
const WORDS: [(Says, &[&str]); 8] = [
    (
        Says::Delete,
        &[
            "delete",
            "remove",
            "drop",
            "clear",
            "destroy",
            "purge",
            "erase",
            "rm",
            "rmdir",
            "unlink",
            "trash",
            "wipe",
            "nuke",
            "truncate",
            "evict",
            "discard",
            "prune",
            "flush",
            "del",
            "uninstall",
            "forget",
        ],
    ),
    (
        Says::Move,
        &[
            "move", "rename", "mv", "relocate", "swap", "rotate", "exchange",
        ],
    ),
    (
        Says::Beside,
        &[
            "unzip",
            "untar",
            "unpack",
            "extract",
            "decompress",
            "restore",
            "checkout",
            "clone",
            "pull",
            "apply",
            "patch",
            "link",
            "symlink",
            "mklink",
            "ln",
        ],
    ),
    (
        Says::Write,
        &[
            "write",
            "create",
            "edit",
            "update",
            "set",
            "save",
            "put",
            "add",
            "insert",
            "append",
            "upsert",
            "replace",
            "overwrite",
            "rewrite",
            "modify",
            "change",
            "copy",
            "cp",
            "format",
            "reset",
            "revert",
            "commit",
            "merge",
            "rebase",
            "init",
            "install",
            "upgrade",
            "enable",
            "disable",
            "grant",
            "revoke",
            "approve",
            "sign",
            "import",
            "sync",
            "backup",
            "mkdir",
            "touch",
            "chmod",
            "chown",
            "tag",
            "assign",
            "archive",
            "mark",
            "increment",
            "accept",
            "decline",
            "ban",
            "block",
            "mute",
            "follow",
            "subscribe",
            "unsubscribe",
            "register",
            "book",
            "buy",
            "pay",
            "charge",
            "order",
            "sell",
            "cancel",
            "close",
            "reopen",
            "resolve",
            "lock",
            "unlock",
            "encrypt",
            "decrypt",
            "mount",
            "unmount",
            "generate",
            "record",
            "schedule",
            "make",
            "new",
            "store",
            "fix",
            "refactor",
            "migrate",
            "provision",
            "configure",
            "attach",
            "detach",
            "activate",
            "deactivate",
            "switch",
            "initialize",
            "emulate",
            "toggle",
            "allocate",
            "reserve",
        ],
    ),
    (
        Says::Execute,
        &[
            "execute",
            "exec",
            "run",
            "eval",
            "evaluate",
            "spawn",
            "launch",
            "invoke",
            "shell",
            "bash",
            "sh",
            "zsh",
            "powershell",
            "sudo",
            "terminal",
            "console",
            "command",
            "script",
            "kill",
            "terminate",
            "stop",
            "start",
            "restart",
            "shutdown",
            "reboot",
            "trigger",
            "deploy",
            "build",
            "compile",
            "fire",
            "dispatch",
            "repl",
        ],
    ),
    (
        Says::Send,
        &[
            "send",
            "post",
            "publish",
            "share",
            "notify",
            "upload",
            "push",
            "forward",
            "reply",
            "tweet",
            "invite",
            "submit",
            "broadcast",
            "transfer",
        ],
    ),
    (
        Says::Delicate,
        &[
            "code",
            "query",
            "container",
            "docker",
            "kubectl",
            "process",
            "session",
            "sessions",
            "message",
            "email",
            "emails",
            "history",
            "request",
            "database",
            "db",
            "check",
            "call",
            "api",
        ],
    ),
    (
        Says::Guarded,
        &[
            "mail",
            "download",
            "fetch",
            "crawl",
            "browse",
            "navigate",
            "open",
            "click",
            "type",
            "press",
            "login",
            "logout",
            "connect",
            "export",
            "capture",
            "listen",
            "ask",
            "prompt",
            "root",
            "admin",
            "python",
            "secret",
            "secrets",
            "password",
            "passwords",
            "passwd",
            "credential",
            "credentials",
            "token",
            "tokens",
            "key",
            "keys",
            "keychain",
            "vault",
            "env",
            "environ",
            "environment",
            "clipboard",
            "screen",
            "screenshot",
            "camera",
            "microphone",
            "audio",
            "photo",
            "browser",
            "url",
            "http",
            "https",
            "web",
            "internet",
            "inbox",
            "sql",
            "cypher",
            "aws",
            "cloud",
            "disk",
            "registry",
            "cookie",
            "cookies",
            "sale",
            "rid",
            "out",
            "tavily",
            "exa",
            "firecrawl",
            "brave",
            "bing",
            "duckduckgo",
            "serpapi",
            "searxng",
            "suggestions",
            "perplexity",
            "scrape",
            "crawling",
        ],
    ),
];

/// Verbs that read what the words behind them name.
const READING_VERBS: [&str; 19] = [
    "get",
    "list",
    "describe",
    "read",
    "count",
    "show",
    "view",
    "retrieve",
    "inspect",
    "explain",
    "discover",
    "analyze",
    "compare",
    "calculate",
    "estimate",
    "observe",
    "preview",
    "summarize",
    "lookup",
];
/// Verbs that search somewhere.
const SEARCHES: [&str; 5] = ["search", "find", "lookup", "query", "ask"];
/// Words that put two actions into one name, or say where a result goes.
const JOINTS: [&str; 6] = ["and", "or", "then", "via", "to", "into"];
/// Words behind which a name says of what a thing is, or where it lies.
const PREPOSITIONS: [&str; 4] = ["in", "of", "by", "on"];
/// Verbs that are also things that are read about: `get_build_logs`, `list_console_messages`.
const THINGS: [&str; 25] = [
    "build", "script", "command", "console", "start", "stop", "trigger", "deploy", "screen",
    "type", "registry", "connect", "request", "commit", "record", "order", "tag", "schedule",
    "archive", "book", "store", "link", "block", "backup", "change",
];

/// Returns what a word says.
fn says_of(word: &str) -> impl Iterator<Item = Says> + '_ {
    let rows = WORDS.iter().filter(move |(_, words)| words.contains(&word));
    rows.map(|(says, _)| *says)
}

/// Returns whether a name is a verb that reads, first of all verbs, and a thing that is only a noun. Words behind a
/// preposition say of what it is or where it lies.
fn is_reading_phrase(words: &[String]) -> bool {
    let is_verb =
        |word: &String| says_of(word).any(|says| !matches!(says, Says::Delicate | Says::Guarded));
    let changes = |word: &String| !THINGS.contains(&word.as_str()) && is_verb(word);
    let is_guarded = |word: &String| {
        !THINGS.contains(&word.as_str()) && says_of(word).any(|says| says == Says::Guarded)
    };
    let is_one_of = |list: &'static [&str]| move |word: &String| list.contains(&word.as_str());
    let Some(begins) = words.iter().position(is_one_of(&READING_VERBS)) else {
        return false;
    };
    let (before, rest) = words.split_at(begins);
    let things = rest.get(1..).unwrap_or_default();
    let thing = things.split(is_one_of(&PREPOSITIONS)).next();
    let thing = thing.unwrap_or_default();
    let Some(last) = thing.last() else {
        return false;
    };
    !before.iter().any(|word| is_verb(word) || is_guarded(word))
        && !words.iter().any(is_one_of(&JOINTS))
        && !things.iter().any(changes)
        && !thing.iter().any(is_guarded)
        && !is_verb(last)
}

impl NameEffects {
    /// Reads a name; what was read once is remembered.
    pub fn of(tool: &str) -> Self {
        thread_local! {
            static NAMES: Memo<NameEffects> = Memo::default();
        }
        NAMES.with(|names| names.of(tool, Self::read))
    }

    fn read(tool: &str) -> Self {
        let mut name = Self {
            shipped: shipped(tool),
            operations: OperationSet::NONE,
            is_delicate: false,
            is_guarded: false,
            is_reading_phrase: false,
            is_bare_search: false,
            moves: false,
            writes_beside: false,
        };
        if tool.len() <= NAME_BYTES_MAX {
            let words = words(tool);
            name.is_reading_phrase = is_reading_phrase(&words);
            name.is_bare_search = words.iter().all(|word| SEARCHES.contains(&word.as_str()));
            for word in words {
                says_of(&word).for_each(|says| name.add(says));
            }
        }
        name
    }

    fn add(&mut self, says: Says) {
        let operation = match says {
            Says::Delete => {
                self.moves = true;
                OperationSet::DELETE
            }
            Says::Move => {
                self.moves = true;
                OperationSet::WRITE
            }
            Says::Beside => {
                self.writes_beside = true;
                OperationSet::WRITE
            }
            Says::Write => OperationSet::WRITE,
            Says::Execute => OperationSet::EXECUTE,
            Says::Send => OperationSet::SEND,
            Says::Delicate => {
                self.is_delicate = true;
                OperationSet::NONE
            }
            Says::Guarded => {
                self.is_delicate = true;
                self.is_guarded = true;
                OperationSet::NONE
            }
        };
        self.operations = self.operations.with(operation);
    }
}
