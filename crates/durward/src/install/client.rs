//! The MCP clients: where each keeps its servers, and how it spells one.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::places::Places;

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
}

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: PathBuf,
    /// Its folder may be created: it belongs to the project, not to an installed client.
    pub create_folder: bool,
}

impl Client {
    /// The member of the configuration that holds the servers.
    pub fn section(self) -> &'static str {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor => "mcpServers",
            Self::Vscode => "servers",
        }
    }

    /// Whether an entry states its transport.
    pub fn states_type(self) -> bool {
        match self {
            Self::ClaudeCode | Self::Vscode => true,
            Self::ClaudeDesktop | Self::Cursor => false,
        }
    }

    /// What has to be done before the client sees the change.
    pub fn after(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "quit Claude Desktop and start it again",
            Self::ClaudeCode => "start a new session; /mcp lists the server",
            Self::Cursor => "Cursor: Settings, MCP shows the server",
            Self::Vscode => "Visual Studio Code: the command MCP: List Servers shows the server",
        }
    }

    /// The file of this user; `None` where there is no home.
    pub fn of_user(self, places: &Places) -> Option<Location> {
        let home = places.home.as_deref()?;
        // The base directory: above our own configuration.
        let base = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            places.config.parent()?.to_path_buf()
        };
        let file = match self {
            Self::ClaudeDesktop => base.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => home.join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => base.join("Code/User/mcp.json"),
        };
        Some(Location {
            file,
            create_folder: false,
        })
    }

    /// The file of the project in the current directory; `None` where the client knows none.
    pub fn of_project(self, places: &Places) -> Option<Location> {
        let name = match self {
            Self::ClaudeDesktop => return None,
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
        };
        Some(Location {
            file: places.absolute(name.as_ref()),
            create_folder: true,
        })
    }
}
