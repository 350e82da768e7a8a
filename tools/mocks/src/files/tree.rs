//! Walking and copying directories, bounded.

use std::{fs, io, os::unix::fs::symlink, path::Path};

/// The most entries one call lists or copies.
pub(crate) const ENTRIES_MAX: usize = 50_000;
/// How deep one call descends, in directories.
const DEPTH_MAX: usize = 128;

/// Returns the names in `directory`, sorted, relative to it; directories end in `/`. Links are not followed.
pub(crate) fn list(directory: &Path, nested: bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    descend(
        directory,
        "",
        if nested { DEPTH_MAX } else { 0 },
        &mut names,
    )?;
    Ok(names)
}

fn descend(
    directory: &Path,
    prefix: &str,
    levels_left: usize,
    names: &mut Vec<String>,
) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if names.len() == ENTRIES_MAX {
            return Err(io::Error::other(format!("more than {ENTRIES_MAX} entries")));
        }
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if !entry.file_type()?.is_dir() {
            names.push(name);
            continue;
        }
        let prefix = format!("{name}/");
        names.push(prefix.clone());
        if let Some(levels_left) = levels_left.checked_sub(1) {
            descend(&entry.path(), &prefix, levels_left, names)?;
        }
    }
    Ok(())
}

/// Copies a directory with all beneath it; links are copied as links. Returns how many entries.
pub(crate) fn copy(source: &Path, destination: &Path) -> io::Result<usize> {
    let mut copied = 0;
    copy_level(source, destination, DEPTH_MAX, &mut copied)?;
    Ok(copied)
}

fn copy_level(
    source: &Path,
    destination: &Path,
    levels_left: usize,
    copied: &mut usize,
) -> io::Result<()> {
    fs::create_dir_all(destination)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        *copied += 1;
        if *copied > ENTRIES_MAX {
            return Err(io::Error::other(format!("more than {ENTRIES_MAX} entries")));
        }
        let target = destination.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let levels_left = levels_left
                .checked_sub(1)
                .ok_or_else(|| io::Error::other(format!("deeper than {DEPTH_MAX} directories")))?;
            copy_level(&entry.path(), &target, levels_left, copied)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            copy_file(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Copies one regular file. A device or a pipe is refused: reading it may never end. So is a link in
/// the destination's place: it would be written through, perhaps to somewhere else.
pub(crate) fn copy_file(source: &Path, destination: &Path) -> io::Result<u64> {
    if !fs::metadata(source)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if fs::symlink_metadata(destination).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(io::Error::other("the destination is a link"));
    }
    fs::copy(source, destination)
}
