//! The way to a path: the directories and links on it, and how they are kept in place for a child.
//!
//! A mount point cannot be renamed, replaced or removed in the mount namespace that it is one in. So each directory on the
//! way is bound onto itself, and so is each link; the second namespace locks these mounts as it locks the covers. A file
//! that is moved from one of these directories into another is moved between mounts, as between file systems: programs
//! copy it then.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatxAttributes, StatxFlags, access, statx};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, mount_bind_recursive, move_mount, open_tree};

use super::namespaces::at;

/// Most links that are followed on the way to one path, as the kernel has it.
pub(super) const LINKS_MAX: usize = 40;

/// What lies on the way to a path. Every name is the real one: links before it are resolved.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// Directories below the root, the path itself included.
    pub directories: Vec<PathBuf>,
    /// Links, each with where it leads.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl Way {
    /// Walks to a path, as far as it exists.
    pub fn to(path: &Path) -> Self {
        let mut way = Self::default();
        let mut path = path.to_owned();
        'again: for _ in 0..LINKS_MAX {
            let mut here = PathBuf::new();
            let mut parts = path.components();
            while let Some(part) = parts.next() {
                match part {
                    Component::ParentDir => drop(here.pop()),
                    part => here.push(part),
                }
                let Ok(found) = fs::symlink_metadata(&here) else {
                    break 'again;
                };
                if found.is_symlink() {
                    let Ok(target) = fs::read_link(&here) else {
                        break 'again;
                    };
                    let rest = parts.as_path().to_owned();
                    let above = here.parent().map(Path::to_owned).unwrap_or_default();
                    way.links.push((here, target.clone()));
                    path = above.join(target).join(rest);
                    continue 'again;
                }
                if found.is_dir() && here.parent().is_some() {
                    way.directories.push(here.clone());
                }
            }
            break;
        }
        way
    }
}

/// The steps of several ways that the child could replace. To be found out before a namespace is entered: there, every
/// directory looks writable to root.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Whether each is a link; directories come before what lies below them.
    steps: BTreeMap<PathBuf, bool>,
}

impl Steps {
    /// Collects what lies on the way to these paths.
    pub fn to<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        let mut steps = BTreeMap::new();
        for path in paths {
            let way = Way::to(path);
            let links = way.links.into_iter().map(|(link, _)| (link, true));
            let directories = way.directories.into_iter();
            steps.extend(directories.map(|directory| (directory, false)).chain(links));
        }
        steps.retain(|path, is_link| {
            let folder = path.parent().unwrap_or(Path::new("/"));
            access(folder, Access::WRITE_OK).is_ok() && (*is_link || !is_mount_point(path))
        });
        Self { steps }
    }

    /// Keeps each where it is. Links are kept where the kernel can mount on them; `require` makes it an error where not.
    pub fn pin(&self, require: bool) -> Result<(), String> {
        for (path, is_link) in &self.steps {
            let pinned = match is_link {
                true => pin_link(path),
                false => mount_bind_recursive(path, path).map_err(io::Error::from),
            };
            match pinned {
                Err(error) if require || !is_link => return Err(at(path, &error)),
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }
}

/// Whether something is mounted there already: then it cannot be moved.
fn is_mount_point(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

fn pin_link(path: &Path) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let tree = open_tree(CWD, path, flags)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(&tree, "", CWD, path, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_and_every_directory_on_the_way_is_found() {
        let place = std::env::temp_dir().join(format!("net-way-{}", std::process::id()));
        let place = fs::canonicalize(place.parent().unwrap())
            .unwrap()
            .join(place.file_name().unwrap());
        let place = place.as_path();
        fs::create_dir_all(place.join("real/below")).unwrap();
        for (link, target) in [
            ("one", "two".into()),
            ("two", place.join("real/../real")),
            ("loop", "loop".into()),
        ] {
            let _ = fs::remove_file(place.join(link));
            std::os::unix::fs::symlink(target, place.join(link)).unwrap();
        }
        let way = Way::to(&place.join("one/below/gone"));
        let below = |path: &Path| path.strip_prefix(place).ok().map(Path::to_owned);
        let links: Vec<_> = way
            .links
            .iter()
            .filter_map(|(link, _)| below(link))
            .collect();
        assert_eq!(links, [Path::new("one"), Path::new("two")]);
        let directories: Vec<_> = way
            .directories
            .iter()
            .filter_map(|path| below(path))
            .collect();
        let last = directories.last().unwrap();
        assert_eq!(last, Path::new("real/below"));
        assert!(!way.directories.iter().any(|path| path == Path::new("/")));
        assert!(Way::to(&place.join("loop/x")).links.len() <= LINKS_MAX);
        fs::remove_dir_all(place).unwrap();
    }
}
