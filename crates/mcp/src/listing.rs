//! Lists without what the caller may not see.

use gate::Gate;
use gate::facts::{Facts, ResourceType};
use serde_json::value::RawValue;

use crate::describe::{self, Context};
use crate::method::List;

/// Filters a list's result. `None` where nothing had to be hidden: the reply then passes as it came.
/// Also gives how many entries were hidden, and each tool's name and input schema to learn from.
///
/// # Errors
/// A sentence, where the result is not a list of this kind: it is then not passed on.
pub fn filter(
    list: List,
    result: &str,
    gate: &Gate,
    context: &Context<'_>,
) -> Result<Filtered, &'static str> {
    let members: Members<'_> =
        serde_json::from_str(result).map_err(|_| "the result is not an object")?;
    let Some((_, raw)) = members.0.iter().find(|(name, _)| name == list.member()) else {
        // A Modern result may ask for input instead; there is nothing to hide in that.
        return Ok(Filtered::default());
    };
    let entries: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| "the list is not an array")?;
    let mut filtered = Filtered::default();
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        let named: Entry = serde_json::from_str(entry.get())
            .map_err(|_| "an entry of the list is not an object")?;
        let label = match list {
            List::Tools => named.name.as_deref().ok_or("a tool has no name")?,
            List::Prompts => named.name.as_deref().ok_or("a prompt has no name")?,
            List::Resources => named.uri.as_deref().ok_or("a resource has no uri")?,
            List::Templates => "",
        };
        let shown = gate.may_be_listed(&facts_of(list, label, context));
        if shown {
            kept.push(entry.get());
        } else {
            filtered.hidden += 1;
        }
        filtered.judged.push((label.to_owned(), shown));
        if let (List::Tools, Some(name)) = (list, named.name) {
            filtered.schemas.push((name, named.input_schema));
        }
    }
    if filtered.hidden > 0 {
        filtered.result = Some(rebuild(&members, list.member(), &kept));
    }
    Ok(filtered)
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

/// What filtering gave.
#[derive(Debug, Default)]
pub struct Filtered {
    /// The new result, where entries were hidden.
    pub result: Option<String>,
    /// How many were hidden.
    pub hidden: usize,
    /// Each entry's name or URI, and whether it is shown.
    pub judged: Vec<(String, bool)>,
    /// Tools and their input schemas.
    pub schemas: Vec<(String, serde_json::Value)>,
}

/// The result with the kept entries. A list that depends on who asks must not be shared by caches
/// (2026-07-28, `cacheScope`).
fn rebuild(members: &Members<'_>, list: &str, kept: &[&str]) -> String {
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
            "cacheScope" => out.push_str("\"private\""),
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
    #[serde(default, rename = "inputSchema")]
    input_schema: serde_json::Value,
}

/// Members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

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
