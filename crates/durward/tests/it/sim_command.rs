//! `durward sim` as a process: what a signal ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::guarded::{PATIENCE, Place, binary};

/// A population of so many that nobody waits for its end; parts of one individual each.
fn population(out: &Path) -> Command {
    let model = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../pbpk/examples/two_compartment.xml"
    );
    let mut command = Command::new(binary());
    command.args(["sim", "population", model, "--size", "1000", "--chunk", "1"]);
    command.args(["--vary", "Organism|Weight [kg]=normal(73;8)", "--out"]);
    command.arg(out);
    command
}

/// Starts a run, sends it a signal as soon as it has finished a part, and gives its end.
fn ended_by(signal: &str, out: &Path) -> Output {
    let child = population(out)
        .args(["--threads", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !out.join("part-000000.csv").exists() && !out.join("results.csv").exists() {
        assert!(begun.elapsed() < PATIENCE, "no part after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    Command::new("kill").args([signal, &pid]).status().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_signal_ends_a_population_in_order() {
    let place = Place::new();
    let whole = place.path("whole");
    assert!(population(&whole).output().unwrap().status.success());
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let out = place.path(signal);
        // A run that was over before the signal came, or before it listened, says nothing: again.
        let mut attempts = (0..20).map(|_| {
            let _ = std::fs::remove_dir_all(&out);
            ended_by(signal, &out)
        });
        let hit = attempts
            .find(|end| end.status.code() == Some(code) && !out.join("results.csv").exists());
        let told = String::from_utf8(hit.unwrap().stderr).unwrap();
        assert!(
            told.contains("cancelled; the parts that were done are kept")
                && told.contains("the same command goes on where it stopped"),
            "{told}"
        );
        let again = population(&out).output().unwrap();
        assert!(again.status.success(), "{again:?}");
        for name in ["results.csv", "failures.csv", "population.csv"] {
            let read = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert!(read(&out) == read(&whole), "{signal} {name}");
        }
    }
}

/// Where the disk takes no more, the results of an earlier run stay, and nothing half-written is left.
#[test]
fn results_are_there_as_a_whole_or_not_at_all() {
    let place = Place::new();
    let kept = place.path("results.csv");
    std::fs::write(&kept, "of an earlier run\n").unwrap();
    let model = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../pbpk/examples/two_compartment.xml"
    );
    // A limit of one block stands for a disk that is full.
    let line = "trap '' XFSZ; ulimit -f 1; exec \"$0\" sim run \"$1\" --csv \"$2\"";
    let done = Command::new("sh")
        .args(["-c", line])
        .args([Path::new(binary()), Path::new(model), &kept])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot write"), "{told}");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(text, "of an earlier run\n");
    let left = std::fs::read_dir(kept.parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    let partial = |name: &&std::ffi::OsString| name.to_string_lossy().contains("partial");
    assert_eq!(left.iter().find(partial), None, "{left:?}");
}

/// The comparer that lies beside the corpus reads what the command writes, and finds the genuine solver's numbers.
#[test]
fn the_comparer_of_the_corpus_agrees() {
    let shared = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/pbpk/differential"
    );
    let corpus = Path::new(shared);
    if !corpus.is_dir() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{shared} is absent, and CI must not pass without it"
        );
        eprintln!("skipped: {shared} is absent");
        return;
    }
    // The corpus holds numbers of the development build.
    let place = Place::new();
    let program = place.path("durward-13-dev");
    let script = format!(
        "#!/bin/sh\n[ \"$2\" = run ] && set -- \"$@\" --osp-version 13-dev\nexec '{}' \"$@\"\n",
        binary()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (file, limit) in [("mutated", "10"), ("generated", "20")] {
        let done = Command::new("python3")
            .arg(corpus.join("compare.py"))
            .arg(&program)
            .arg(format!("{shared}/{file}.jsonl.gz"))
            .args(["--limit", limit, "--jobs", "2", "--each"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{told}");
        assert!(told.contains(&format!("{limit}/{limit} cases")), "{told}");
    }
}
