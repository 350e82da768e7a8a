//! The simulation of the guided tour.

use std::process::Command;

use crate::support::guarded::binary;

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
