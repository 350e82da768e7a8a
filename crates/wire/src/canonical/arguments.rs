//! Names in the arguments of a call that can be read as one another.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Canonical;
use crate::error::WireError;
use crate::{fold, text};

/// How many names of one object are compared pair by pair.
const PAIRWISE_MAX: usize = 16;

/// The argument names that a tool's schema declares.
///
/// A path is the member names from `arguments` down to an object; elements of arrays stand for
/// their array. The empty path is `arguments` itself.
pub trait Declared {
    /// Whether the schema declares this very name for the object at `path`.
    fn declares(&self, path: &[Cow<'_, str>], name: &str) -> bool;

    /// A name that the schema declares for the object at `path` and that [`fold::same`] takes for
    /// `name`, if there is one.
    fn like(&self, path: &[Cow<'_, str>], name: &str) -> Option<&str>;
}

/// Declared names as a tree. An empty one declares nothing: that of a tool whose schema is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameTree {
    names: BTreeMap<String, NameTree>,
}

impl NameTree {
    /// Declares a name, and gives the tree of the object (or of the objects in the array) that its
    /// value may be.
    pub fn declare(&mut self, name: &str) -> &mut Self {
        self.names.entry(name.to_owned()).or_default()
    }

    fn at(&self, path: &[Cow<'_, str>]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |tree, step| tree.names.get(step.as_ref()))
    }
}

impl Declared for NameTree {
    fn declares(&self, path: &[Cow<'_, str>], name: &str) -> bool {
        self.at(path)
            .is_some_and(|tree| tree.names.contains_key(name))
    }

    fn like(&self, path: &[Cow<'_, str>], name: &str) -> Option<&str> {
        let mut known = self.at(path)?.names.keys();
        known
            .find(|known| fold::same(known, name))
            .map(String::as_str)
    }
}

/// A member name below `arguments`.
struct Named<'a> {
    object: u32,
    name: Cow<'a, str>,
    at: usize,
}

pub(super) fn check(frame: &Canonical, declared: &impl Declared) -> Result<(), WireError> {
    if is_declared(frame, declared) {
        return Ok(());
    }
    let leaves = frame.noted.notes.leaves.iter();
    let mut names: Vec<Named<'_>> = leaves
        .filter(|leaf| leaf.is_name)
        .filter_map(|leaf| {
            Some(Named {
                object: leaf.object?,
                name: text::unescape(frame.slice(&leaf.value)?)?,
                at: leaf.value.start,
            })
        })
        .collect();
    // Names of an object are apart where other objects stand between them.
    names.sort_by_key(|named| named.object);
    let mut paths = Paths::of(frame);
    for object in names.chunk_by(|a, b| a.object == b.object) {
        let Some(first) = object.first() else {
            continue;
        };
        check_object(object, paths.to(first.object), declared)?;
    }
    Ok(())
}

/// Whether the arguments are one object, of which each name is declared: so nearly all are.
fn is_declared(frame: &Canonical, declared: &impl Declared) -> bool {
    let is_declared = |value| {
        let name = frame.slice(value).and_then(text::unescape);
        name.is_some_and(|name| declared.declares(&[], &name))
    };
    let mut leaves = frame.noted.notes.leaves.iter();
    frame.noted.notes.objects.len() == 1
        && leaves.all(|leaf| !leaf.is_name || is_declared(&leaf.value))
}

fn check_object(
    names: &[Named<'_>],
    path: &[Cow<'_, str>],
    declared: &impl Declared,
) -> Result<(), WireError> {
    let mut others = Vec::new();
    for named in names {
        if declared.declares(path, &named.name) {
            continue;
        }
        if let Some(other) = declared.like(path, &named.name) {
            return Err(WireError::ambiguous_argument(named.at, &named.name, other));
        }
        others.push(named);
    }
    // What is left is like no declared name.
    match alike(&others) {
        Some((a, b)) => Err(WireError::ambiguous_argument(b.at, &b.name, &a.name)),
        None => Ok(()),
    }
}

/// Two names that can be read as one another. Quadratic for few names, else by sorting.
fn alike<'n>(names: &[&'n Named<'n>]) -> Option<(&'n Named<'n>, &'n Named<'n>)> {
    if names.len() <= PAIRWISE_MAX {
        return names.iter().enumerate().find_map(|(i, a)| {
            let mut later = names.iter().skip(i + 1);
            Some((*a, *later.find(|b| fold::same(&a.name, &b.name))?))
        });
    }
    let folded = |named: &'n Named<'n>| (fold::folded(&named.name).collect::<String>(), named);
    let mut keyed: Vec<(String, &Named<'_>)> = names.iter().map(|named| folded(named)).collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.windows(2).find_map(|pair| match pair {
        [a, b] if a.0 == b.0 => Some((a.1, b.1)),
        _ => None,
    })
}

/// The paths of objects. That of the last object's parent is kept, since objects stand together.
struct Paths<'a> {
    frame: &'a Canonical,
    path: Vec<Cow<'a, str>>,
    /// The object whose path the kept one begins with, and how long that is.
    parent: Option<(u32, usize)>,
}

impl<'a> Paths<'a> {
    fn of(frame: &'a Canonical) -> Self {
        Self {
            frame,
            path: Vec::new(),
            parent: None,
        }
    }

    fn to(&mut self, object: u32) -> &[Cow<'a, str>] {
        let Some((name, above)) = self.step(object) else {
            self.path.clear();
            self.parent = None;
            return &self.path;
        };
        match self.parent {
            Some((parent, length)) if Some(parent) == above => self.path.truncate(length),
            _ => {
                self.path.clear();
                let mut next = above;
                while let Some((name, above)) = next.and_then(|object| self.step(object)) {
                    self.path.push(name);
                    next = above;
                }
                self.path.reverse();
                self.parent = above.map(|above| (above, self.path.len()));
            }
        }
        self.path.push(name);
        &self.path
    }

    /// The name under which an object stands, and the object in which that is.
    fn step(&self, object: u32) -> Option<(Cow<'a, str>, Option<u32>)> {
        let notes = &self.frame.noted.notes;
        let object = notes.objects.get(usize::try_from(object).ok()?)?;
        let leaf = notes.leaves.get(usize::try_from(object.name?).ok()?)?;
        let name = text::unescape(self.frame.slice(&leaf.value)?)?;
        Some((name, leaf.object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, WireErrorKind};

    fn judged(arguments: &str, declared: &NameTree) -> Result<(), (String, String)> {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        );
        let canonical = Canonical::of(frame.as_bytes(), &Bounds::default()).unwrap();
        canonical.arguments_are(declared).map_err(|error| {
            assert_eq!(error.kind, WireErrorKind::AmbiguousArgument);
            let names = error.names.unwrap();
            (names.name, names.other)
        })
    }

    fn refused(name: &str, other: &str) -> Result<(), (String, String)> {
        Err((name.to_owned(), other.to_owned()))
    }

    #[test]
    fn names_that_can_be_read_as_one_another_are_refused() {
        let none = NameTree::default();
        let cases = [
            (r#"{"path":"a","mode":"b"}"#, Ok(())),
            (r#"{"path":"a","Path":"b"}"#, refused("Path", "path")),
            (r#"{"user_id":1,"userId":2}"#, refused("userId", "user_id")),
            (r#"{"list":[{"a":1},{"A":2}]}"#, Ok(())),
            (r#"{"a":{"x":1,"b":{"A":1},"X":2}}"#, refused("X", "x")),
            (r#"{"list":[{"a":1,"\u0041":2}]}"#, refused("A", "a")),
            (r#"{"a\nb":{"\n":1},"A_\nB":2}"#, refused("A_\nB", "a\nb")),
            (r#"[{"k":1,"\u212a":2}]"#, refused("\u{212a}", "k")),
            (r#"{"l":[[{"k":1,"\u212a":2}]]}"#, refused("\u{212a}", "k")),
        ];
        for (arguments, expect) in cases {
            assert_eq!(judged(arguments, &none), expect, "{arguments}");
        }
    }

    #[test]
    fn a_declared_name_is_never_refused() {
        let mut declared = NameTree::default();
        for name in ["path", "user_id", "userId"] {
            declared.declare(name);
        }
        let edit = declared.declare("edits");
        edit.declare("oldText");
        edit.declare("inner").declare("Deep");
        let cases = [
            (r#"{"user_id":1,"userId":2}"#, Ok(())),
            (
                r#"{"user_id":1,"userId":2,"USERID":3}"#,
                refused("USERID", "userId"),
            ),
            (r#"{"Path":"b"}"#, refused("Path", "path")),
            (
                r#"{"edits":[{"oldText":""},{"old_text":""}]}"#,
                refused("old_text", "oldText"),
            ),
            (r#"{"edits":[{"inner":{"Deep":1},"x":{"deep":1}}]}"#, Ok(())),
            (
                r#"{"edits":[{"z":{"q":1},"inner":{"deep":1}}]}"#,
                refused("deep", "Deep"),
            ),
            (
                r#"{"other":{"path":1,"Path_":2}}"#,
                refused("Path_", "path"),
            ),
            (r#"{"other":{"Path":1}}"#, Ok(())),
            (r#"{"user_id":1,"userId":2,"a":1,"A":2}"#, refused("A", "a")),
        ];
        for (arguments, expect) in cases {
            assert_eq!(judged(arguments, &declared), expect, "{arguments}");
        }
    }

    #[test]
    fn alike_names_are_found_among_many() {
        let mut names: Vec<String> = (0..500).map(|i| format!("\"k{i}\":0")).collect();
        let none = NameTree::default();
        let object = |names: &[String]| format!("{{{}}}", names.join(","));
        assert_eq!(judged(&object(&names), &none), Ok(()));
        names.push("\"K_250\":1".into());
        assert_eq!(judged(&object(&names), &none), refused("K_250", "k250"));
    }
}
