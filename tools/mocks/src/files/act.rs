//! What each tool does. Every function takes the raw arguments and returns the text to show, or a
//! complaint for the caller.

use super::roots::{FileRoots, LastLink};
use super::tree;
use crate::json;
use serde::Deserialize;
use std::{fs, io, path::Path};

/// The longest file that is read into a reply, in bytes: its JSON stays below a 16 MiB frame unless
/// nearly every byte needs an escape.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;

type Answer = Result<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathOnly {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArgs {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateArgs {
    path: String,
    blocks: Vec<UpdateBlock>,
    #[serde(default, rename = "replaceAll")]
    replace_all: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateBlock {
    search: String,
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    path: String,
    #[serde(default, rename = "includeNested")]
    include_nested: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyArgs {
    source_path: String,
    destination_path: String,
    recursive: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveArgs {
    source_path: String,
    destination_path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteDirectoryArgs {
    path: String,
    #[serde(default)]
    recursive: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateDirectoryArgs {
    path: String,
    create_parents: Option<bool>,
}

fn parse<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    json::object(arguments.as_bytes()).map_err(|error| format!("arguments: {error}"))
}

/// Puts the path the caller gave in front of what the system said.
fn at<T>(path: &str, done: io::Result<T>) -> Result<T, String> {
    done.map_err(|error| format!("{path}: {error}"))
}

pub(super) fn read_file(roots: &FileRoots, arguments: &str) -> Answer {
    let PathOnly { path } = parse(arguments)?;
    text_of(&roots.resolve(&path, LastLink::Follow)?, &path)
}

fn text_of(file: &Path, path: &str) -> Answer {
    let metadata = at(path, fs::metadata(file))?;
    if !metadata.is_file() {
        return Err(format!("{path} is not a regular file"));
    }
    if metadata.len() > READ_BYTES_MAX {
        return Err(format!("{path} is longer than {READ_BYTES_MAX} bytes"));
    }
    let bytes = at(path, fs::read(file))?;
    String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text"))
}

pub(super) fn write_file(roots: &FileRoots, arguments: &str) -> Answer {
    let WriteArgs { path, content } = parse(arguments)?;
    let file = roots.resolve(&path, LastLink::Follow)?;
    // Opening a pipe would wait for a reader.
    if fs::metadata(&file).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(format!("{path} is not a regular file"));
    }
    if let Some(parent) = file.parent() {
        at(&path, fs::create_dir_all(parent))?;
    }
    at(&path, fs::write(&file, &content))?;
    Ok(format!(
        "wrote {} bytes to {}",
        content.len(),
        file.display()
    ))
}

pub(super) fn update_file(roots: &FileRoots, arguments: &str) -> Answer {
    let UpdateArgs {
        path,
        blocks,
        replace_all,
    } = parse(arguments)?;
    if blocks.is_empty() {
        return Err("blocks is empty".into());
    }
    let file = roots.resolve(&path, LastLink::Follow)?;
    let mut text = text_of(&file, &path)?;
    for (number, UpdateBlock { search, replace }) in (1..).zip(&blocks) {
        if search.is_empty() || !text.contains(search.as_str()) {
            return Err(format!(
                "{path}: the search text of block {number} was not found; nothing was written"
            ));
        }
        text = if replace_all {
            text.replace(search.as_str(), replace)
        } else {
            text.replacen(search.as_str(), replace, 1)
        };
    }
    at(&path, fs::write(&file, &text))?;
    Ok(format!(
        "updated {} with {} blocks",
        file.display(),
        blocks.len()
    ))
}

pub(super) fn list_files(roots: &FileRoots, arguments: &str) -> Answer {
    let ListArgs {
        path,
        include_nested,
    } = parse(arguments)?;
    let directory = roots.resolve(&path, LastLink::Follow)?;
    at(&path, tree::list(&directory, include_nested)).map(|names| names.join("\n"))
}

pub(super) fn copy_path(roots: &FileRoots, arguments: &str) -> Answer {
    let CopyArgs {
        source_path,
        destination_path,
        recursive,
    } = parse(arguments)?;
    let source = roots.resolve(&source_path, LastLink::Follow)?;
    let destination = roots.resolve(&destination_path, LastLink::Follow)?;
    let metadata = at(&source_path, fs::metadata(&source))?;
    if source == destination {
        return Err("source and destination are the same".into());
    }
    if !metadata.is_dir() {
        let bytes = at(&destination_path, tree::copy_file(&source, &destination))?;
        return Ok(format!("copied {bytes} bytes to {}", destination.display()));
    }
    if !recursive.unwrap_or(true) {
        return Err(format!("{source_path} is a directory; set recursive"));
    }
    if destination.starts_with(&source) {
        return Err("the destination lies inside the source".into());
    }
    let entries = at(&destination_path, tree::copy(&source, &destination))?;
    Ok(format!(
        "copied {entries} entries to {}",
        destination.display()
    ))
}

pub(super) fn move_path(roots: &FileRoots, arguments: &str) -> Answer {
    let MoveArgs {
        source_path,
        destination_path,
    } = parse(arguments)?;
    let source = roots.resolve(&source_path, LastLink::Keep)?;
    let destination = roots.resolve(&destination_path, LastLink::Keep)?;
    if roots.is_root(&source) {
        return Err(format!("{source_path} is a root and stays"));
    }
    at(&source_path, fs::rename(&source, &destination))?;
    Ok(format!(
        "moved {} to {}",
        source.display(),
        destination.display()
    ))
}

pub(super) fn delete_file(roots: &FileRoots, arguments: &str) -> Answer {
    let PathOnly { path } = parse(arguments)?;
    let file = roots.resolve(&path, LastLink::Keep)?;
    if at(&path, fs::symlink_metadata(&file))?.is_dir() {
        return Err(format!("{path} is a directory; use delete_directory"));
    }
    at(&path, fs::remove_file(&file))?;
    Ok(format!("deleted {}", file.display()))
}

pub(super) fn delete_directory(roots: &FileRoots, arguments: &str) -> Answer {
    let DeleteDirectoryArgs { path, recursive } = parse(arguments)?;
    let directory = roots.resolve(&path, LastLink::Keep)?;
    if roots.is_root(&directory) {
        return Err(format!("{path} is a root and stays"));
    }
    if !at(&path, fs::symlink_metadata(&directory))?.is_dir() {
        return Err(format!("{path} is not a directory; use delete_file"));
    }
    let done = if recursive {
        fs::remove_dir_all(&directory)
    } else {
        fs::remove_dir(&directory)
    };
    at(&path, done)?;
    Ok(format!("deleted {}", directory.display()))
}

pub(super) fn create_directory(roots: &FileRoots, arguments: &str) -> Answer {
    let CreateDirectoryArgs {
        path,
        create_parents,
    } = parse(arguments)?;
    let directory = roots.resolve(&path, LastLink::Follow)?;
    let parents = create_parents.unwrap_or(true);
    at(
        &path,
        if parents {
            fs::create_dir_all(&directory)
        } else {
            fs::create_dir(&directory)
        },
    )?;
    Ok(format!("created {}", directory.display()))
}

pub(super) fn set_filesystem_default(roots: &mut FileRoots, arguments: &str) -> Answer {
    let PathOnly { path } = parse(arguments)?;
    let directory = roots.resolve(&path, LastLink::Follow)?;
    if !at(&path, fs::metadata(&directory))?.is_dir() {
        return Err(format!("{path} is not a directory"));
    }
    let answer = format!("relative paths now start at {}", directory.display());
    roots.set_default(directory);
    Ok(answer)
}
