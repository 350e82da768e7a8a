//! Ten file tools with the names and arguments of the server that the published measurements of
//! access proxies use, on the real file system, confined to roots.

mod act;
mod roots;
mod tree;

pub(crate) use roots::FileRoots;

use crate::json::{one_line, text_result};
use crate::server::{RequestFault, ServerIdentity, ServerSurface, ToolResult};

const TOOLS: &str = include_str!("tools.json");

/// The file server's state: its roots and the directory that relative paths start from.
#[derive(Debug, Clone)]
pub(crate) struct FileServer {
    roots: FileRoots,
    tools: String,
    announces: bool,
}

impl FileServer {
    pub(crate) fn new(roots: FileRoots) -> Self {
        Self {
            roots,
            tools: one_line(TOOLS),
            announces: false,
        }
    }

    /// Says that its list of tools may change, though it never does.
    pub(crate) fn announcing(mut self, announces: bool) -> Self {
        self.announces = announces;
        self
    }
}

impl ServerSurface for FileServer {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: "mock-files",
            title: "Files",
            instructions: "Reads and writes files beneath its roots.",
        }
    }

    fn tools(&mut self) -> String {
        self.tools.clone()
    }

    fn tools_change(&self) -> bool {
        self.announces
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Result<ToolResult, RequestFault> {
        let roots = &mut self.roots;
        let answer = match tool {
            "read_file" => act::read_file(roots, arguments),
            "write_file" => act::write_file(roots, arguments),
            "update_file" => act::update_file(roots, arguments),
            "list_files" => act::list_files(roots, arguments),
            "copy_path" => act::copy_path(roots, arguments),
            "move_path" => act::move_path(roots, arguments),
            "delete_file" => act::delete_file(roots, arguments),
            "delete_directory" => act::delete_directory(roots, arguments),
            "create_directory" => act::create_directory(roots, arguments),
            "set_filesystem_default" => act::set_filesystem_default(roots, arguments),
            _ => return Err(RequestFault::InvalidParams(format!("unknown tool {tool}"))),
        };
        // Bad input and failed I/O are tool errors, which a model can read (SEP-1303).
        Ok(ToolResult::now(match answer {
            Ok(text) => text_result(&text, false),
            Err(complaint) => text_result(&format!("{tool}: {complaint}"), true),
        }))
    }
}
