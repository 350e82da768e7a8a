//! The simulation of the guided tour.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::guarded::{Place, binary, eventually};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_tour_asks_before_it_runs_a_simulation_and_shows_what_came_out() {
    let output = Command::new(binary()).arg("demo").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{wrong}");
    let (_, step) = said.split_once("A simulation").expect("it has that step");
    let mut rest = step;
    for part in [
        "load_simulation → allowed",
        "run_simulation → waits",
        "ask-before-running",
        "run_simulation on pbpk allowed once",
        "over 48 h",
        "█",
        "Cmax ",
        "PNG picture",
        "the model asks for echo__add",
        "echo__add → {\"sum\":5",
        "ssh__ssh_hostname → ",
        "pbpk__run_simulation → succeeded",
        "durward logs --run demo-run",
        "chat/completions",
        "add ",
        "ssh_hostname",
        "run_simulation",
    ] {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("\"{part}\" does not follow: {step}"));
        rest = after;
    }
}

/// Nothing of the tour stays behind.
#[test]
fn ctrl_c_ends_the_tour_and_takes_its_directory_away() {
    // Where a server runs and none is being started.
    for (step, signal, code) in [("2. ", Signal::INT, 130), ("2. ", Signal::TERM, 143)] {
        let place = Place::new();
        let stage = place.path("t");
        std::fs::create_dir_all(&stage).unwrap();
        let mut tour = Command::new(binary())
            .arg("demo")
            .env("TMPDIR", &stage)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(tour.stdout.take().unwrap()).lines();
        let found = lines
            .map(Result::unwrap)
            .find(|line| line.starts_with(step));
        assert!(found.is_some(), "{step}");
        assert!(std::fs::read_dir(&stage).unwrap().count() > 0);
        let pid = Pid::from_child(&tour);
        kill_process(pid, signal).unwrap();
        assert_eq!(tour.wait().unwrap().code(), Some(code), "{step}");
        let left = || std::fs::read_dir(&stage).unwrap().count();
        assert_eq!(left(), 0, "{step}");
        let mark = stage.to_str().unwrap().to_owned();
        eventually("no process of the tour is left", || {
            !processes().iter().any(|words| words.contains(&mark))
        });
    }
}

/// The words that processes were started with.
fn processes() -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let words = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words
        .map(|words| String::from_utf8_lossy(&words).into_owned())
        .collect()
}
