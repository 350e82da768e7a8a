//! A pattern over paths, held against what is no plain place: a path below a directory that nobody knows,
//! a glob, a directory that is read with all that lies below it.

/// A pattern by its components.
#[derive(Debug, Clone)]
pub(super) struct Target {
    parts: Vec<String>,
}

/// Most components of a pattern, and of a text times those, that are compared: beyond that they may meet.
const CELLS_MAX: usize = 1 << 20;

impl Target {
    /// A path glob, `**` included.
    pub fn of(pattern: &str) -> Self {
        let parts = pattern.split('/').filter(|part| !part.is_empty());
        Self {
            parts: parts.map(str::to_owned).collect(),
        }
    }

    /// A place with all that lies below it.
    pub fn at_or_below(place: &str) -> Self {
        let mut target = Self::of(place);
        target.parts.push("**".into());
        target
    }

    /// Whether a relative text leads here from some directory: the pattern's end is what it says. An end
    /// that is all wildcards says nothing.
    pub fn ends(&self, relative: &str) -> bool {
        let names: Vec<&str> = relative
            .split('/')
            .filter(|name| !name.is_empty())
            .collect();
        (0..self.parts.len()).any(|from| {
            let end = self.parts.get(from..).unwrap_or_default();
            end.iter().any(|part| !is_wild(part)) && meet(end, &names, !self.is_by_name())
        })
    }

    /// Whether the pattern goes on below a place, through components that it names or that are a name each:
    /// `/srv/*/keys/**` does below `/srv` and `/srv/a`. What is matched by its name wherever it lies is at
    /// no place.
    pub fn is_below(&self, place: &str) -> bool {
        let mut parts = self.parts.iter();
        let mut names = place.split('/').filter(|name| !name.is_empty());
        names.all(|name| {
            parts
                .next()
                .is_some_and(|part| part != "**" && component(part, name))
        })
    }

    /// Whether some path matches the pattern and an absolute glob. What is matched by its name wherever it
    /// lies has to be named by the glob: below nearly every directory there could be one.
    pub fn meets(&self, glob: &str) -> bool {
        let names: Vec<&str> = glob.split('/').filter(|name| !name.is_empty()).collect();
        meet(&self.parts, &names, !self.is_by_name())
    }

    fn is_by_name(&self) -> bool {
        self.parts.first().is_some_and(|part| part == "**")
    }
}

fn is_wild(part: &str) -> bool {
    part.chars().all(|c| matches!(c, '*' | '?'))
}

/// Whether one list of components matches both; `**` stands for any number of them in either. That of the
/// text stands for named components of the pattern where `absorbs`.
fn meet(parts: &[String], names: &[&str], absorbs: bool) -> bool {
    let width = names.len() + 1;
    if (parts.len() + 1).saturating_mul(width) > CELLS_MAX {
        return true;
    }
    // Whether the parts from here meet the names from `at`, for every `at`, from the last part on.
    let mut behind: Vec<bool> = (0..width)
        .map(|at| names.iter().skip(at).all(|name| *name == "**"))
        .collect();
    for part in parts.iter().rev() {
        let mut here = vec![false; width];
        for at in (0..width).rev() {
            let name = names.get(at).copied();
            let next_here = here.get(at + 1).copied().unwrap_or(false);
            let here_behind = behind.get(at).copied().unwrap_or(false);
            let met = if part == "**" {
                here_behind || next_here
            } else {
                let one = name.is_some_and(|name| name != "**" && component(part, name))
                    && behind.get(at + 1).copied().unwrap_or(false);
                // A `**` of the text is nothing, or takes this part and goes on.
                one || (name == Some("**") && (next_here || (absorbs && here_behind)))
            };
            if let Some(cell) = here.get_mut(at) {
                *cell = met;
            }
        }
        behind = here;
    }
    behind.first().copied().unwrap_or(false)
}

/// What one character of a component may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum One {
    Is(char),
    Any,
    Many,
}

/// Whether one name matches both components. In the text `[…]` may be any character and `{…}` anything; in
/// the pattern they stand for themselves, as everywhere.
fn component(part: &str, name: &str) -> bool {
    if !part.contains(['*', '?']) && !name.contains(['*', '?', '[', '{']) {
        return part == name;
    }
    let part: Vec<One> = part.chars().map(one).collect();
    let mut of_name = Vec::new();
    let mut inside: Option<char> = None;
    for c in name.chars() {
        match (inside, c) {
            (Some(close), c) if c == close => inside = None,
            (Some(_), _) => {}
            (None, '[') => {
                inside = Some(']');
                of_name.push(One::Any);
            }
            (None, '{') => {
                inside = Some('}');
                of_name.push(One::Many);
            }
            (None, c) => of_name.push(one(c)),
        }
    }
    if inside.is_some() {
        // It is never closed, and stands for itself or for anything.
        of_name.push(One::Many);
    }
    same(&part, &of_name) || name.chars().map(One::Is).collect::<Vec<_>>() == part
}

fn one(c: char) -> One {
    match c {
        '*' => One::Many,
        '?' => One::Any,
        c => One::Is(c),
    }
}

fn same(a: &[One], b: &[One]) -> bool {
    let width = b.len() + 1;
    if (a.len() + 1).saturating_mul(width) > CELLS_MAX {
        return true;
    }
    let mut behind: Vec<bool> = (0..width)
        .map(|at| b.iter().skip(at).all(|one| *one == One::Many))
        .collect();
    for left in a.iter().rev() {
        let mut here = vec![false; width];
        for at in (0..width).rev() {
            let right = b.get(at).copied();
            let next_here = here.get(at + 1).copied().unwrap_or(false);
            let here_behind = behind.get(at).copied().unwrap_or(false);
            let both_behind = behind.get(at + 1).copied().unwrap_or(false);
            let met = match (*left, right) {
                (One::Many, None) => here_behind,
                (One::Many, Some(_)) | (_, Some(One::Many)) => here_behind || next_here,
                (_, None) => false,
                (One::Any, Some(_)) | (One::Is(_), Some(One::Any)) => both_behind,
                (One::Is(a), Some(One::Is(b))) => a == b && both_behind,
            };
            if let Some(cell) = here.get_mut(at) {
                *cell = met;
            }
        }
        behind = here;
    }
    behind.first().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_patterns_are_found_below_any_directory() {
        for (pattern, relative, expect) in [
            ("/srv/secret/**", "secret/x.pem", true),
            ("/srv/secret/**", "srv/secret", true),
            ("/srv/secret/**", "x/secret/y", false),
            ("/srv/secret/**", "open/x", false),
            ("/srv/a/policy.json", "policy.json", true),
            ("/etc/**", "etc/passwd", true),
            ("/etc/**", "x", false),
            ("**/*.pem", "a/x.pem", true),
            ("**/*.pem", "x.pem", true),
            ("/srv/*/keys/**", "keys/a", true),
        ] {
            assert_eq!(
                Target::of(pattern).ends(relative),
                expect,
                "{pattern} {relative}"
            );
        }
    }

    #[test]
    fn patterns_go_on_below_what_they_name() {
        for (pattern, place, expect) in [
            ("/srv/secret/**", "/", true),
            ("/srv/secret/**", "/srv", true),
            ("/srv/secret/**", "/srv/open", false),
            ("/srv/*/keys/**", "/srv/a", true),
            ("/srv/**/x.pem", "/srv", true),
            ("/srv/**/x.pem", "/srv/a", false),
            ("**/*.pem", "/srv", false),
            ("/etc/shadow", "/etc", true),
        ] {
            assert_eq!(
                Target::of(pattern).is_below(place),
                expect,
                "{pattern} {place}"
            );
        }
    }

    #[test]
    fn globs_meet_patterns_where_one_path_matches_both() {
        for (pattern, glob, expect) in [
            ("/srv/secret/**", "/srv/*/x", true),
            ("/srv/secret/**", "/srv/s?cret/x", true),
            ("/srv/secret/**", "/srv/[s]ecret/x", true),
            ("/srv/secret/**", "/srv/{open,secret}/x", true),
            ("/srv/secret/**", "/**/x", true),
            ("/srv/secret/**", "/srv/o*/x", false),
            ("/srv/secret/**", "/srv/*", true),
            ("**/*.pem", "/a/*.p?m", true),
            ("**/*.pem", "/a/*.txt", false),
            ("**/*.pem", "/a/**/*.pem", true),
            ("**/.env", "/a/**/target/**", false),
            ("**/.ssh/**", "/a/**/*.log", false),
            ("/a/b", "/**", true),
            ("/a/b", "/**/c", false),
        ] {
            assert_eq!(Target::of(pattern).meets(glob), expect, "{pattern} {glob}");
        }
    }
}
