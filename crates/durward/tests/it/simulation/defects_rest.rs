//! What was wrong with the bridge over HTTP and in its records, one test each, and the list of all tests of its defects.

use std::fs;
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{load, place};
use crate::support::components::repository;
use crate::support::guarded::eventually;
use crate::support::serving::{Answer, Served, read_answer, write_request};

const CURVE: &str = "Example|Organism|Central|Drug|Concentration";

fn post(served: &Served, path: &str, body: &Value) -> Answer {
    served.send("POST", path, &[], &body.to_string())
}

/// The answer to a request that has to succeed.
#[track_caller]
fn good(served: &Served, path: &str, body: Value) -> Value {
    let answer = post(served, path, &body);
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.json()
}

/// The result of a job that has to succeed.
#[track_caller]
fn ended(served: &Served, job: &Value) -> String {
    let waits =
        json!({"tool": "get_job_status", "arguments": {"jobId": job["jobId"], "waitSeconds": 120}});
    let done = good(served, "/mcp/call_tool", waits)["structuredContent"].clone();
    assert_eq!(done["status"], "succeeded", "{done}");
    done["resultId"].as_str().unwrap().to_owned()
}

/// A body that is no text, and the lines of its head.
fn bytes(served: &Served, path: &str, headers: &[(&str, &str)]) -> (String, Vec<u8>) {
    let mut stream = served.connect();
    write_request(&mut stream, "GET", path, headers, "");
    let mut reader = BufReader::new(stream);
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        reader.read_exact(&mut byte).unwrap();
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

fn sha256(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    told.split(' ').next().unwrap().to_owned()
}

#[test]
fn defect_13_whoever_reads_while_sensitivities_are_computed_sees_what_was_set() {
    const WEIGHT: &str = "Example|Organism|Weight";
    let served = Served::start_configured(place());
    good(&served, "/load_simulation", load());
    let weight = json!({"simulationId": "sim", "parameterPath": WEIGHT});
    let mut set = weight.clone();
    set["value"] = json!(81);
    set["confirm"] = json!(true);
    good(&served, "/set_parameter_value", set);
    let is_as_set = || {
        let told = good(&served, "/get_parameter_value", weight.clone());
        assert_eq!(told["parameter"]["value"], 81.0, "{told}");
    };
    let analysis = |deltas: &[f64]| {
        let arguments = json!({"modelPath": "two_compartment.xml", "simulationId": "sim",
            "parameters": [{"path": WEIGHT, "deltas": deltas}]});
        let asked =
            json!({"tool": "run_sensitivity_analysis", "critical": true, "arguments": arguments});
        good(&served, "/mcp/call_tool", asked)["structuredContent"]["report"].clone()
    };
    let deltas: Vec<f64> = (1..60).map(|n| f64::from(n) / 100.0).collect();
    std::thread::scope(|scope| {
        let analysing = scope.spawn(|| analysis(&deltas));
        while !analysing.is_finished() {
            is_as_set();
        }
        let report = analysing.join().unwrap();
        assert_eq!(report["scenarios"].as_array().unwrap().len(), 60);
        assert_eq!(report["failures"], json!([]), "{report}");
    });
    // A body without weight has no volume: that scenario fails, its neighbours do not, and nothing stays of it.
    let report = analysis(&[0.1, -1.0, 0.2]);
    let states: Vec<&str> = report["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["job_status"].as_str().unwrap())
        .collect();
    assert_eq!(
        states,
        ["succeeded", "succeeded", "failed", "succeeded"],
        "{report}"
    );
    assert_eq!(report["failures"].as_array().unwrap().len(), 1, "{report}");
    is_as_set();
}

#[test]
fn defect_14_chunks_are_columns_that_are_read_in_part_and_text_on_demand() {
    let served = Served::start_configured(place());
    good(&served, "/load_simulation", load());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 3}, "modelPath": "two_compartment.xml", "confirm": true,
        "outputs": {"timeSeries": [{"path": CURVE}]}});
    let job = good(&served, "/run_population_simulation", asked);
    let name = ended(&served, &job);
    let told = good(
        &served,
        "/get_population_results",
        json!({"resultsId": name}),
    );
    let chunk = &told["chunks"][0];
    let uri = chunk["uri"].as_str().unwrap();
    let columns = format!("{uri}?format=columns");
    let (head, whole) = bytes(&served, &columns, &[]);
    assert_eq!(chunk["sizeBytes"], whole.len());
    assert!(whole.starts_with(b"DWCOLS01"));
    let file = served.place.path("chunk");
    fs::write(&file, &whole).unwrap();
    let digest = format!("x-content-sha256: {}", sha256(&file));
    assert!(head.contains(&digest), "{digest}: {head}");
    let (head, part) = bytes(&served, &columns, &[("range", "bytes=64-127")]);
    assert!(head.starts_with("http/1.1 206 "), "{head}");
    assert_eq!(part, whole[64..128]);
    let range = format!("content-range: bytes 64-127/{}", whole.len());
    assert!(head.contains(&range), "{head}");
    // The last column holds the last curve: the same numbers as in the text.
    let text = served.send("GET", uri, &[], "").json();
    let curve = text["series"][2]["concentration"].as_array().unwrap();
    let kept = &whole[whole.len() - 8 * curve.len()..];
    let kept = kept
        .chunks(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
    // Reading a decimal number may lose its last bit.
    let near = |(kept, told): (f64, f64)| (kept - told).abs() <= 1e-14 * told.abs();
    assert!(
        kept.zip(curve.iter().map(|value| value.as_f64().unwrap()))
            .all(near)
    );
    let csv = served
        .send("GET", &format!("{uri}?format=csv"), &[], "")
        .body;
    assert_eq!(csv.lines().count(), 1 + 3 * curve.len());
}

#[test]
fn a_chunk_that_was_damaged_is_told_by_its_digest_and_one_that_is_gone_by_a_failed_call() {
    let served = Served::start_configured(place());
    good(&served, "/load_simulation", load());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 3}, "confirm": true});
    let job = good(&served, "/run_population_simulation", asked);
    let asked = json!({"resultsId": ended(&served, &job)});
    let told = good(&served, "/get_population_results", asked);
    let uri = told["chunks"][0]["uri"].as_str().unwrap();
    let columns = format!("{uri}?format=columns");
    let folder = served.place.path("state/servers/pbpk/place-0/outputs");
    let files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = files.as_slice() else {
        panic!("{files:?}");
    };
    let (_, mut whole) = bytes(&served, &columns, &[]);
    let mut kept = fs::read(file).unwrap();
    *kept.last_mut().unwrap() ^= 1;
    fs::write(file, &kept).unwrap();
    // The bytes go out as they are kept, with the digest of those that were written: whoever reads them sees it.
    let (head, damaged) = bytes(&served, &columns, &[]);
    *whole.last_mut().unwrap() ^= 1;
    assert_eq!(damaged, whole);
    let read = served.place.path("chunk");
    fs::write(&read, &damaged).unwrap();
    assert!(!head.contains(&sha256(&read)), "{head}");
    // Nothing is made of them here.
    for path in [uri.to_owned(), format!("{uri}?format=csv")] {
        assert_eq!(served.send("GET", &path, &[], "").status, 500, "{path}");
    }
    fs::remove_file(file).unwrap();
    let answer = served.send("GET", &columns, &[], "");
    assert!(answer.status >= 400, "{answer:?}");
    eventually("the record says that it failed", || {
        let records = served.place.records();
        let last = records.operations().last().copied();
        last.is_some_and(|record| record["status"] != "Success")
    });
}

#[test]
fn defect_18_events_tell_each_change_and_an_unknown_job_is_not_found() {
    let served = Served::start_configured(place());
    assert_eq!(
        served.send("GET", "/jobs/job_none/events", &[], "").status,
        404
    );
    good(&served, "/load_simulation", load());
    let job = good(
        &served,
        "/run_simulation",
        json!({"simulationId": "sim", "confirm": true}),
    );
    let path = format!("/jobs/{}/events", job["jobId"].as_str().unwrap());
    // The stream ends with the job.
    let mut stream = served.connect();
    write_request(&mut stream, "GET", &path, &[], "");
    let stream = read_answer(&mut BufReader::new(stream));
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let mut states: Vec<String> = Vec::new();
    for event in stream
        .body
        .split("\n\n")
        .filter(|event| event.starts_with("data: "))
    {
        let told: Value = serde_json::from_str(event.trim_start_matches("data: ")).unwrap();
        states.push(told["status"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        states.last().map(String::as_str),
        Some("succeeded"),
        "{}",
        stream.body
    );
    let order = ["queued", "running", "succeeded"];
    let at = |state: &String| order.iter().position(|known| known == state).unwrap();
    assert!(
        states.windows(2).all(|two| at(&two[0]) < at(&two[1])),
        "{states:?}"
    );
}

#[test]
fn defect_20_pharmacokinetic_parameters_are_told_over_rest() {
    let served = Served::start_configured(place());
    good(&served, "/load_simulation", load());
    let job = good(
        &served,
        "/run_simulation",
        json!({"simulationId": "sim", "confirm": true}),
    );
    let name = ended(&served, &job);
    let asked = json!({"resultsId": name, "outputPath": CURVE});
    let told = good(&served, "/calculate_pk_parameters", asked);
    let results = good(
        &served,
        "/get_simulation_results",
        json!({"resultsId": name, "outputs": [CURVE]}),
    );
    let points = results["series"][0]["values"].as_array().unwrap();
    let values = points.iter().map(|point| point["value"].as_f64().unwrap());
    assert_eq!(
        told["metrics"][0]["cmax"].as_f64(),
        Some(values.fold(0.0, f64::max))
    );
}

#[test]
fn defect_28_the_journal_keeps_digests_and_no_bodies() {
    let served = Served::start_configured(place());
    good(&served, "/load_simulation", load());
    let path = "Example|Organism|Weight";
    let asked = json!({"simulationId": "sim", "parameterPath": path, "value": 81.25, "comment": "hunter2 said so", "confirm": true});
    good(&served, "/set_parameter_value", asked);
    let (_, place) = served.stop();
    let journal = place.records();
    let set: Vec<&Value> = journal
        .decisions()
        .into_iter()
        .filter(|decision| decision["tool_name"] == "set_parameter_value")
        .collect();
    assert_eq!(set.len(), 1);
    assert_eq!(
        set[0]["parameters"],
        json!([path]),
        "what a rule may look at stands there"
    );
    for entry in fs::read_dir(place.path("state/journal")).unwrap().flatten() {
        let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
        for body in ["hunter2", "81.25"] {
            assert!(!text.contains(body), "{body} stands in {:?}", entry.path());
        }
    }
}

#[test]
fn defect_29_what_is_wrong_with_a_file_is_said_of_its_path() {
    let served = Served::start_configured(place());
    fs::write(served.place.path("models/notes.txt"), "x").unwrap();
    fs::write(served.place.path("outside.xml"), "<x/>").unwrap();
    for file in [
        "",
        " ",
        "notes.txt",
        "none.xml",
        "../outside.xml",
        "/etc/passwd",
    ] {
        let answer = post(
            &served,
            "/load_simulation",
            &json!({"filePath": file, "confirm": true}),
        );
        assert_eq!(answer.status, 400, "{file:?}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(
            error["details"][0]["field"], "filePath",
            "{file:?}: {error}"
        );
    }
}

/// Where the test of each defect stands: its number, the file, the function.
const TESTS: [(u32, &str, &str); 30] = [
    (
        1,
        "durward/tests/it/simulation/defects.rs",
        "defect_01_models_and_doses_give_different_curves",
    ),
    (2, "pbpk/tests/it/parity.rs", "pkml_files"),
    (
        3,
        "durward/tests/it/simulation/defects.rs",
        "defect_03_an_empty_model_is_no_success",
    ),
    (
        4,
        "durward/tests/it/simulation/bench.rs",
        "defects_04_and_26_a_measurement_says_what_was_solved_and_a_slower_one_fails",
    ),
    (
        5,
        "durward/tests/it/simulation/bench.rs",
        "defect_05_the_larger_scenarios_exist_and_run_at_a_reduced_size",
    ),
    (
        6,
        "durward/tests/it/simulation/defects.rs",
        "defects_06_and_07_a_population_is_what_was_asked_for_and_its_figures_are_its_curves",
    ),
    (
        7,
        "durward/tests/it/simulation/defects.rs",
        "defects_06_and_07_a_population_is_what_was_asked_for_and_its_figures_are_its_curves",
    ),
    (
        8,
        "durward/tests/it/simulation/defects.rs",
        "defect_08_units_are_converted_and_wrong_ones_refused",
    ),
    (
        9,
        "durward/tests/it/simulation/defects.rs",
        "defect_09_what_depends_on_a_parameter_is_computed_anew",
    ),
    (
        10,
        "durward/tests/it/simulation/defects.rs",
        "defect_10_the_whole_catalogue_is_computed_when_it_is_asked_for",
    ),
    (
        11,
        "durward/tests/it/simulation/faults.rs",
        "defect_11_when_a_caller_is_told_of_an_end_the_solver_has_stopped",
    ),
    (
        12,
        "durward/tests/it/simulation/jobs.rs",
        "defect_12_a_population_goes_on_after_a_kill_and_gives_the_same_numbers",
    ),
    (
        13,
        "durward/tests/it/simulation/defects.rs",
        "defect_13_a_sensitivity_analysis_sees_what_was_set_and_leaves_nothing_behind",
    ),
    (
        14,
        "durward/tests/it/simulation/defects_rest.rs",
        "defect_14_chunks_are_columns_that_are_read_in_part_and_text_on_demand",
    ),
    (
        15,
        "durward/tests/it/simulation/jobs.rs",
        "defect_15_a_worker_that_is_killed_ends_its_own_run_and_no_other",
    ),
    (
        16,
        "durward/tests/it/simulation/protocol.rs",
        "defect_16_health_is_what_a_run_finds_and_files_are_what_their_names_say",
    ),
    (
        17,
        "durward/tests/it/simulation/defects.rs",
        "defect_17_results_are_given_a_page_at_a_time",
    ),
    (
        18,
        "durward/tests/it/simulation/defects_rest.rs",
        "defect_18_events_tell_each_change_and_an_unknown_job_is_not_found",
    ),
    (
        19,
        "gate/tests/it/journal_tampering_table.rs",
        "j15_every_kind_of_tampering_is_found",
    ),
    (
        20,
        "durward/tests/it/simulation/defects_rest.rs",
        "defect_20_pharmacokinetic_parameters_are_told_over_rest",
    ),
    (
        21,
        "durward/tests/it/simulation/defects.rs",
        "defect_21_relative_is_added_and_absolute_is_a_value",
    ),
    (
        22,
        "durward/tests/it/simulation/defects.rs",
        "defect_22_the_outputs_that_are_asked_for_are_those_that_are_returned",
    ),
    (
        23,
        "durward/tests/it/simulation/defects.rs",
        "defect_23_wildcards_match_and_a_list_that_is_cut_says_so",
    ),
    (
        24,
        "durward/tests/it/simulation/defects.rs",
        "defect_24_bad_input_is_the_callers_fault",
    ),
    (
        25,
        "durward/tests/it/simulation/protocol.rs",
        "defect_25_json_rpc_answers_as_the_protocol_has_it",
    ),
    (
        26,
        "durward/tests/it/simulation/bench.rs",
        "defects_04_and_26_a_measurement_says_what_was_solved_and_a_slower_one_fails",
    ),
    (27, "pbpk/tests/it/parity.rs", "page_is_complete"),
    (
        28,
        "durward/tests/it/simulation/defects_rest.rs",
        "defect_28_the_journal_keeps_digests_and_no_bodies",
    ),
    (
        29,
        "durward/tests/it/simulation/defects_rest.rs",
        "defect_29_what_is_wrong_with_a_file_is_said_of_its_path",
    ),
    (
        30,
        "durward/tests/it/simulation/defects_rest.rs",
        "defect_30_every_defect_has_a_test_that_runs",
    ),
];

/// The bridge's own tests failed, many of them unseen: each of these stands where it is said to, is a test, and is not left out.
#[test]
fn defect_30_every_defect_has_a_test_that_runs() {
    for (at, (number, file, name)) in TESTS.into_iter().enumerate() {
        assert_eq!(at as u32 + 1, number);
        let text = fs::read_to_string(repository().join("crates").join(file)).unwrap();
        let before = text.split_once(&format!("\nfn {name}() {{"));
        let (before, _) = before.unwrap_or_else(|| panic!("{file} has no {name}"));
        let above: Vec<&str> = before.lines().rev().take(2).collect();
        assert_eq!(
            above.first(),
            Some(&"#[test]"),
            "{file}: {name} is no test that runs"
        );
        assert!(
            !above.iter().any(|line| line.contains("ignore")),
            "{file}: {name}"
        );
    }
}
