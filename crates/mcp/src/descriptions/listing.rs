//! Lists without what the caller may not see.

use std::sync::Arc;

use gate::World;
use gate::facts::{Facts, ResourceType};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use wire::{Bounds, scan_request};

use crate::describe::{self, Context};
use crate::descriptions::definitions;
use crate::message::method::List;

/// A list as its server sent it.
pub struct Listed<'a> {
    members: Members<'a>,
    /// The entries, in order.
    pub entries: Vec<Row<'a>>,
    /// Whether no further page is named.
    pub is_last: bool,
    /// Whether an entry was left out before anyone was asked what may be shown.
    pub is_cut: bool,
}

/// One entry.
pub struct Row<'a> {
    /// As it came.
    pub raw: &'a str,
    /// What it is called by: a name, or a URI.
    pub label: String,
    /// A tool's input schema.
    pub input_schema: serde_json::Value,
    /// Whether a tool declares an output schema.
    pub has_output_schema: bool,
}

/// The list of a reply, checked as strictly as a request: what is shown must be what was judged. `None`
/// where the result holds no list.
///
/// # Errors
/// A sentence, where the reply is not a list of this kind: it is then not passed on.
pub fn of_reply<'p>(
    list: List,
    frame: &[u8],
    payload: &'p str,
) -> Result<Option<Listed<'p>>, &'static str> {
    scan_request(frame, &Bounds::default()).map_err(|fault| fault.message)?;
    read(list, payload)
}

/// Reads a list's result. `None` where it holds no list: a Modern result may ask for input instead,
/// and there is nothing to hide in that.
///
/// # Errors
/// A sentence, where the result is not a list of this kind: it is then not passed on.
pub fn read(list: List, result: &str) -> Result<Option<Listed<'_>>, &'static str> {
    let members: Members<'_> =
        serde_json::from_str(result).map_err(|_| "the result is not an object")?;
    let Some(raw) = members.get(list.member()) else {
        return Ok(None);
    };
    let raw_entries: Vec<&RawValue> =
        serde_json::from_str(raw).map_err(|_| "the list is not an array")?;
    let mut entries = Vec::with_capacity(raw_entries.len());
    for raw in raw_entries {
        let named: Entry =
            serde_json::from_str(raw.get()).map_err(|_| "an entry of the list is not an object")?;
        let label = match list {
            List::Tools => named.name.ok_or("a tool has no name")?,
            List::Prompts => named.name.ok_or("a prompt has no name")?,
            List::Resources => named.uri.ok_or("a resource has no uri")?,
            List::Templates => named.uri_template.or(named.name).unwrap_or_default(),
        };
        entries.push(Row {
            raw: raw.get(),
            label,
            input_schema: named.input_schema,
            has_output_schema: named.output_schema.is_some(),
        });
    }
    let is_last = members.get("nextCursor").is_none_or(|raw| raw == "null");
    Ok(Some(Listed {
        members,
        entries,
        is_last,
        is_cut: false,
    }))
}

/// What is known of an entry when it is listed; `label` is its name or URI.
#[must_use]
pub fn facts_of(list: List, label: &str, context: &Context<'_>) -> Facts {
    match list {
        List::Tools => describe::listed(ResourceType::Tool, label, context),
        List::Prompts => describe::listed(ResourceType::Prompt, label, context),
        List::Resources => describe::listed(ResourceType::Resource, label, context),
        List::Templates => describe::listed_template(context),
    }
}

/// The result as the caller may see it: `None` where nothing had to be hidden or changed, so that
/// the reply passes as it came. `shown` holds what may be shown of each entry, in order.
#[must_use]
pub fn filter(
    list: List,
    listed: &Listed<'_>,
    shown: &[Arc<definitions::Entry>],
    world: &World,
    context: &Context<'_>,
) -> Option<String> {
    let mut kept = Vec::with_capacity(listed.entries.len());
    let (mut hidden, mut changed) = (listed.is_cut, false);
    for (row, entry) in listed.entries.iter().zip(shown) {
        let facts = facts_of(list, &row.label, context);
        if entry.screened.unseen_name || !world.may_be_listed(&facts) {
            hidden = true;
            continue;
        }
        changed |= entry.screened.text.is_some();
        kept.push(entry.screened.text.as_deref().unwrap_or(row.raw));
    }
    (hidden || changed).then(|| rebuild(&listed.members, list.member(), &kept, hidden))
}

/// The result with the kept entries. A list that depends on who asks must not be shared by caches
/// (2026-07-28, `cacheScope`).
fn rebuild(members: &Members<'_>, list: &str, kept: &[&str], hidden: bool) -> String {
    let mut out = String::from("{");
    for (name, raw) in &members.0 {
        if out.len() > 1 {
            out.push(',');
        }
        let mut key = Vec::new();
        wire::text::push_string(&mut key, name);
        out.push_str(&String::from_utf8_lossy(&key));
        out.push(':');
        match name.as_str() {
            name if name == list => {
                out.push('[');
                out.push_str(&kept.join(","));
                out.push(']');
            }
            "cacheScope" if hidden => out.push_str("\"private\""),
            _ => out.push_str(raw.get()),
        }
    }
    out.push('}');
    out
}

#[derive(serde::Deserialize)]
struct Entry {
    name: Option<String>,
    uri: Option<String>,
    #[serde(default, rename = "uriTemplate")]
    uri_template: Option<String>,
    #[serde(default, rename = "inputSchema")]
    input_schema: serde_json::Value,
    #[serde(default, rename = "outputSchema")]
    output_schema: Option<IgnoredAny>,
}

/// Members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let (_, raw) = self.0.iter().find(|(key, _)| key == name)?;
        Some(raw.get())
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> serde::de::Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reader).map(Members)
    }
}
