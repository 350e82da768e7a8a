//! Where a reader types: a home with a configuration and a journal, a working directory with the files that the pages
//! speak of, and a search path with the real binary and the real servers.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::components;
use crate::support::program::lab_binary;
use crate::support::world::{World, binary};

/// Rules under which the examples do what their page says.
const POLICY: &str = r#"{ "version": "1", "default_action": "deny", "rules": [
  { "id": "read", "effect": "allow", "conditions": { "reads_only": "yes" } },
  { "id": "write", "effect": "allow", "conditions": { "tool_name": "write_file" } },
  { "id": "block-pem", "effect": "deny", "conditions": { "extension": ".pem" } } ] }
"#;

const CASES: &str = r#"[ { "tool": "read_file", "path": "/srv/a.txt", "expect": "allow" },
  { "tool": "write_file", "path": "/srv/a.pem", "expect": "deny", "rule": "block-pem" } ]
"#;

/// The wait for one command, in seconds: a busy machine is no fault.
const COMMAND_S: &str = "120";

/// One reader's desk.
pub struct Desk {
    pub world: World,
}

impl Desk {
    /// A desk, or `None` where the components are not installed.
    pub fn new() -> Option<Self> {
        let filesystem = components::official_filesystem()?;
        let desk = Self {
            world: World::new(None),
        };
        let here = desk.here();
        // What `npx` finds here it does not download.
        let modules = filesystem.parent().unwrap().parent().unwrap();
        std::os::unix::fs::symlink(modules, here.join("node_modules")).unwrap();
        for (name, text) in [
            ("policy.json", POLICY),
            ("new.json", POLICY),
            ("my-rules.json", POLICY),
            ("cases.json", CASES),
            ("notes.txt", "a note\n"),
        ] {
            fs::write(here.join(name), text).unwrap();
        }
        let arguments = format!(
            r#"{{ "path": "{}/new.txt", "content": "x" }}"#,
            here.display()
        );
        fs::write(here.join("arguments.json"), arguments).unwrap();
        let server = format!(
            "servers:\n  files: {{ command: {:?}, args: [{:?}] }}\npolicy: {:?}\n",
            filesystem,
            here,
            here.join("policy.json")
        );
        fs::write(here.join("durward.yaml"), &server).unwrap();
        fs::write(desk.world.config().join("durward.yaml"), &server).unwrap();
        desk.furnish_clients();
        Some(desk)
    }

    /// The files of the clients that the help wraps, and the directories of the shells that it completes for.
    fn furnish_clients(&self) {
        let (home, here) = (self.world.home(), self.here());
        let entry = |member: &str| {
            format!(r#"{{ "{member}": {{ "github": {{ "command": "my-mcp-server" }} }} }}"#)
        };
        for (file, text) in [
            (home.join(".cursor/mcp.json"), entry("mcpServers")),
            (
                home.join(".config/Claude/claude_desktop_config.json"),
                entry("mcpServers"),
            ),
            (here.join(".vscode/mcp.json"), entry("servers")),
            (
                home.join(".codex/config.toml"),
                "[mcp_servers.github]\ncommand = \"my-mcp-server\"\n".into(),
            ),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        for folder in [
            ".local/share/bash-completion/completions",
            ".zfunc",
            ".config/fish/completions",
        ] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
    }

    /// The working directory.
    pub fn here(&self) -> PathBuf {
        self.world.tmp.clone()
    }

    /// Runs a session, so that there is a journal to look at.
    pub fn with_journal(self) -> Self {
        let args = ["run", "--no-config", "--", lab_binary(), "mock", "echo"];
        assert!(self.world.durward(&args).status.success());
        // The help writes DIR for a journal's directory.
        let journal = self.world.state().join("journal");
        std::os::unix::fs::symlink(journal, self.here().join("DIR")).unwrap();
        self
    }

    /// Runs a text of commands as a shell does. Paths in `/tmp` are meant to be the reader's own.
    pub fn shell(&self, text: &str) -> Output {
        let here = self.here();
        let text = text.replace("/tmp", here.to_str().unwrap());
        let folder = std::path::Path::new(binary()).parent().unwrap().display();
        let node = components::node().unwrap();
        let path = std::env::var("PATH").unwrap();
        Command::new("timeout")
            .args(["-k", "5", COMMAND_S, "sh", "-euc", &text])
            .envs(self.world.environment())
            .env(
                "PATH",
                format!("{folder}:{}:{path}", node.parent().unwrap().display()),
            )
            .env("npm_config_offline", "true")
            .env("DURWARD_KEY", "a-key-of-durward-keys-create")
            .current_dir(here)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// What a command printed, for a message.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
