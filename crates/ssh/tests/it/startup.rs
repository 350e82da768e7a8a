//! Start-up files of a login shell: what they print, define and read changes no command and is in no answer.

use std::fs;

use serde_json::{Value, json};
use ssh::hosts::Hosts;

use crate::target::{Client, PASSWORD, Target, has, is_root, program, user};

/// Shells, and start-up files that get in the way of a command where they can.
const FILES: [(&str, &str, &str); 4] = [
    (
        "bash",
        ".bashrc",
        "echo hello; echo warning >&2\nuname() { echo other; }; sh() { echo other; }; env() { echo other; }\nset -x; trap 'echo bye' EXIT\n",
    ),
    (
        "zsh",
        ".zshenv",
        "echo hello; echo warning >&2\nuname() { echo other }; sh() { echo other }\nalias -g /etc/hosts=/etc/passwd\nalias -g -- -s=-r\nalias -g plain='; echo other;'\n",
    ),
    (
        "fish",
        ".config/fish/config.fish",
        "echo hello; echo warning >&2\nfunction uname; echo other; end\nfunction sh; echo other; end\n",
    ),
    (
        "tcsh",
        ".cshrc",
        "echo hello\nalias uname echo other\nalias sh echo other\nset echo\n",
    ),
];

fn client(target: &Target) -> Client {
    let web = "  web: { address: 127.0.0.1, port: PORT, credential: me }\n";
    Client::new(target.hosts_as(web), None)
}

/// The output, the errors and the exit code.
fn told(said: &Value) -> (&Value, &Value, &Value) {
    let data = &said["structuredContent"];
    (&data["stdout"], &data["stderr"], &data["exit_code"])
}

#[tokio::test]
async fn start_up_files_change_no_command_and_are_in_no_answer() {
    if !has("sshd") || !is_root() {
        return;
    }
    for (shell, name, text) in FILES {
        if !has(shell) {
            continue;
        }
        let target = Target::with_home(shell, (name, text), None);
        let client = client(&target);
        let session = client.connect("web").await;
        for (command, stdin, expected, code) in [
            ("uname -s", "", "Linux\n", 0),
            ("printf '[%s]' plain -s", "", "[plain][-s]", 0),
            ("cat", "one\ntwo\n", "one\ntwo\n", 0),
            ("sh -c 'exit 3'", "", "", 3),
        ] {
            let call = json!({"session_id": session, "command": command, "stdin": stdin});
            let said = client.call("ssh_run", call).await.unwrap();
            let expected = (&json!(expected), &json!(""), &json!(code));
            assert_eq!(told(&said), expected, "{shell}: {command}: {said}");
        }
        let call = json!({"session_id": session, "path": "/etc/hosts"});
        let said = client.call("ssh_cat_file", call).await.unwrap();
        let content = &said["structuredContent"]["content"];
        let file = fs::read_to_string("/etc/hosts").unwrap();
        assert_eq!(content, &json!(file), "{shell}: {said}");
        let call = json!({"session_id": session});
        let said = client.call("ssh_hostname", call).await.unwrap();
        let name = said["structuredContent"]["hostname"].as_str().unwrap();
        assert!(!name.contains("hello"), "{shell}: {said}");
        let call = json!({"session_id": session, "command": "uname -s", "cwd": "/usr"});
        let said = client.call("ssh_run", call).await.unwrap();
        assert_eq!(told(&said).0, "Linux\n", "{shell}: {said}");
    }
}

#[tokio::test]
async fn a_start_up_file_that_reads_gets_neither_the_input_nor_the_secret_of_sudo() {
    if !has("sshd") || !is_root() || !has("sudo") {
        return;
    }
    // What sudo says before it asks is none of the command's errors.
    let sudoers = format!("Defaults lecture=always\n{} ALL=(ALL:ALL) ALL", user());
    // It prints what it reads, and waits a second for it. Then `sh` is a bash that prints what it runs.
    let text = "read -r -t 1 first; echo \"read: $first\"\nexport PATH=$HOME/bin:$PATH; set -x; export SHELLOPTS\n";
    let file = (".bashrc", text);
    let target = Target::with_home("bash", file, Some(&sudoers));
    let bin = target.folder.join("home/bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(program("bash").unwrap(), bin.join("sh")).unwrap();
    fs::write(target.folder.join("sudo"), PASSWORD).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials: {{ me: {{ user: {}, key: user, sudo_password_file: sudo }} }}\nhosts: {{ web: {{ address: 127.0.0.1, port: {}, credential: me }} }}\n",
        user(),
        target.port
    );
    let client = Client::new(Hosts::of(&text, &target.folder).unwrap(), None);
    let session = client.connect("web").await;
    for command in ["sudo cat", "cat"] {
        let call = json!({"session_id": session, "command": command, "stdin": "one\ntwo\n"});
        let said = client.call("ssh_run", call).await.unwrap();
        assert!(!said.to_string().contains(PASSWORD), "{said}");
        assert_eq!(
            told(&said),
            (&json!("one\ntwo\n"), &json!(""), &json!(0)),
            "{command}: {said}"
        );
    }
}
