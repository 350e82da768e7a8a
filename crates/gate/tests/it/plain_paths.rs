//! Real paths stay plain: an allow rule on a folder goes on to match the files that people have.

use std::fs;
use std::path::{Path, PathBuf};

use gate::paths::meanings;

/// Most paths of one source.
const SOURCE_PATHS_MAX: usize = 4_000;

/// The files that a distribution has installed.
fn distribution() -> Vec<String> {
    let lists = fs::read_dir("/var/lib/dpkg/info").into_iter().flatten();
    let lists = lists.filter_map(|entry| Some(entry.ok()?.path()));
    let lists = lists.filter(|path| path.extension().is_some_and(|end| end == "list"));
    let mut all: Vec<String> = lists
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|list| list.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    all.sort();
    spread(&all)
}

/// The files below a folder.
fn below(folder: &Path) -> Vec<String> {
    let (mut all, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && all.len() < 400_000 {
                open.push(entry.path());
            } else {
                all.extend(entry.path().to_str().map(str::to_owned));
            }
        }
    }
    all.sort();
    spread(&all)
}

/// Every nth path, so that all parts of a long list are there.
fn spread(all: &[String]) -> Vec<String> {
    let step = all.len() / SOURCE_PATHS_MAX + 1;
    all.iter().step_by(step).cloned().collect()
}

/// The same files in a user's folder of Windows.
fn on_windows(paths: &[String]) -> Vec<String> {
    let on_drive = |path: &String| format!("C:\\Users\\Jane Doe{}", path.replace('/', "\\"));
    paths.iter().map(on_drive).collect()
}

#[test]
fn at_most_one_real_path_in_200_is_ambiguous() {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = home.canonicalize().unwrap();
    // The toolchain of rustup lies beside Cargo's own folder.
    let user = Path::new(env!("CARGO")).ancestors().nth(5);
    let cargo = user.unwrap_or(Path::new("/")).join(".cargo/registry/src");
    let packages = below(&home.join(".cache/npm/node_modules"));
    let sources = [
        ("a distribution", distribution()),
        ("npm packages", packages.clone()),
        ("cargo registry", below(&cargo)),
        ("this checkout", below(&home.join("crates"))),
        ("Windows", on_windows(&packages)),
    ];
    let (mut count, mut ambiguous) = (0, Vec::new());
    for (name, paths) in &sources {
        let found: Vec<&String> = paths
            .iter()
            .filter(|path| meanings(path, None).ambiguous)
            .collect();
        println!(
            "{name}: {} of {} paths are ambiguous",
            found.len(),
            paths.len()
        );
        count += paths.len();
        ambiguous.extend(found);
    }
    assert!(
        ambiguous.len() * 200 <= count,
        "{} of {count}: {:#?}",
        ambiguous.len(),
        ambiguous.iter().take(40).collect::<Vec<_>>()
    );
}
