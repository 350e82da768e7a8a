//! What a completion reaches for: the resource or template that it refers to, and the value that is to
//! be completed. A server that completes a path tells what is in a directory.

use std::borrow::Cow;

use gate::paths::{PathArgument, PathView, Role, looks_like_path, meanings, role_of_key};
use serde_json::Value;
use wire::jsonrpc::member;
use wire::scan::Scan;

use super::path_of_uri;

/// A completion's reference and argument.
pub(super) struct Completion {
    /// The URI, or the template of URIs, that it refers to.
    pub uri: Option<String>,
    /// The argument's name and the value so far.
    argument: Option<(String, String)>,
}

impl Completion {
    /// Reads it out of a request; a member that is not there, or is no text, is none.
    pub fn of(scan: &Scan<'_>) -> Self {
        let read =
            |name| -> Option<Value> { serde_json::from_str(member(&scan.params, name)?).ok() };
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let argument = read("argument");
        Self {
            uri: read("ref").and_then(|reference| text(&reference, "uri")),
            argument: argument.and_then(|a| Some((text(&a, "name")?, text(&a, "value")?))),
        }
    }

    /// The paths in it: the reference, the value where it is a path by its name or its looks, and the
    /// resource that template and value make together.
    pub fn paths(&self, view: Option<&dyn PathView>) -> Vec<PathArgument> {
        let mut out: Vec<PathArgument> = Vec::new();
        out.extend(self.uri.as_deref().map(|uri| path_of_uri(uri, view)));
        let Some((name, value)) = self.argument.as_ref().filter(|(_, v)| !v.is_empty()) else {
            return out;
        };
        let whole = self.uri.as_deref().map(|uri| expanded(uri, name, value));
        if let Some(Cow::Owned(whole)) = whole {
            out.push(path_of_uri(&whole, view));
        }
        let role = role_of_key(name).or_else(|| looks_like_path(value).then_some(Role::Shape));
        out.extend(role.map(|role| PathArgument {
            text: value.clone(),
            role,
            content: false,
            meaning: meanings(value, view),
        }));
        out
    }
}

/// A template (RFC 6570) with the value in the place of every expression that has this variable.
fn expanded<'t>(template: &'t str, name: &str, value: &str) -> Cow<'t, str> {
    let mut out = String::new();
    let (mut rest, mut found) = (template, false);
    while let Some((before, (inside, after))) = rest
        .split_once('{')
        .and_then(|(before, behind)| Some((before, behind.split_once('}')?)))
    {
        out.push_str(before);
        let variables = inside.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        let has = |v: &str| v.trim_end_matches('*').split(':').next() == Some(name);
        if variables.split(',').any(has) {
            found = true;
            if inside.starts_with('/') {
                out.push('/');
            }
            out.push_str(value);
        } else {
            out.push_str(&format!("{{{inside}}}"));
        }
        rest = after;
    }
    if !found {
        return Cow::Borrowed(template);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_their_templates() {
        let cases = [
            ("file:///{path}", "path", "etc/x", "file:///etc/x"),
            ("file://{/path*}", "path", "etc", "file:///etc"),
            ("m://{a}/{+b}", "b", "x", "m://{a}/x"),
            ("m://{a,b:3}", "b", "x", "m://x"),
            ("m://{a}", "b", "x", "m://{a}"),
            ("m://{a", "a", "x", "m://{a"),
            ("m://a", "a", "x", "m://a"),
        ];
        for (template, name, value, whole) in cases {
            assert_eq!(expanded(template, name, value), whole, "{template} {name}");
        }
    }
}
