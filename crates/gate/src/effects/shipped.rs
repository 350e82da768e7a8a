//! Tools whose effects are known by their exact names: those of the reference servers and others that are well known.

use super::OperationSet;

/// The 21 side effects that a policy can name.
pub const SIDE_EFFECTS: [&str; 21] = [
    "fs_read",
    "fs_write",
    "db_read",
    "db_write",
    "network_egress",
    "network_ingress",
    "code_exec",
    "process_spawn",
    "sudo_elevate",
    "secrets_read",
    "env_read",
    "keychain_read",
    "clipboard_read",
    "clipboard_write",
    "browser_open",
    "screen_capture",
    "audio_capture",
    "camera_capture",
    "cloud_api",
    "container_exec",
    "email_send",
];

/// Side effects for which no approval is ever remembered: running code once must not let other code run later,
/// and the name of the code says nothing of what it does.
pub const NEVER_REMEMBERED: [&str; 4] = [
    "code_exec",
    "process_spawn",
    "sudo_elevate",
    "container_exec",
];

/// Returns the words of all side effects.
pub(crate) fn labels() -> Vec<&'static str> {
    SIDE_EFFECTS.to_vec()
}

/// What the table says of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShippedTool {
    /// Its operations; `None` where its name does not tell, because its arguments decide.
    pub operations: Option<OperationSet>,
    /// It moves what is at its paths elsewhere.
    pub moves: bool,
    /// Its side effects.
    pub side_effects: &'static [&'static str],
}

/// One row: name, operations, side effects.
type Row = (&'static str, Does, &'static [&'static str]);

/// Operations as the table writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    Write,
    /// Writes, and takes what it moves away from where it was.
    Move,
    Delete,
    Send,
    /// Writes at another machine.
    WriteSend,
    Execute,
    /// Its arguments decide.
    Varies,
}

use Does::{Delete, Execute, Move, Read, Send, Varies, Write, WriteSend};

impl Does {
    const fn operations(self) -> Option<OperationSet> {
        Some(match self {
            Read => OperationSet::READ,
            Write | Move => OperationSet::WRITE,
            Delete => OperationSet::DELETE,
            Send => OperationSet::SEND,
            WriteSend => OperationSet::WRITE.with(OperationSet::SEND),
            Execute => OperationSet::EXECUTE,
            Varies => return None,
        })
    }
}

/// The table. Names are compared without case; `-` and `_` are one.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    // Files
    ("read_file", Read, &["fs_read"]),
    ("read_text_file", Read, &["fs_read"]),
    ("read_media_file", Read, &["fs_read"]),
    ("read_multiple_files", Read, &["fs_read"]),
    ("list_files", Read, &["fs_read"]),
    ("list_directory", Read, &["fs_read"]),
    ("list_directory_with_sizes", Read, &["fs_read"]),
    ("list_allowed_directories", Read, &["fs_read"]),
    ("directory_tree", Read, &["fs_read"]),
    ("search_files", Read, &["fs_read"]),
    ("get_file_info", Read, &["fs_read"]),
    ("find_files", Read, &["fs_read"]),
    ("grep", Read, &["fs_read"]),
    ("glob", Read, &["fs_read"]),
    ("list_dir", Read, &["fs_read"]),
    ("write_file", Write, &["fs_write"]),
    ("append_file", Write, &["fs_write"]),
    ("create_file", Write, &["fs_write"]),
    ("create_directory", Write, &["fs_write"]),
    ("update_file", Write, &["fs_read", "fs_write"]),
    ("edit_file", Write, &["fs_read", "fs_write"]),
    ("copy_path", Write, &["fs_read", "fs_write"]),
    ("copy_file", Write, &["fs_read", "fs_write"]),
    ("move_path", Move, &["fs_read", "fs_write"]),
    ("move_file", Move, &["fs_read", "fs_write"]),
    ("rename_file", Move, &["fs_write"]),
    ("delete_file", Delete, &["fs_write"]),
    ("delete_directory", Delete, &["fs_write"]),
    ("remove_file", Delete, &["fs_write"]),
    ("set_filesystem_default", Write, &[]),
    // Git
    ("git_status", Read, &["fs_read"]),
    ("git_diff", Read, &["fs_read"]),
    ("git_diff_unstaged", Read, &["fs_read"]),
    ("git_diff_staged", Read, &["fs_read"]),
    ("git_log", Read, &["fs_read"]),
    ("git_show", Read, &["fs_read"]),
    ("git_add", Write, &["fs_write"]),
    ("git_commit", Write, &["fs_write"]),
    ("git_create_branch", Write, &["fs_write"]),
    ("git_init", Write, &["fs_write"]),
    ("git_checkout", Move, &["fs_read", "fs_write"]),
    ("git_reset", Delete, &["fs_write"]),
    // Databases
    ("query", Varies, &["db_read"]),
    ("read_query", Varies, &["db_read"]),
    ("list_tables", Read, &["db_read"]),
    ("describe_table", Read, &["db_read"]),
    ("execute_sql", Varies, &["db_read", "db_write"]),
    ("run_query", Varies, &["db_read", "db_write"]),
    ("write_query", Write, &["db_write"]),
    ("create_table", Write, &["db_write"]),
    ("insert_row", Write, &["db_write"]),
    ("update_row", Write, &["db_write"]),
    ("append_insight", Write, &["db_write"]),
    ("delete_row", Delete, &["db_write"]),
    // Memory
    ("read_graph", Read, &["db_read"]),
    ("search_nodes", Read, &["db_read"]),
    ("open_nodes", Read, &["db_read"]),
    ("create_entities", Write, &["db_write"]),
    ("create_relations", Write, &["db_write"]),
    ("add_observations", Write, &["db_write"]),
    ("delete_entities", Delete, &["db_write"]),
    ("delete_observations", Delete, &["db_write"]),
    ("delete_relations", Delete, &["db_write"]),
    // Time, thinking, everything
    ("get_current_time", Read, &[]),
    ("convert_time", Read, &[]),
    ("sequentialthinking", Read, &[]),
    ("echo_resource", Read, &[]),
    ("get_annotated_message", Read, &[]),
    ("get_resource_reference", Read, &[]),
    ("get_tiny_image", Read, &[]),
    ("get_structured_content", Read, &[]),
    // GitHub and GitLab, as the reference servers name their tools
    ("get_file_contents", Read, &["network_egress"]),
    ("search_repositories", Read, &["network_egress"]),
    ("search_code", Read, &["network_egress"]),
    ("search_issues", Read, &["network_egress"]),
    ("search_users", Read, &["network_egress"]),
    ("list_commits", Read, &["network_egress"]),
    ("list_issues", Read, &["network_egress"]),
    ("get_issue", Read, &["network_egress"]),
    ("list_pull_requests", Read, &["network_egress"]),
    ("get_pull_request", Read, &["network_egress"]),
    ("get_pull_request_files", Read, &["network_egress"]),
    ("get_pull_request_status", Read, &["network_egress"]),
    ("get_pull_request_comments", Read, &["network_egress"]),
    ("get_pull_request_reviews", Read, &["network_egress"]),
    ("create_or_update_file", WriteSend, &["network_egress"]),
    ("push_files", WriteSend, &["network_egress"]),
    ("create_repository", WriteSend, &["network_egress"]),
    ("fork_repository", WriteSend, &["network_egress"]),
    ("create_branch", WriteSend, &["network_egress"]),
    ("create_issue", WriteSend, &["network_egress"]),
    ("update_issue", WriteSend, &["network_egress"]),
    ("add_issue_comment", WriteSend, &["network_egress"]),
    ("create_pull_request", WriteSend, &["network_egress"]),
    ("create_pull_request_review", WriteSend, &["network_egress"]),
    ("merge_pull_request", WriteSend, &["network_egress"]),
    ("update_pull_request_branch", WriteSend, &["network_egress"]),
    ("create_merge_request", WriteSend, &["network_egress"]),
    // Slack
    ("slack_list_channels", Read, &["network_egress"]),
    ("slack_get_channel_history", Read, &["network_egress"]),
    ("slack_get_thread_replies", Read, &["network_egress"]),
    ("slack_get_users", Read, &["network_egress"]),
    ("slack_get_user_profile", Read, &["network_egress"]),
    ("slack_post_message", WriteSend, &["network_egress"]),
    ("slack_reply_to_thread", WriteSend, &["network_egress"]),
    ("slack_add_reaction", WriteSend, &["network_egress"]),
    // Network
    ("fetch", Send, &["network_egress"]),
    ("fetch_url", Send, &["network_egress"]),
    ("http_get", Send, &["network_egress"]),
    ("http_post", Send, &["network_egress"]),
    ("http_request", Send, &["network_egress"]),
    ("web_search", Send, &["network_egress"]),
    ("web_fetch", Send, &["network_egress"]),
    ("brave_web_search", Send, &["network_egress"]),
    ("brave_local_search", Send, &["network_egress"]),
    ("download_file", WriteSend, &["network_egress", "fs_write"]),
    ("upload_file", Send, &["network_egress", "fs_read"]),
    ("start_server", Execute, &["network_ingress", "process_spawn"]),
    ("listen", Varies, &["network_ingress"]),
    // Code and processes
    ("bash", Execute, &["code_exec", "process_spawn"]),
    ("shell", Execute, &["code_exec", "process_spawn"]),
    ("exec", Execute, &["code_exec", "process_spawn"]),
    ("execute_command", Execute, &["code_exec", "process_spawn"]),
    ("run_command", Execute, &["code_exec", "process_spawn"]),
    ("execute", Execute, &["code_exec"]),
    ("execute_code", Execute, &["code_exec"]),
    ("run_code", Execute, &["code_exec"]),
    ("run_python", Execute, &["code_exec"]),
    ("python", Execute, &["code_exec"]),
    ("eval", Execute, &["code_exec"]),
    ("spawn_process", Execute, &["process_spawn"]),
    ("start_process", Execute, &["process_spawn"]),
    ("kill_process", Execute, &["process_spawn"]),
    ("sudo", Execute, &["sudo_elevate", "code_exec", "process_spawn"]),
    ("ssh_exec", Execute, &["code_exec", "network_egress"]),
    ("docker_exec", Execute, &["container_exec", "code_exec"]),
    ("docker_run", Execute, &["container_exec", "code_exec"]),
    ("kubectl_exec", Execute, &["container_exec", "code_exec"]),
    // Secrets and environment
    ("get_secret", Varies, &["secrets_read"]),
    ("read_secret", Varies, &["secrets_read"]),
    ("list_secrets", Varies, &["secrets_read"]),
    ("get_password", Varies, &["secrets_read", "keychain_read"]),
    ("keychain_get", Varies, &["keychain_read", "secrets_read"]),
    ("get_env", Varies, &["env_read"]),
    ("read_env", Varies, &["env_read"]),
    ("list_env", Varies, &["env_read"]),
    // Desktop
    ("clipboard_read", Varies, &["clipboard_read"]),
    ("read_clipboard", Varies, &["clipboard_read"]),
    ("clipboard_write", Write, &["clipboard_write"]),
    ("write_clipboard", Write, &["clipboard_write"]),
    ("open_browser", Send, &["browser_open", "network_egress"]),
    ("open_url", Send, &["browser_open", "network_egress"]),
    ("browser_navigate", Send, &["browser_open", "network_egress"]),
    ("puppeteer_navigate", Send, &["browser_open", "network_egress"]),
    ("screenshot", Varies, &["screen_capture"]),
    ("take_screenshot", Varies, &["screen_capture"]),
    ("capture_screen", Varies, &["screen_capture"]),
    ("record_audio", Varies, &["audio_capture"]),
    ("capture_photo", Varies, &["camera_capture"]),
    // Cloud and mail
    ("aws_cli", Varies, &["cloud_api", "network_egress"]),
    ("gcloud", Varies, &["cloud_api", "network_egress"]),
    ("az_cli", Varies, &["cloud_api", "network_egress"]),
    ("deploy", Varies, &["cloud_api", "network_egress"]),
    ("send_email", Send, &["email_send", "network_egress"]),
    ("send_mail", Send, &["email_send", "network_egress"]),
];

/// Returns the row of a tool.
fn row(tool_name: &str) -> Option<&'static Row> {
    let folds = |a: &str| {
        a.len() == tool_name.len()
            && a.bytes().zip(tool_name.bytes()).all(|(x, y)| {
                x == if y == b'-' {
                    b'_'
                } else {
                    y.to_ascii_lowercase()
                }
            })
    };
    TABLE.iter().find(|(name, ..)| folds(name))
}

/// Returns what the table says of a tool of this name.
pub(super) fn shipped(tool_name: &str) -> Option<ShippedTool> {
    row(tool_name).map(|(_, does, side_effects)| ShippedTool {
        operations: does.operations(),
        moves: *does == Move,
        side_effects,
    })
}

/// Returns the side effects of a tool of this name; `None` where the table does not have it.
#[must_use]
pub fn of_tool(tool_name: &str) -> Option<&'static [&'static str]> {
    row(tool_name).map(|(_, _, effects)| *effects)
}

/// Returns the rows for the reference page: name, operations, side effects.
pub fn table() -> impl Iterator<Item = (&'static str, Option<OperationSet>, &'static [&'static str])>
{
    TABLE
        .iter()
        .map(|(name, does, effects)| (*name, does.operations(), *effects))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_known_effects_and_each_tool_once() {
        for (at, (tool, _, effects)) in TABLE.iter().enumerate() {
            assert!(effects.iter().all(|e| SIDE_EFFECTS.contains(e)), "{tool}");
            assert!(
                !TABLE.iter().skip(at + 1).any(|(other, ..)| other == tool),
                "{tool} twice"
            );
        }
        assert_eq!(of_tool("Read-File"), Some(&["fs_read"][..]));
        assert_eq!(of_tool("unheard_of"), None);
    }
}
