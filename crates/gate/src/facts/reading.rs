//! Whether a tool only reads: by the table of official servers, by its known side effects, by every word
//! of its name, and by what its pinned definition says of itself.

use super::effects;
use crate::words::words;

/// Tools of the official servers whose names alone do not tell.
const OFFICIAL: [&str; 22] = [
    // files
    "directory_tree",
    "list_allowed_directories",
    "read_multiple_files",
    "list_directory_with_sizes",
    // git
    "git_status",
    "git_diff",
    "git_diff_unstaged",
    "git_diff_staged",
    "git_log",
    "git_show",
    // memory
    "read_graph",
    "search_nodes",
    "open_nodes",
    // time
    "get_current_time",
    "convert_time",
    // sqlite
    "list_tables",
    "describe_table",
    // everything
    "echo_resource",
    "get_annotated_message",
    "get_resource_reference",
    "get_tiny_image",
    "get_structured_content",
];

/// Verbs that look and change nothing.
const READS: [&str; 22] = [
    "read",
    "get",
    "list",
    "search",
    "find",
    "show",
    "view",
    "describe",
    "count",
    "stat",
    "head",
    "tail",
    "cat",
    "grep",
    "glob",
    "lookup",
    "info",
    "inspect",
    "check",
    "explain",
    "summarize",
    "diff",
];

/// Verbs that do more, and nouns that stand for more than a file.
const MORE: &[&str] = &[
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
    "delete",
    "remove",
    "drop",
    "clear",
    "replace",
    "overwrite",
    "rewrite",
    "execute",
    "exec",
    "run",
    "eval",
    "kill",
    "stop",
    "start",
    "restart",
    "spawn",
    "launch",
    "invoke",
    "call",
    "trigger",
    "apply",
    "patch",
    "modify",
    "change",
    "rename",
    "move",
    "mv",
    "copy",
    "cp",
    "trash",
    "purge",
    "erase",
    "rm",
    "unlink",
    "truncate",
    "format",
    "wipe",
    "reset",
    "revert",
    "commit",
    "push",
    "pull",
    "merge",
    "rebase",
    "checkout",
    "clone",
    "init",
    "install",
    "uninstall",
    "upgrade",
    "enable",
    "disable",
    "grant",
    "revoke",
    "approve",
    "sign",
    "send",
    "post",
    "publish",
    "share",
    "mail",
    "email",
    "message",
    "notify",
    "upload",
    "download",
    "fetch",
    "crawl",
    "browse",
    "navigate",
    "open",
    "click",
    "type",
    "press",
    "submit",
    "login",
    "logout",
    "connect",
    "mount",
    "unmount",
    "lock",
    "unlock",
    "encrypt",
    "decrypt",
    "import",
    "export",
    "sync",
    "backup",
    "restore",
    "deploy",
    "build",
    "compile",
    "schedule",
    "book",
    "buy",
    "pay",
    "order",
    "transfer",
    "sell",
    "cancel",
    "close",
    "archive",
    "restart",
    "shutdown",
    "reboot",
    "chmod",
    "chown",
    "mkdir",
    "rmdir",
    "touch",
    "link",
    "symlink",
    "tag",
    "assign",
    "record",
    "capture",
    "listen",
    "ask",
    "prompt",
    "generate",
    "shell",
    "bash",
    "sh",
    "sudo",
    "root",
    "admin",
    "terminal",
    "console",
    "command",
    "script",
    "code",
    "python",
    "process",
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
    "request",
    "api",
    "email",
    "inbox",
    "sql",
    "query",
    "database",
    "db",
    "docker",
    "container",
    "kubectl",
    "aws",
    "cloud",
    "disk",
    "registry",
    "cookie",
    "cookies",
    "session",
    "sessions",
    "history",
];

/// Whether a tool only reads files or what is of their kind. `hint` is what its pinned definition says
/// (`readOnlyHint`): it may speak for a name that says nothing, and never against one that does.
#[must_use]
pub fn reads_only(tool: &str, known: Option<&[&str]>, hint: Option<bool>) -> bool {
    let folded: String = words(tool).join("_");
    let is_official = OFFICIAL.contains(&folded.as_str());
    if hint == Some(false) && !is_official {
        return false;
    }
    let stated = known.or_else(|| effects::of_tool(tool));
    if stated.is_some_and(|effects| effects.iter().any(|effect| *effect != "fs_read")) {
        return is_official && stated.is_some_and(|effects| effects == ["db_read"]);
    }
    if is_official {
        return true;
    }
    let words = words(tool);
    let is = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    !is(MORE) && (is(&READS) || hint == Some(true) || stated == Some(&["fs_read"][..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j13_what_does_more_than_read_asks_a_person() {
        for tool in [
            "search_and_replace",
            "find_replace",
            "fetch_and_execute",
            "get_shell",
            "get_sudo",
            "find_and_kill",
            "list_format_disk",
            "read_and_overwrite",
            "get_secret",
            "get_password",
            "list_secrets",
            "get_env",
            "clipboard_read",
            "fetch",
            "fetch_url",
            "getSecret",
            "read-clipboard",
            "http_get",
            "web_search",
            "read_query",
            "search_emails_and_send",
            "write_file",
            "t",
            "",
        ] {
            assert!(!reads_only(tool, None, None), "{tool}");
        }
    }

    #[test]
    fn j13_what_only_reads_passes() {
        for tool in [
            "git_log",
            "git_diff",
            "git_status",
            "convert_time",
            "read_file",
            "read_text_file",
            "list_directory",
            "directory_tree",
            "search_files",
            "get_file_info",
            "readGraph",
            "search_nodes",
            "list_tables",
            "describe_table",
            "grep",
        ] {
            assert!(reads_only(tool, None, None), "{tool}");
        }
    }

    #[test]
    fn j13_a_hint_speaks_only_where_the_name_is_silent() {
        assert!(reads_only("sized", None, Some(true)));
        assert!(!reads_only("sized", None, None));
        assert!(!reads_only("delete_all", None, Some(true)));
        assert!(!reads_only("get_secret", None, Some(true)));
        assert!(!reads_only("read_note", None, Some(false)));
        assert!(!reads_only("sized", Some(&["network_egress"]), Some(true)));
    }
}
