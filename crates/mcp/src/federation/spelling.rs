//! Names of tools, prompts and resources of several servers, each with its server's name before it.

use std::fmt;
use std::sync::Arc;

use super::places::{self, Step};
use crate::call::form::ID_PREFIX;
use crate::message::method::CANCELLED;

/// Between a server's name and the name of its tool or prompt. No server's name contains it.
const SEPARATOR: &str = "__";

/// When names carry the name of their server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefix {
    /// Where there is more than one server.
    #[default]
    Auto,
    /// Also where there is only one.
    Always,
}

impl Prefix {
    /// The word in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
        }
    }

    /// Whether the names of this many servers stay as they are.
    #[must_use]
    pub fn is_bare(self, servers: usize) -> bool {
        self == Self::Auto && servers == 1
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How one server's names are spelled beside those of others.
#[derive(Debug, Clone)]
pub(crate) struct Spelling {
    server: Arc<str>,
    scheme: String,
}

impl Spelling {
    /// Of the server of this name.
    pub fn of(server: &Arc<str>) -> Self {
        Self {
            server: Arc::clone(server),
            scheme: scheme(server),
        }
    }

    /// A tool or a prompt.
    pub fn name(&self, own: &str) -> String {
        format!("{}{SEPARATOR}{own}", self.server)
    }

    /// The address of a resource, or a template of addresses.
    pub fn uri(&self, own: &str) -> String {
        format!("{}+{own}", self.scheme)
    }

    /// The server's own address in a spelled one; none where that is of another server.
    pub fn own_uri<'u>(&self, spelled: &'u str) -> Option<&'u str> {
        let (scheme, own) = split_uri(spelled)?;
        scheme.eq_ignore_ascii_case(&self.scheme).then_some(own)
    }

    /// An id or progress token that the server has chosen, as a JSON text.
    fn token(&self, raw: &str) -> String {
        serde_json::Value::from(format!("{}:{raw}", self.server)).to_string()
    }

    /// A message of the server as the client of several is told it: ids and progress tokens of the server's own
    /// requests, and the addresses of its resources.
    pub fn of_server(&self, frame: Vec<u8>) -> Vec<u8> {
        let mut edits = Vec::new();
        {
            let Ok(text) = std::str::from_utf8(&frame) else {
                return frame;
            };
            // Most messages are answers without an address in them. Names are in their one spelling here.
            if !(text.contains("\"method\"") || text.contains("\"uri\"")) {
                return frame;
            }
            let found = |path: &[Step]| places::at(text, path);
            let method = places::text_at(text, &[Step::In("method")]);
            match (method.as_deref(), found(&[Step::In("id")]).first()) {
                (Some(_), Some(id)) => {
                    self.respell(text, id, &mut edits);
                    for token in found(&places::TOKEN) {
                        self.respell(text, token, &mut edits);
                    }
                }
                (Some(CANCELLED), None) => {
                    for id in found(&[Step::In("params"), Step::In("requestId")]) {
                        self.respell(text, id, &mut edits);
                    }
                }
                _ if text.contains("\"uri\"") => {
                    let uris = places::URIS.iter().flat_map(|path| found(path));
                    edits.extend(uris.filter_map(|raw| self.edit_of_uri(text, raw)));
                }
                _ => return frame,
            }
        }
        places::edited(&frame, edits)
    }

    fn respell(&self, text: &str, raw: &str, edits: &mut Vec<places::Edit>) {
        // The ids of our own questions are nobody else's.
        if raw.trim_start_matches('"').starts_with(ID_PREFIX) {
            return;
        }
        if let Some(place) = places::place_of(text, raw) {
            edits.push((place, self.token(raw)));
        }
    }

    fn edit_of_uri(&self, text: &str, raw: &str) -> Option<places::Edit> {
        let own = wire::jsonrpc::string(raw)?;
        let spelled = serde_json::Value::from(self.uri(&own)).to_string();
        Some((places::place_of(text, raw)?, spelled))
    }
}

/// A server's name as the beginning of a URI's scheme, which has neither `_` nor capitals and begins with a
/// letter (RFC 3986 §3.1).
#[must_use]
pub fn scheme(server: &str) -> String {
    let plain = server.to_ascii_lowercase().replace('_', "-");
    match plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => plain,
        false => format!("mcp-{plain}"),
    }
}

/// The server and its own name out of a spelled name of a tool or prompt.
pub(crate) fn split_name(spelled: &str) -> Option<(&str, &str)> {
    spelled.split_once(SEPARATOR)
}

/// The scheme that stands for a server and the server's own URI out of a spelled one.
pub(crate) fn split_uri(spelled: &str) -> Option<(&str, &str)> {
    let (scheme, own) = spelled.split_once('+')?;
    (!scheme.contains(':')).then_some((scheme, own))
}

/// The server and the id or token that it has chosen, out of a spelled one.
pub(crate) fn split_token(spelled: &str) -> Option<(&str, &str)> {
    spelled.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(frame: &str) -> String {
        let spelling = Spelling::of(&Arc::from("my_files"));
        String::from_utf8(spelling.of_server(frame.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn names_and_addresses_come_apart_as_they_were_put_together() {
        for (server, own) in [("a", "b"), ("a", "_b"), ("a-b", "x__y"), ("A.b", "")] {
            let spelling = Spelling::of(&Arc::from(server));
            let name = spelling.name(own);
            assert_eq!(split_name(&name), Some((server, own)), "{name}");
            let uri = format!("file:///{own}+x");
            let spelled = spelling.uri(&uri);
            assert_eq!(split_uri(&spelled), Some((scheme(server).as_str(), &*uri)));
        }
        assert_eq!(split_uri("file:///a+b"), None);
        assert_eq!(split_name("read_file"), None);
        assert_eq!(scheme("9_A"), "mcp-9-a");
    }

    #[test]
    fn a_servers_own_ids_and_addresses_are_told_apart() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}"#,
                r#"{"jsonrpc":"2.0","id":"my_files:1","method":"sampling/createMessage","params":{"_meta":{"progressToken":"my_files:\"t\""}}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"my_files:\"a\""}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"my-files+file:///a"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"resource_link","uri":"x:y"},{"type":"resource","resource":{"uri":"x:z","text":"{\"uri\":1}"}}]}}"#,
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"resource_link","uri":"my-files+x:y"},{"type":"resource","resource":{"uri":"my-files+x:z","text":"{\"uri\":1}"}}]}}"#,
            ),
        ];
        for (frame, expect) in cases {
            assert_eq!(told(frame), expect);
        }
        for same in [
            r#"{"jsonrpc":"2.0","id":"durward-approval-1","method":"elicitation/create","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"\"uri\""}}"#,
        ] {
            assert_eq!(told(same), same);
        }
    }
}
