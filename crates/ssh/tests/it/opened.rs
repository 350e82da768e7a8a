//! Generated paths: what a program opens at the host is what was judged, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::random::Random;
use crate::target::{Client, Target, has};

/// Commands of one run.
const ROUNDS: usize = 40;
/// Folders and files of the tree, by their numbers.
const FOLDERS: usize = 5;

/// A tree of folders, files and links that this run made. What lies below `refused` may not be opened.
struct Tree {
    root: PathBuf,
    /// Paths of folders, links to folders among them.
    folders: Vec<String>,
    /// Names of what lies in each folder that is no folder.
    names: Vec<String>,
}

impl Tree {
    fn new(root: &Path, random: &mut Random) -> Self {
        let mut real = vec![root.to_owned(), root.join("refused")];
        fs::create_dir_all(root.join("refused")).unwrap();
        for number in 0..FOLDERS {
            // Most of the tree lies outside of `refused`, whatever the seed.
            let among = if number < 3 {
                0
            } else {
                random.below(real.len())
            };
            let below = real[among].join(format!("d{number}"));
            fs::create_dir(&below).unwrap();
            real.push(below);
        }
        let mut names = Vec::new();
        for (number, folder) in real.iter().enumerate() {
            let (plain, odd) = (format!("f{number}"), format!("f {number}'é"));
            for name in [&plain, &odd] {
                fs::write(folder.join(name), format!("{number}\n")).unwrap();
            }
            names.extend([plain, odd]);
        }
        let folders = real.clone();
        for number in 0..2 * FOLDERS {
            let of = &folders[random.below(folders.len())];
            let to = folders[random.below(folders.len())].clone();
            let (to, name) = if random.below(2) == 0 {
                (to, format!("l{number}"))
            } else {
                let at = random.below(folders.len());
                let name = format!("lf{number}");
                names.push(name.clone());
                (folders[at].join(format!("f{at}")), name)
            };
            symlink(to, of.join(&name)).unwrap();
            if name.starts_with("l") && !name.starts_with("lf") {
                real.push(of.join(&name));
            }
        }
        let said = |path: &PathBuf| path.display().to_string();
        Self {
            root: root.to_owned(),
            folders: real.iter().map(said).collect(),
            names,
        }
    }

    /// A spelling of a file that is there: through links, with `.`, `..` and doubled slashes.
    fn path(&self, random: &mut Random) -> String {
        loop {
            let mut path = self.folders[random.below(self.folders.len())].clone();
            for _ in 0..random.below(4) {
                path.push_str(match random.below(4) {
                    0 => "/.",
                    1 => "//",
                    2 => "/..",
                    _ => {
                        let back = &self.folders[random.below(self.folders.len())];
                        path.push('/');
                        path.push_str(back.rsplit('/').next().unwrap());
                        continue;
                    }
                });
            }
            path.push('/');
            path.push_str(&self.names[random.below(self.names.len())]);
            let is_inside = |place: PathBuf| place.starts_with(&self.root);
            if Path::new(&path).is_file() && fs::canonicalize(&path).is_ok_and(is_inside) {
                return path;
            }
        }
    }

    fn place(path: &str) -> String {
        fs::canonicalize(path).unwrap().display().to_string()
    }

    fn is_refused(&self, place: &str) -> bool {
        Path::new(place).starts_with(self.root.join("refused"))
    }
}

/// Quoted, so that a line has it as one word.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Files below the tree that a traced program has opened or looked up.
fn traced(trace: &Path, root: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(trace).unwrap();
    let root = root.display().to_string();
    let named = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("openat(")?;
        let (_, rest) = rest.split_once('"')?;
        let (name, _) = rest.rsplit_once('"')?;
        Some(plain(name))
    });
    named.filter(|name| name.starts_with(&root)).collect()
}

/// A string as strace writes it, with octal escapes.
fn plain(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .iter()
            .take(3)
            .take_while(|b| (b'0'..=b'7').contains(b))
            .count();
        if *first == b'\\' && digits > 0 {
            let octal = std::str::from_utf8(&after[..digits]).unwrap();
            bytes.push(u8::from_str_radix(octal, 8).unwrap());
            rest = &after[digits..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap()
}

struct Scene {
    target: Target,
    client: Client,
    session: String,
    tree: Tree,
    trace: PathBuf,
}

impl Scene {
    async fn new(random: &mut Random) -> Self {
        let target = Target::new("");
        let tree = Tree::new(&target.folder.join("tree"), random);
        let rules = json!({"rules": [
            {"id": "run", "effect": "allow", "conditions": {"tool_name": "ssh_*"}},
            {"id": "not-there", "effect": "deny", "conditions": {"path_pattern": format!("{}/refused/**", tree.root.display())}},
        ]});
        let client = Client::new(target.hosts(""), Some(&rules.to_string()));
        let session = client.connect("web").await;
        let trace = target.open_file("trace");
        Self {
            target,
            client,
            session,
            tree,
            trace,
        }
    }

    /// Runs a program on these paths under strace; gives the answer and what was opened.
    async fn run(
        &self,
        program: &str,
        paths: &[String],
    ) -> (Result<Value, String>, BTreeSet<String>) {
        self.run_in(None, program, paths).await
    }

    /// The same in a directory.
    async fn run_in(
        &self,
        cwd: Option<&str>,
        program: &str,
        paths: &[String],
    ) -> (Result<Value, String>, BTreeSet<String>) {
        fs::write(&self.trace, "").unwrap();
        fs::set_permissions(&self.trace, fs::Permissions::from_mode(0o666)).unwrap();
        let words: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
        // `-s` so that no name is cut.
        let command = format!(
            "strace -f -s 4096 -e trace=openat -o {} {program} {}",
            self.trace.display(),
            words.join(" ")
        );
        let mut arguments = json!({"session_id": self.session, "command": command});
        if let Some(cwd) = cwd {
            arguments["cwd"] = cwd.into();
        }
        let said = self.client.call("ssh_run_command", arguments).await;
        (said, traced(&self.trace, &self.tree.root))
    }
}

#[tokio::test]
async fn programs_open_the_places_that_were_judged_however_paths_are_spelled() {
    if !has("sshd") || !has("strace") {
        return;
    }
    let (seed, mut random) = Random::fresh();
    let on = Scene::new(&mut random).await;
    let (mut ran, mut refused) = (0, 0);
    for round in 0..10 * ROUNDS {
        if round >= ROUNDS && ran > 0 && refused > 0 {
            break;
        }
        let paths: Vec<String> = (0..1 + random.below(3))
            .map(|_| on.tree.path(&mut random))
            .collect();
        let program = [
            "cat",
            "head -n 1",
            "wc -l",
            "grep -c 1",
            "sort",
            "stat -c %s",
        ][random.below(6)];
        let places: BTreeSet<String> = paths.iter().map(|path| Tree::place(path)).collect();
        // Half of them are written from a directory, which may be a link itself.
        let from = on.tree.folders[random.below(on.tree.folders.len())].clone();
        let cwd = Some(from.as_str()).filter(|_| random.below(2) == 0);
        let words: Vec<String> = paths
            .iter()
            .map(|path| {
                match cwd
                    .and_then(|cwd| path.strip_prefix(cwd))
                    .filter(|below| below.starts_with('/'))
                {
                    Some(below) => format!(".{below}"),
                    None => path.clone(),
                }
            })
            .collect();
        let (said, opened) = on.run_in(cwd, program, &words).await;
        if let (Some(cwd), Err(wrong)) = (cwd, &said) {
            // A directory that is refused refuses all that is run there.
            let is_there = on.tree.is_refused(&Tree::place(cwd)) || cwd.contains("/refused");
            if is_there && wrong.contains("not-there") {
                assert_eq!(opened, BTreeSet::new(), "seed {seed}: {cwd}");
                continue;
            }
        }
        let about = format!("seed {seed}: {program} {paths:?}");
        // A path is refused as it is spelled, too: one through the refused folder and out again.
        let is_forbidden = places.iter().any(|place| on.tree.is_refused(place));
        let is_near = paths.iter().any(|path| path.contains("/refused/"));
        if is_forbidden || (is_near && said.is_err()) {
            refused += 1;
            assert!(
                said.as_ref()
                    .is_err_and(|wrong| wrong.contains("not-there")),
                "{about}: {said:?}"
            );
            assert_eq!(opened, BTreeSet::new(), "{about}");
            continue;
        }
        ran += 1;
        let said = said.unwrap_or_else(|wrong| panic!("{about}: {wrong}"));
        // `stat` opens nothing: it looks up.
        if !program.starts_with("stat") {
            assert_eq!(opened, places, "{about}: {said}");
        }
        for path in &paths {
            let told = said["structuredContent"]["opened"].get(path);
            let place = Tree::place(path);
            assert!(
                told.is_none_or(|told| *told == json!(place)),
                "{about}: {said}"
            );
        }
    }
    assert!(
        ran > 0 && refused > 0,
        "seed {seed}: {ran} ran, {refused} were refused"
    );
    drop(on.target);
}

#[tokio::test]
async fn links_that_change_all_the_time_open_no_place_that_was_refused() {
    if !has("sshd") || !has("strace") {
        return;
    }
    let (seed, mut random) = Random::fresh();
    let on = Scene::new(&mut random).await;
    let root = &on.tree.root;
    let (allowed, forbidden) = (root.join("f0"), root.join("refused/f1"));
    let link = root.join("turning");
    symlink(&allowed, &link).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let turning = {
        let (stop, link, to) = (
            Arc::clone(&stop),
            link.clone(),
            [forbidden.clone(), allowed],
        );
        std::thread::spawn(move || {
            let next = link.with_extension("next");
            for to in to.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                symlink(to, &next).unwrap();
                fs::rename(&next, &link).unwrap();
            }
        })
    };
    for _ in 0..ROUNDS {
        let mut paths = vec![link.display().to_string()];
        if random.below(2) == 0 {
            paths.push(on.tree.path(&mut random));
        }
        let (_, opened) = on.run("cat", &paths).await;
        let wrong: Vec<&String> = opened
            .iter()
            .filter(|place| on.tree.is_refused(place))
            .collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        // A link is never opened itself: what it leads to may change.
        assert!(
            !opened.contains(&link.display().to_string()),
            "seed {seed}: {opened:?}"
        );
    }
    stop.store(true, Ordering::Relaxed);
    turning.join().unwrap();
}

#[tokio::test]
async fn a_directory_that_changes_all_the_time_is_entered_where_it_was_judged() {
    if !has("sshd") || !has("strace") {
        return;
    }
    let (seed, mut random) = Random::fresh();
    let on = Scene::new(&mut random).await;
    let root = on.tree.root.clone();
    let (allowed, forbidden) = (root.join("open"), root.join("refused"));
    fs::create_dir(&allowed).unwrap();
    fs::write(allowed.join("same"), "plain\n").unwrap();
    fs::write(forbidden.join("same"), "secret\n").unwrap();
    let link = root.join("turning");
    symlink(&allowed, &link).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let turning = {
        let (stop, link) = (Arc::clone(&stop), link.clone());
        std::thread::spawn(move || {
            let next = link.with_extension("next");
            for to in [forbidden, allowed].iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                symlink(to, &next).unwrap();
                fs::rename(&next, &link).unwrap();
            }
        })
    };
    let cwd = link.display().to_string();
    for round in 0..ROUNDS / 2 {
        let word = ["./same", "same"][round % 2].to_owned();
        let (said, opened) = on.run_in(Some(&cwd), "cat", &[word]).await;
        // A relative name does not show in the trace where it is.
        let is_told = said.is_ok_and(|said| said["structuredContent"]["stdout"] == "secret\n");
        assert!(!is_told, "seed {seed}");
        let wrong: Vec<&String> = opened
            .iter()
            .filter(|place| on.tree.is_refused(place))
            .collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
    }
    stop.store(true, Ordering::Relaxed);
    turning.join().unwrap();
}
