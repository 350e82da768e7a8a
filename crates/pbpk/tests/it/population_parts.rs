//! Populations in parts: processes that are killed, shards and their merge, the same bytes at the end; individuals that
//! are those of single runs.

#![cfg(feature = "cli")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::{data, folder, sim};
use crate::common;
use pbpk::population::Population;
use pbpk::run::RunOptions;

const WHOLE_BODY: &str = "pkml/pksim_simple_simulation.pkml";
const OUTPUT: &str = "Organism|VenousBlood|Plasma|C1";
/// Longest wait for a part of a run.
const WAIT: Duration = Duration::from_secs(300);

/// A run of drawn individuals; parts of one individual each.
fn drawn(out: &Path, size: &str, extra: &[&str]) -> Vec<String> {
    let model = data(WHOLE_BODY).display().to_string();
    let out = out.display().to_string();
    let words = [
        "population",
        &model,
        "--size",
        size,
        "--seed",
        "3",
        "--vary",
        "Organism|Weight [kg]=normal(73;8)",
        "--output",
        OUTPUT,
        "--chunk",
        "1",
        "--out",
        &out,
    ];
    words.iter().chain(extra).map(|w| (*w).to_owned()).collect()
}

fn done(words: &[String]) -> crate::cli::Done {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    sim(&words)
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

/// Starts the program, sends it a signal as soon as a part is there, and tells whether that was before its end.
fn interrupted(out: &Path, size: &str, signal: &str) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pbpk"))
        .args(drawn(out, size, &["--threads", "1"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !out.join("part-000000.csv").exists() && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < WAIT, "no part after {WAIT:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
    let status = child.wait().unwrap();
    sent.success() && !status.success() && !out.join("results.csv").exists()
}

#[test]
fn a_killed_run_goes_on_to_the_same_bytes() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("killed");
    let whole = root.join("whole");
    assert_eq!(done(&drawn(&whole, "120", &[])).code, 0);
    // Not INT: a shell starts what runs in its background with that ignored.
    for signal in ["-KILL", "-TERM"] {
        let out = root.join(signal);
        // A run that was over before the signal came says nothing: again.
        let hit = (0..20).any(|_| {
            let _ = std::fs::remove_dir_all(&out);
            interrupted(&out, "120", signal)
        });
        assert!(hit, "{signal}");
        let kept = std::fs::read_dir(&out).unwrap().count();
        assert!(kept > 2, "{kept} files");
        // What a killed process left of a part that it was writing goes too.
        std::fs::write(out.join("part-000119.4194304.tmp"), "1,0,").unwrap();
        let again = done(&drawn(&out, "120", &["--threads", "2"]));
        assert_eq!(again.code, 0, "{}", again.err);
        for name in ["results.csv", "failures.csv", "population.csv"] {
            assert!(bytes(&out, name) == bytes(&whole, name), "{signal} {name}");
        }
        let left = std::fs::read_dir(&out).unwrap().flatten();
        let parts: Vec<_> = left
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().starts_with("part-"))
            .collect();
        assert!(parts.is_empty(), "{parts:?}");
    }
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn merged_shards_are_the_run_as_a_whole() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("shards");
    let (whole, merged) = (root.join("whole"), root.join("merged"));
    assert_eq!(done(&drawn(&whole, "11", &[])).code, 0);
    let shards = [root.join("s1"), root.join("s2"), root.join("s3")];
    for (i, shard) in shards.iter().enumerate() {
        let name = format!("{}/3", i + 1);
        let ran = done(&drawn(shard, "11", &["--shard", &name]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let expected = if i == 2 { "3 of 11" } else { "4 of 11" };
        assert!(ran.out.starts_with(expected), "{}", ran.out);
        assert!(!shard.join("results.csv").exists());
    }
    let names: Vec<String> = [&merged]
        .into_iter()
        .chain(&shards)
        .map(|f| f.display().to_string())
        .collect();
    let merge = |names: &[&str]| sim(&[&["merge"], names].concat());
    let all: Vec<&str> = names.iter().map(String::as_str).collect();

    let short = merge(&all[..3]);
    assert_eq!(short.code, 1);
    assert!(
        short.err.contains("3 of 11 parts are missing"),
        "{}",
        short.err
    );
    // Over before it begins: what was there is there still.
    let late = merge(&[all.as_slice(), &["--timeout", "1e-9"]].concat());
    assert_eq!(late.code, 1);
    assert!(late.err.contains("deadline exceeded"), "{}", late.err);
    assert!(!merged.join("results.csv").exists());
    let joined = merge(&all);
    assert_eq!(joined.code, 0, "{}", joined.err);
    assert!(
        joined.out.starts_with("11 individuals, 0 failed"),
        "{}",
        joined.out
    );
    for name in [
        "results.csv",
        "failures.csv",
        "population.csv",
        "inputs.txt",
    ] {
        assert!(bytes(&merged, name) == bytes(&whole, name), "{name}");
    }
    // The run as a whole finds them, and makes what it is asked for besides.
    let more = done(&drawn(&merged, "11", &["--percentiles", "50"]));
    assert_eq!(more.code, 0, "{}", more.err);
    assert!(merged.join("percentiles.csv").exists());

    let other = root.join("other");
    assert_eq!(done(&drawn(&other, "12", &["--shard", "1/3"])).code, 0);
    let mixed = merge(&[&other.display().to_string(), &names[1]]);
    assert_eq!(mixed.code, 2);
    assert!(mixed.err.contains("different inputs"), "{}", mixed.err);
    let nothing = merge(&[&root.join("nothing").display().to_string()]);
    assert_eq!(nothing.code, 2);
    assert!(
        nothing.err.contains("not a folder of a population run"),
        "{}",
        nothing.err
    );
    for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
        let refused = done(&drawn(&other, "12", &["--shard", text]));
        assert_eq!(refused.code, 2, "{text}");
        assert!(refused.err.contains("I from 1 to N"), "{}", refused.err);
    }
    std::fs::remove_dir_all(root).unwrap();
}

/// The ten individuals of the suite's table, and ten more with every parameter a little larger.
fn twenty() -> Population {
    let file = std::fs::read(common::data("csv/ospr_pop.csv")).unwrap();
    let ten = Population::read(&mut file.as_slice()).unwrap();
    let mut text = String::from("IndividualId");
    for column in &ten.columns {
        text.push(',');
        pbpk::csv::push_field(&mut text, &pbpk::csv::titled(&column.path, &column.unit));
    }
    for id in 0..20 {
        text.push_str(&format!("\n{id}"));
        for value in ten.row(id % 10) {
            let value = if id < 10 { *value } else { value * 1.01 };
            text.push_str(&format!(",{value}"));
        }
    }
    Population::read(&mut text.as_bytes()).unwrap()
}

#[test]
fn twenty_individuals_are_bit_equal_to_single_runs() {
    if crate::common::is_reference_absent() {
        return;
    }
    let root = folder("twenty");
    let people = twenty();
    let file = root.join("people.csv");
    std::fs::write(&file, people.to_csv()).unwrap();
    let (model, table) = (
        data(WHOLE_BODY).display().to_string(),
        file.display().to_string(),
    );
    let out = root.join("out").display().to_string();
    let second = "Organism|Fat|Intracellular|C1";
    let ran = sim(&[
        "population",
        &model,
        &table,
        "--output",
        OUTPUT,
        "--output",
        second,
        "--out",
        &out,
        "--threads",
        "2",
        "--chunk",
        "7",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let results = bytes(&root.join("out"), "results.csv");
    let individuals = pbpk::csv::results(&mut results.as_slice()).unwrap();
    assert_eq!(individuals.len(), 20);

    let model = common::load(WHOLE_BODY);
    let outputs = [OUTPUT, second].map(|p| model.position(p).unwrap());
    let structure =
        pbpk::compile::Structure::new(std::sync::Arc::new(model), outputs.to_vec()).unwrap();
    for (row, individual) in individuals.iter().enumerate() {
        let mut single = pbpk::compile::Instance::new(&structure);
        let mut set = 0;
        for (column, value) in people.columns.iter().zip(people.row(row)) {
            if let Some(q) = structure.model().position(&column.path) {
                let quantity = &structure.model().quantities[q];
                let unit = (!column.unit.is_empty()).then_some(column.unit.as_str());
                let value = pbpk::path::to_base(quantity, *value, unit).unwrap();
                single.set(q, value).unwrap();
                set += 1;
            }
        }
        assert_eq!(set, 89);
        let run = common::run(&single, &RunOptions::default());
        assert_eq!(run.times.len(), 129);
        for (o, series) in individual.curves.series.iter().enumerate() {
            let bits = |v: f64| v.to_bits();
            let (one, many) = (
                run.column(o).map(bits),
                series.values.iter().map(|v| bits(*v)),
            );
            assert!(one.eq(many), "individual {row}, output {o}");
        }
    }
    std::fs::remove_dir_all(root).unwrap();
}
