//! What tools do to the world, by name: the side-effect table.

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

/// Side effects of which no yes is ever remembered: whoever may run code once must not run other code
/// later, and the name of the code says nothing of what it does.
pub const NEVER_REMEMBERED: [&str; 4] = [
    "code_exec",
    "process_spawn",
    "sudo_elevate",
    "container_exec",
];

/// The words, for whoever asks.
pub(crate) fn labels() -> Vec<&'static str> {
    SIDE_EFFECTS.to_vec()
}

/// Tool names and what they do. A tool that is not here has unknown effects: no rule on side
/// effects matches it. Names are compared without case; `-` and `_` are one.
const TABLE: &[(&str, &[&str])] = &[
    // Files
    ("read_file", &["fs_read"]),
    ("read_text_file", &["fs_read"]),
    ("read_media_file", &["fs_read"]),
    ("read_multiple_files", &["fs_read"]),
    ("list_files", &["fs_read"]),
    ("list_directory", &["fs_read"]),
    ("list_directory_with_sizes", &["fs_read"]),
    ("list_allowed_directories", &["fs_read"]),
    ("directory_tree", &["fs_read"]),
    ("search_files", &["fs_read"]),
    ("get_file_info", &["fs_read"]),
    ("find_files", &["fs_read"]),
    ("grep", &["fs_read"]),
    ("glob", &["fs_read"]),
    ("write_file", &["fs_write"]),
    ("update_file", &["fs_read", "fs_write"]),
    ("edit_file", &["fs_read", "fs_write"]),
    ("append_file", &["fs_write"]),
    ("create_file", &["fs_write"]),
    ("create_directory", &["fs_write"]),
    ("copy_path", &["fs_read", "fs_write"]),
    ("copy_file", &["fs_read", "fs_write"]),
    ("move_path", &["fs_read", "fs_write"]),
    ("move_file", &["fs_read", "fs_write"]),
    ("rename_file", &["fs_write"]),
    ("delete_file", &["fs_write"]),
    ("delete_directory", &["fs_write"]),
    ("remove_file", &["fs_write"]),
    ("set_filesystem_default", &[]),
    // Databases
    ("query", &["db_read"]),
    ("read_query", &["db_read"]),
    ("list_tables", &["db_read"]),
    ("describe_table", &["db_read"]),
    ("execute_sql", &["db_read", "db_write"]),
    ("run_query", &["db_read", "db_write"]),
    ("write_query", &["db_write"]),
    ("create_table", &["db_write"]),
    ("insert_row", &["db_write"]),
    ("update_row", &["db_write"]),
    ("delete_row", &["db_write"]),
    ("create_entities", &["db_write"]),
    ("read_graph", &["db_read"]),
    // Network
    ("fetch", &["network_egress"]),
    ("fetch_url", &["network_egress"]),
    ("http_get", &["network_egress"]),
    ("http_post", &["network_egress"]),
    ("http_request", &["network_egress"]),
    ("web_search", &["network_egress"]),
    ("web_fetch", &["network_egress"]),
    ("brave_web_search", &["network_egress"]),
    ("download_file", &["network_egress", "fs_write"]),
    ("upload_file", &["network_egress", "fs_read"]),
    ("start_server", &["network_ingress", "process_spawn"]),
    ("listen", &["network_ingress"]),
    // Code and processes
    ("bash", &["code_exec", "process_spawn"]),
    ("shell", &["code_exec", "process_spawn"]),
    ("exec", &["code_exec", "process_spawn"]),
    ("execute", &["code_exec"]),
    ("execute_code", &["code_exec"]),
    ("execute_command", &["code_exec", "process_spawn"]),
    ("run_command", &["code_exec", "process_spawn"]),
    ("run_code", &["code_exec"]),
    ("run_python", &["code_exec"]),
    ("python", &["code_exec"]),
    ("eval", &["code_exec"]),
    ("spawn_process", &["process_spawn"]),
    ("start_process", &["process_spawn"]),
    ("kill_process", &["process_spawn"]),
    ("sudo", &["sudo_elevate", "code_exec", "process_spawn"]),
    ("ssh_exec", &["code_exec", "network_egress"]),
    ("docker_exec", &["container_exec", "code_exec"]),
    ("docker_run", &["container_exec", "code_exec"]),
    ("kubectl_exec", &["container_exec", "code_exec"]),
    // Secrets and environment
    ("get_secret", &["secrets_read"]),
    ("read_secret", &["secrets_read"]),
    ("list_secrets", &["secrets_read"]),
    ("get_password", &["secrets_read", "keychain_read"]),
    ("keychain_get", &["keychain_read", "secrets_read"]),
    ("get_env", &["env_read"]),
    ("read_env", &["env_read"]),
    ("list_env", &["env_read"]),
    // Desktop
    ("clipboard_read", &["clipboard_read"]),
    ("read_clipboard", &["clipboard_read"]),
    ("clipboard_write", &["clipboard_write"]),
    ("write_clipboard", &["clipboard_write"]),
    ("open_browser", &["browser_open", "network_egress"]),
    ("open_url", &["browser_open", "network_egress"]),
    ("browser_navigate", &["browser_open", "network_egress"]),
    ("puppeteer_navigate", &["browser_open", "network_egress"]),
    ("screenshot", &["screen_capture"]),
    ("take_screenshot", &["screen_capture"]),
    ("capture_screen", &["screen_capture"]),
    ("record_audio", &["audio_capture"]),
    ("capture_photo", &["camera_capture"]),
    // Cloud and mail
    ("aws_cli", &["cloud_api", "network_egress"]),
    ("gcloud", &["cloud_api", "network_egress"]),
    ("az_cli", &["cloud_api", "network_egress"]),
    ("deploy", &["cloud_api", "network_egress"]),
    ("send_email", &["email_send", "network_egress"]),
    ("send_mail", &["email_send", "network_egress"]),
];

/// The side effects of a tool; `None` where they are not known.
#[must_use]
pub fn of_tool(tool_name: &str) -> Option<&'static [&'static str]> {
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
    TABLE
        .iter()
        .find(|(name, _)| folds(name))
        .map(|(_, effects)| *effects)
}

/// The whole table, for the reference page.
#[must_use]
pub fn table() -> &'static [(&'static str, &'static [&'static str])] {
    TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effect_named_is_one_of_the_21_and_no_tool_stands_twice() {
        for (at, (tool, effects)) in TABLE.iter().enumerate() {
            assert!(effects.iter().all(|e| SIDE_EFFECTS.contains(e)), "{tool}");
            assert!(
                !TABLE.iter().skip(at + 1).any(|(other, _)| other == tool),
                "{tool} twice"
            );
        }
        assert_eq!(of_tool("Read-File"), Some(&["fs_read"][..]));
        assert_eq!(of_tool("unheard_of"), None);
    }
}
