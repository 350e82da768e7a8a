//! The kinds of lists whose changes a server announces.

use super::method::{List, TOOLS_CHANGED};

/// The kinds of lists that somebody can be told about: the capability, its notification, its lists.
pub const KINDS: [(&str, &str, &[List]); 3] = [
    ("tools", TOOLS_CHANGED, &[List::Tools]),
    (
        "resources",
        "notifications/resources/list_changed",
        &[List::Resources, List::Templates],
    ),
    (
        "prompts",
        "notifications/prompts/list_changed",
        &[List::Prompts],
    ),
];

/// Which kinds a server has said it announces, in the order of [`KINDS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Announced([bool; 3]);

impl Announced {
    /// Read from the result of `initialize`.
    pub fn of(result: &str) -> Self {
        let result: serde_json::Value = serde_json::from_str(result).unwrap_or_default();
        Self(KINDS.map(|(kind, ..)| {
            let declared = result.get("capabilities").and_then(|all| all.get(kind));
            declared.and_then(|kind| kind.get("listChanged")) == Some(&true.into())
        }))
    }

    /// The kinds that are announced.
    pub fn kinds(
        self,
    ) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static [List])> {
        KINDS
            .iter()
            .zip(self.0)
            .filter_map(|(row, is)| is.then_some(row))
    }

    /// Whether changes of this list are.
    pub fn has(self, list: List) -> bool {
        self.kinds().any(|(.., lists)| lists.contains(&list))
    }
}

/// The lists that a notification says have changed.
pub fn changed_by(notification: &str) -> &'static [List] {
    let row = KINDS.iter().find(|(_, method, _)| *method == notification);
    row.map_or(&[], |(.., lists)| lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_announced_kinds_count() {
        for (result, expect) in [
            (
                r#"{"capabilities":{"tools":{"listChanged":true},"prompts":{}}}"#,
                &["tools"][..],
            ),
            (
                r#"{"capabilities":{"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":false}}}"#,
                &["resources", "prompts"],
            ),
            (r#"{"capabilities":{"tools":{"listChanged":"yes"}}}"#, &[]),
            (r#"{"capabilities":[]}"#, &[]),
            ("nonsense", &[]),
        ] {
            let kinds: Vec<&str> = Announced::of(result).kinds().map(|row| row.0).collect();
            assert_eq!(kinds, expect, "{result}");
        }
    }

    #[test]
    fn resources_and_their_templates_change_together() {
        let all = Announced::of(r#"{"capabilities":{"resources":{"listChanged":true}}}"#);
        assert!(all.has(List::Resources) && all.has(List::Templates) && !all.has(List::Tools));
        let changed = changed_by("notifications/resources/list_changed");
        assert_eq!(changed, [List::Resources, List::Templates]);
        assert_eq!(changed_by("notifications/message"), []);
    }
}
