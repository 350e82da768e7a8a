//! Runs of individuals and of populations in one batch.

#![cfg(feature = "cli")]

use crate::cli::{example, folder, sim};

#[test]
fn a_batch_leaves_what_its_commands_leave_one_by_one() {
    let folder = folder("batch");
    let path = |name: &str| folder.join(name).display().to_string();
    let model = example();
    let population = |out: &str| {
        let vary = "Organism|Weight [kg]=normal(73;10)";
        format!(
            "population '{model}' --size 5 --seed 3 --vary '{vary}' --percentiles 5,50 --out '{out}'"
        )
    };
    let lines = [
        "# a person, a population, a table on standard output".to_owned(),
        format!(
            "run '{model}' --param 'Organism|Weight=85 kg' --csv '{}'",
            path("one.csv")
        ),
        String::new(),
        population(&path("people")),
        format!("run \"{model}\" --output '**|Concentration' --csv -"),
    ];
    std::fs::write(folder.join("runs.txt"), lines.join("\n")).unwrap();
    for threads in ["1", "3"] {
        let done = sim(&["batch", &path("runs.txt"), "--threads", threads]);
        assert_eq!(done.code, 0, "{}", done.err);
        let alone = sim(&["run", &model, "--output", "**|Concentration", "--csv", "-"]);
        assert!(done.out.ends_with(&alone.out), "{}", done.out);
        for line in [
            "line 2: done: run",
            "line 4: done: population",
            "line 5: done: run",
        ] {
            assert!(done.err.contains(line), "{}", done.err);
        }
    }
    let one = sim(&[
        "run",
        &model,
        "--param",
        "Organism|Weight=85 kg",
        "--csv",
        "-",
    ]);
    assert_eq!(
        std::fs::read_to_string(folder.join("one.csv")).unwrap(),
        one.out
    );
    std::fs::write(folder.join("again.txt"), population(&path("again"))).unwrap();
    assert_eq!(sim(&["batch", &path("again.txt")]).code, 0);
    for table in ["results.csv", "percentiles.csv"] {
        let read = |run: &str| std::fs::read(folder.join(run).join(table)).unwrap();
        assert_eq!(read("people"), read("again"), "{table}");
    }
}

#[test]
fn a_line_that_fails_does_not_stop_the_others_and_a_line_that_is_none_stops_all() {
    let folder = folder("batch-failing");
    let path = |name: &str| folder.join(name).display().to_string();
    let runs = format!(
        "run nowhere.pkml\nrun '{}' --csv '{}'\n",
        example(),
        path("one.csv")
    );
    std::fs::write(folder.join("runs.txt"), &runs).unwrap();
    let done = sim(&["batch", &path("runs.txt")]);
    assert_eq!(done.code, 1);
    for part in [
        "line 1: failed",
        "nowhere.pkml",
        "line 2: done",
        "1 of 2 commands failed",
    ] {
        assert!(done.err.contains(part), "{part}\n{}", done.err);
    }
    std::fs::remove_file(folder.join("one.csv")).unwrap();
    std::fs::write(folder.join("runs.txt"), format!("{runs}run 'x.pkml\n")).unwrap();
    let done = sim(&["batch", &path("runs.txt")]);
    assert!(
        done.code == 2 && done.err.contains("line 3"),
        "{}",
        done.err
    );
    assert!(!folder.join("one.csv").exists());
}
