//! The MCP clients: where each keeps its servers, and how it spells one.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::places::Places;
use admin::document::Format;

/// A client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Codex (TOML)
    Codex,
    /// Gemini CLI
    Gemini,
    /// Goose (YAML)
    Goose,
    /// opencode
    Opencode,
}

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: PathBuf,
    /// Its folder may be created: it belongs to the project, not to an installed client.
    pub create_folder: bool,
}

/// How a client names the parts of a server's entry.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    pub command: &'static str,
    /// The arguments; none where they follow the program in one list.
    pub arguments: Option<&'static str>,
    pub environment: &'static str,
    /// The URL of a server over HTTP; the first is the one that is written.
    pub urls: &'static [&'static str],
    pub headers: &'static str,
    /// `type` of a server over stdio, and of one over Streamable HTTP, where an entry states it.
    pub types: Option<(&'static str, &'static str)>,
}

const COMMON: Spelling = Spelling {
    command: "command",
    arguments: Some("args"),
    environment: "env",
    urls: &["url"],
    headers: "headers",
    types: None,
};

impl Client {
    /// The member of the configuration that holds the servers.
    pub fn section(self) -> &'static str {
        match self {
            Self::ClaudeDesktop
            | Self::ClaudeCode
            | Self::Cursor
            | Self::Windsurf
            | Self::Gemini => "mcpServers",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            Self::Goose => "extensions",
            Self::Opencode => "mcp",
        }
    }

    /// How its entries are spelled.
    pub fn spelling(self) -> Spelling {
        match self {
            Self::ClaudeDesktop | Self::Cursor | Self::Zed => COMMON,
            Self::ClaudeCode | Self::Vscode => Spelling {
                types: Some(("stdio", "http")),
                ..COMMON
            },
            Self::Windsurf => Spelling {
                urls: &["serverUrl", "url"],
                ..COMMON
            },
            Self::Codex => Spelling {
                headers: "http_headers",
                ..COMMON
            },
            Self::Gemini => Spelling {
                urls: &["httpUrl", "url"],
                ..COMMON
            },
            Self::Goose => Spelling {
                command: "cmd",
                environment: "envs",
                urls: &["uri"],
                types: Some(("stdio", "streamable_http")),
                ..COMMON
            },
            Self::Opencode => Spelling {
                arguments: None,
                environment: "environment",
                types: Some(("local", "remote")),
                ..COMMON
            },
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What has to be done before the client sees the change.
    pub fn after(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "quit Claude Desktop and start it again",
            Self::ClaudeCode => "start a new session; /mcp lists the server",
            Self::Cursor => "Cursor: Settings, MCP shows the server",
            Self::Vscode => "Visual Studio Code: the command MCP: List Servers shows the server",
            Self::Windsurf => "Windsurf: refresh the MCP servers in the Cascade panel",
            Self::Zed => "Zed restarts the server by itself; the agent panel's settings show it",
            Self::Codex => "start a new Codex session; /mcp lists the server",
            Self::Gemini => "start Gemini CLI again; /mcp lists the server",
            Self::Goose => "start a new Goose session",
            Self::Opencode => "start opencode again",
        }
    }

    /// The format of its files.
    pub fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
            _ => Format::Json,
        }
    }

    /// The file of this user; `None` where there is no home.
    pub fn of_user(self, places: &Places) -> Option<Location> {
        let home = places.home.as_deref()?;
        // The base directory: above our own configuration.
        let config = places.config.parent()?.to_path_buf();
        let base = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            config.clone()
        };
        let file = match self {
            Self::ClaudeDesktop => base.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => home.join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => base.join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => config.join("zed/settings.json"),
            Self::Codex => home.join(".codex/config.toml"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Goose => config.join("goose/config.yaml"),
            Self::Opencode => with_comments(config.join("opencode/opencode.json")),
        };
        Some(Location {
            file,
            create_folder: false,
        })
    }

    /// The file of the project in the current directory; `None` where the client knows none.
    pub fn of_project(self, places: &Places) -> Option<Location> {
        let name = match self {
            Self::ClaudeDesktop | Self::Windsurf | Self::Goose => return None,
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::Opencode => "opencode.json",
        };
        Some(Location {
            file: with_comments(places.absolute(name.as_ref())),
            create_folder: true,
        })
    }
}

/// `.jsonc` where that is the file that is there.
fn with_comments(file: PathBuf) -> PathBuf {
    let other = file.with_extension("jsonc");
    let is_other = !file.exists() && other.is_file();
    if is_other { other } else { file }
}
