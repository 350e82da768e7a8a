//! The places that a call touches, and whether it may change what other calls find there.

use super::{Direction, Fact, FactId, Facts, ResourceType};

/// Most places that are compared one by one; a call with more of them overlaps every other.
pub const PLACES_MAX: usize = 64;

/// Side effects through which a link can come to be where there was none.
const MAKES_LINKS: [&str; 6] = [
    "fs_write",
    "code_exec",
    "process_spawn",
    "sudo_elevate",
    "container_exec",
    "cloud_api",
];
/// What one call touches in the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The server that the call goes to.
    server: Box<str>,
    /// It may make links, or put others in their place.
    writes: bool,
    /// Nobody can say what else it touches.
    anywhere: bool,
    /// Absolute places, as they are spelled and where their links lead.
    places: Vec<Box<str>>,
    /// Relative paths of a writing call, below a directory that only its server knows.
    relative: Vec<Box<str>>,
}

impl Touched {
    /// What a call touches by its facts; `None` where no order matters: it names no place, and is not known to
    /// write one.
    pub fn of(facts: &Facts) -> Option<Self> {
        let writes = makes_links(facts);
        let is_unread = facts.reach.unread || facts.paths.is_unknown();
        let names_none = facts.paths.known().is_none_or(Vec::is_empty)
            && facts.reach.count() + facts.reach.relative.len() == 0;
        if names_none && !is_unread && !(writes && writes_unnamed(facts)) {
            return None;
        }
        let mut touched = Self {
            server: facts.backend_id.as_str().into(),
            writes,
            anywhere: is_unread,
            places: Vec::new(),
            relative: Vec::new(),
        };
        if let Fact::Known(paths) = &facts.paths {
            for path in paths {
                let places = path.meaning.places.iter();
                places.for_each(|place| touched.add(place));
                // A link that cannot be followed leads to places that are not among them.
                touched.anywhere |= writes && path.meaning.uncertain;
            }
        }
        let reach = &facts.reach;
        reach.places.iter().for_each(|place| touched.add(place));
        reach.globs.iter().for_each(|glob| touched.add(fixed(glob)));
        if writes {
            let relative = reach.relative.iter().take(PLACES_MAX);
            touched.relative = relative.map(|text| text.as_str().into()).collect();
            touched.anywhere |= reach.relative.len() > PLACES_MAX;
            touched.write_beside(facts);
        }
        let names_some = touched.anywhere || touched.places.len() + touched.relative.len() > 0;
        names_some.then_some(touched)
    }

    fn add(&mut self, place: &str) {
        if !place.starts_with('/') || self.places.iter().any(|known| **known == *place) {
            return;
        }
        if self.places.len() < PLACES_MAX {
            self.places.push(place.into());
        } else {
            self.anywhere = true;
        }
    }

    /// Adds what is written without being named.
    fn write_beside(&mut self, facts: &Facts) {
        if writes_beside(facts) {
            let above: Vec<String> = self
                .places
                .iter()
                .filter_map(|place| Some(place.rsplit_once('/')?.0.to_owned()))
                .collect();
            for place in above {
                self.add(if place.is_empty() { "/" } else { &place });
            }
        }
        if self.places.is_empty() && self.relative.is_empty() && writes_unnamed(facts) {
            self.anywhere = true;
        }
    }

    /// Whether it may change what others find at their places.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Whether the order of the two matters: one of them writes at or above a place of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        (self.writes && self.may_change(other)) || (other.writes && other.may_change(self))
    }

    /// Whether a link that this call makes may lie on the way to a place of the other.
    fn may_change(&self, other: &Self) -> bool {
        let is_same_server = self.server == other.server;
        if is_same_server && (self.anywhere || other.anywhere) {
            return true;
        }
        other.places.iter().any(|place| {
            self.places
                .iter()
                .any(|written| is_at_or_above(written, place))
                || (is_same_server && self.relative.iter().any(|text| holds(place, text)))
        })
    }
}

/// Whether a call may make a link. What only reads cannot, nor can a tool whose known effects lie elsewhere.
fn makes_links(facts: &Facts) -> bool {
    if facts.direction != Direction::ToServer || facts.method == "completion/complete" {
        return false;
    }
    match facts.resource_type {
        Some(ResourceType::Resource | ResourceType::Prompt) => return false,
        Some(ResourceType::Tool | ResourceType::Server | ResourceType::Model) | None => {}
    }
    if let Fact::Known(said) = facts.get(FactId::ReadsOnly)
        && said.texts().any(|word| word == "yes")
    {
        return false;
    }
    facts
        .side_effects_known()
        .is_none_or(|effects| effects.iter().any(|effect| MAKES_LINKS.contains(effect)))
}

/// Returns whether the call writes what its arguments do not name.
fn writes_beside(facts: &Facts) -> bool {
    facts.effects().is_some_and(|effects| effects.writes_beside)
}

/// Whether a writing call that names no place writes files all the same.
fn writes_unnamed(facts: &Facts) -> bool {
    let effects = facts.side_effects_known();
    writes_beside(facts) || effects.is_some_and(|effects| effects.contains(&"fs_write"))
}

/// The directory in which a glob begins.
fn fixed(glob: &str) -> &str {
    let wild = glob.find(['*', '?', '[', '{']).unwrap_or(glob.len());
    let before = glob.get(..wild).unwrap_or_default();
    match before.rfind('/') {
        Some(0) | None => "/",
        Some(at) if wild < glob.len() => before.get(..at).unwrap_or("/"),
        Some(_) => before,
    }
}

/// Whether `place` is `above`, or lies below it.
fn is_at_or_above(above: &str, place: &str) -> bool {
    above == "/"
        || place
            .strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a relative path, below whichever directory, lies at a place or above it.
fn holds(place: &str, relative: &str) -> bool {
    let parts = || place.split('/').filter(|part| !part.is_empty());
    let wanted: Vec<&str> = relative
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    (0..parts().count()).any(|at| {
        let mut here = parts().skip(at);
        wanted.iter().all(|part| here.next() == Some(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::{PathArgument, Role, canonical::Meaning};

    fn call(tool: &str, places: &[&str]) -> Option<Touched> {
        let argument = |place: &&str| PathArgument {
            text: (*place).to_owned(),
            role: Role::Path,
            content: false,
            meaning: Meaning {
                places: vec![(*place).to_owned()],
                ..Meaning::default()
            },
        };
        Touched::of(&Facts {
            backend_id: "files".into(),
            method: "tools/call".into(),
            resource_type: Some(ResourceType::Tool),
            tool_name: Fact::Known(tool.to_owned()),
            paths: Fact::Known(places.iter().map(argument).collect()),
            ..Facts::default()
        })
    }

    #[test]
    fn j09_a_write_at_or_above_a_place_matters_to_whoever_goes_there() {
        for (first, places, second, others, expect) in [
            (
                "write_file",
                &["/open/a"][..],
                "read_file",
                &["/open/a"][..],
                true,
            ),
            (
                "move_file",
                &["/x", "/open/new"],
                "read_file",
                &["/open/new/l/x"],
                true,
            ),
            ("make_it", &["/open"], "read_file", &["/open/l"], true),
            (
                "read_file",
                &["/open/l/x"],
                "move_file",
                &["/x", "/open/l"],
                true,
            ),
            ("write_file", &["/open/a"], "write_file", &["/open/a"], true),
            ("unzip", &["/open/a.zip"], "read_file", &["/open/l"], true),
            ("symlink", &[], "read_file", &["/open/l"], true),
            ("write_file", &["/open/a"], "read_file", &["/open/b"], false),
            (
                "write_file",
                &["/open/a"],
                "read_file",
                &["/open/ab"],
                false,
            ),
            (
                "write_file",
                &["/open/a/b"],
                "list_directory",
                &["/open/a"],
                false,
            ),
            ("read_file", &["/open/a"], "read_file", &["/open/a"], false),
            ("query", &["/open/a"], "read_file", &["/open/a"], false),
        ] {
            let first_call = call(first, places).unwrap();
            let second_call = call(second, others).unwrap();
            let said = format!("{first} {places:?}, {second} {others:?}");
            assert_eq!(first_call.overlaps(&second_call), expect, "{said}");
            assert_eq!(second_call.overlaps(&first_call), expect, "{said}");
        }
    }

    #[test]
    fn calls_that_name_no_place_have_no_order_but_for_those_that_write_files() {
        assert_eq!(call("echo", &[]), None);
        assert_eq!(call("sleep", &[]), None);
        assert_eq!(call("read_file", &[]), None);
        assert!(call("create_file", &[]).is_some_and(|touched| touched.anywhere));
    }

    #[test]
    fn a_relative_path_may_lie_below_any_directory_of_its_server() {
        let mut facts = Facts {
            backend_id: "files".into(),
            resource_type: Some(ResourceType::Tool),
            tool_name: Fact::Known("write_file".into()),
            paths: Fact::Known(Vec::new()),
            ..Facts::default()
        };
        facts.reach.relative.push("notes/l".into());
        let writes = Touched::of(&facts).unwrap();
        assert!(writes.overlaps(&call("read_file", &["/srv/notes/l/x"]).unwrap()));
        assert!(!writes.overlaps(&call("read_file", &["/srv/notes/x"]).unwrap()));
        facts.backend_id = "others".into();
        let elsewhere = Touched::of(&facts).unwrap();
        assert!(!elsewhere.overlaps(&call("read_file", &["/srv/notes/l/x"]).unwrap()));
    }

    #[test]
    fn a_call_with_very_many_places_overlaps_every_writing_call_of_its_server() {
        let places: Vec<String> = (0..=PLACES_MAX).map(|at| format!("/a/{at}")).collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let many = call("read_multiple_files", &places).unwrap();
        assert!(many.anywhere);
        assert!(many.overlaps(&call("write_file", &["/b"]).unwrap()));
        assert!(!many.overlaps(&call("read_file", &["/b"]).unwrap()));
    }

    #[test]
    fn globs_begin_in_their_fixed_directory() {
        for (glob, directory) in [
            ("/open/l*/x", "/open"),
            ("/open/l/*", "/open/l"),
            ("/*", "/"),
            ("/open/l", "/open/l"),
        ] {
            assert_eq!(fixed(glob), directory, "{glob}");
        }
    }
}
