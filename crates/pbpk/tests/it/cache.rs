//! Results that are kept: the same bytes, found for the same inputs alone, made anew where an entry is damaged, within
//! a bound.

#![cfg(feature = "cli")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::{example, folder, sim};

/// Runs the example with a cache; its CSV, and what was said.
fn run(cache: &Path, extra: &[&str]) -> (String, String) {
    let (model, cache) = (example(), cache.display().to_string());
    let mut words = vec!["run", &model, "--csv", "-", "--cache", &cache];
    words.extend(extra);
    let done = sim(&words);
    assert_eq!(done.code, 0, "{}", done.err);
    (done.out, done.err)
}

fn is_found(err: &str) -> bool {
    err.lines().any(|line| line == "taken from the cache")
}

fn entries(cache: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(cache)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort();
    all
}

#[test]
fn a_run_is_found_again_with_the_same_bytes_and_by_the_same_inputs_alone() {
    let root = folder("cache-run");
    let cache = root.join("kept");
    let model = example();
    let plain = sim(&["run", &model, "--csv", "-"]);
    let (first, said) = run(&cache, &[]);
    assert!(!is_found(&said), "{said}");
    let (second, said) = run(&cache, &["--stats"]);
    assert!(is_found(&said), "{said}");
    assert!(
        said.contains("steps ") && !said.contains("steps 0\n"),
        "{said}"
    );
    assert_eq!((&first, &second), (&plain.out, &plain.out));
    for other in [
        ["--rtol", "1e-7"].as_slice(),
        &["--atol", "1e-13"],
        &["--times", "0,60"],
        &["--max-steps", "4000"],
        &["--param", "Organism|Weight=80 kg"],
        &["--locate-events"],
        &["--once-at-start"],
        &["--double-times"],
        &["--strict"],
        &["--all"],
        &["--output", "**|Peripheral|**"],
    ] {
        let known = entries(&cache).len();
        let (_, said) = run(&cache, other);
        // The same outputs by another name are the same run.
        if other[0] != "--all" {
            assert!(!is_found(&said), "{other:?}: {said}");
            assert_eq!(entries(&cache).len(), known + 1, "{other:?}");
        }
        let (_, said) = run(&cache, other);
        assert!(is_found(&said), "{other:?}: {said}");
    }
    // A shown unit changes nothing of the run.
    let (_, said) = run(&cache, &["--time-unit", "h"]);
    assert!(is_found(&said), "{said}");
    // Another model at the same path.
    let moved = root.join("model.xml");
    let text = fs::read_to_string(&model).unwrap();
    let words = ["run", moved.to_str().unwrap(), "--csv", "-", "--cache"];
    let words = [words.as_slice(), &[cache.to_str().unwrap()]].concat();
    fs::write(&moved, &text).unwrap();
    assert!(is_found(&sim(&words).err));
    fs::write(&moved, format!("{text}\n")).unwrap();
    assert!(!is_found(&sim(&words).err));
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_damaged_entry_is_made_anew() {
    let root = folder("cache-damaged");
    let (whole, _) = run(&root, &[]);
    let entry = entries(&root).remove(0);
    let bytes = fs::read(&entry).unwrap();
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = [
        Vec::new(),
        bytes[..bytes.len() / 2].to_vec(),
        flipped(0),
        flipped(10),
        flipped(bytes.len() / 2),
        flipped(bytes.len() - 1),
        [bytes.as_slice(), b"x"].concat(),
    ];
    for damaged in damaged {
        fs::write(&entry, damaged).unwrap();
        let (again, said) = run(&root, &[]);
        assert!(!is_found(&said), "{said}");
        assert_eq!(again, whole);
        assert_eq!(fs::read(&entry).unwrap(), bytes);
    }
    // An entry under another's name is not taken either.
    run(&root, &["--rtol", "1e-8"]);
    let other = entries(&root).into_iter().find(|e| *e != entry).unwrap();
    fs::copy(&other, &entry).unwrap();
    let (again, said) = run(&root, &[]);
    assert!(!is_found(&said), "{said}");
    assert_eq!(again, whole);
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn parts_of_a_population_are_found_again_whatever_the_run() {
    let root = folder("cache-population");
    let cache = root.join("kept").display().to_string();
    let go = |name: &str, size: &str, extra: &[&str]| {
        let (model, out) = (example(), root.join(name).display().to_string());
        let mut words = vec!["population", &model, "--size", size, "--seed", "5"];
        words.extend(["--vary", "Organism|Weight [kg]=normal(73;8)"]);
        words.extend(["--chunk", "4", "--out", &out, "--cache", &cache]);
        words.extend(extra);
        let done = sim(&words);
        assert_eq!(done.code, 0, "{}", done.err);
        (
            fs::read(root.join(name).join("results.csv")).unwrap(),
            done.err,
        )
    };
    let (first, said) = go("first", "12", &[]);
    assert!(!said.contains("cache"), "{said}");
    let (second, said) = go("second", "12", &["--threads", "3"]);
    assert!(said.contains("3 parts taken from the cache"), "{said}");
    assert_eq!(first, second);
    // More individuals of the same seed begin with the same ones.
    let (more, said) = go("more", "20", &[]);
    assert!(said.contains("3 parts taken from the cache"), "{said}");
    assert!(more.starts_with(&first));
    let (_, said) = go("tight", "12", &["--rtol", "1e-8"]);
    assert!(!said.contains("cache"), "{said}");
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_cache_keeps_to_its_room_and_touches_nothing_else() {
    let root = folder("cache-bound");
    let mine = root.join("notes.txt");
    fs::write(&mine, "mine").unwrap();
    // One MiB holds eight entries of almost an eighth.
    let times: Vec<String> = (0..1200).map(|i| i.to_string()).collect();
    let times = times.join(",");
    let room = ["--cache-size", "1", "--times", times.as_str(), "--all"];
    let mut largest = 0;
    for i in 0..40 {
        let rtol = format!("1e-{}", 4 + i % 5);
        let atol = format!("1e-{}", 6 + i / 5);
        run(
            &root,
            &[&room[..], &["--rtol", &rtol, "--atol", &atol]].concat(),
        );
        let size: u64 = entries(&root)
            .iter()
            .map(|e| fs::metadata(e).unwrap().len())
            .sum();
        largest = largest.max(size);
    }
    assert!(largest <= (1 << 20) + 4, "{largest}");
    assert!(largest >= 1 << 18, "nothing was kept: {largest}");
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    // Without room nothing is kept, and the run is as it was.
    let none = root.join("none");
    let (_, said) = run(&none, &["--cache-size", "0"]);
    assert!(!is_found(&said) && entries(&none).is_empty());
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn what_is_no_folder_is_refused() {
    let root = folder("cache-refused");
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    let done = sim(&["run", &example(), "--cache", file.to_str().unwrap()]);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("as a cache"), "{}", done.err);
    fs::remove_dir_all(&root).unwrap();
}
