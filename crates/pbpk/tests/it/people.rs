//! One person of a population as a model file.

#![cfg(feature = "cli")]

use std::path::Path;

use crate::cli::{data, example, folder, sim};
use crate::common;
use pbpk::compile::Instance;
use pbpk::population::{Population, PopulationPlan};
use pbpk::run::{RunOptions, run};

/// The model of this file with its own numbers.
fn opened(file: &Path) -> Instance {
    common::instance(pbpk::read::file(file, &pbpk::read::ReadOptions::default()).unwrap())
}

#[test]
fn a_person_of_the_suites_population_becomes_a_pkml() {
    if crate::common::is_reference_absent() {
        return;
    }
    let [model, table] = ["pkml/pksim_simple_simulation.pkml", "csv/ospr_pop.csv"]
        .map(|file| data(file).display().to_string());
    let file = folder("person").join("person.pkml");
    let done = sim(&[
        "individual",
        &model,
        &table,
        "7",
        "--file",
        &file.display().to_string(),
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    let people = Population::read(&mut std::fs::read(&table).unwrap().as_slice()).unwrap();
    let (plan, unmatched) = PopulationPlan::new(opened(Path::new(&model)), &people).unwrap();
    for path in &unmatched {
        assert!(done.err.contains(path), "{path}\n{}", done.err);
    }
    let person = plan.individual(&people, people.find(7).unwrap()).unwrap();
    let written = opened(&file);
    let bits = |i: &Instance| i.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&written), bits(&person));
    let curves = |i: &Instance| {
        let results = run(i, &RunOptions::default()).unwrap();
        results
            .values
            .iter()
            .map(|v| v.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(curves(&written), curves(&person));
    // Every byte but those of the changed tags is that of the file.
    let (before, after) = (
        std::fs::read_to_string(&model).unwrap(),
        std::fs::read_to_string(&file).unwrap(),
    );
    let changed = before
        .lines()
        .zip(after.lines())
        .filter(|(a, b)| a != b)
        .count();
    assert_eq!(
        (before.lines().count(), changed),
        (after.lines().count(), 89)
    );
}

#[test]
fn a_person_of_a_simmodel_file_stays_a_simmodel_file() {
    let folder = folder("simmodel-person");
    let table = folder.join("people.csv");
    std::fs::write(
        &table,
        "IndividualId,Organism|Weight [g]\n3,81500\n-4,60000\n",
    )
    .unwrap();
    let (table, file) = (table.display().to_string(), folder.join("person.xml"));
    let name = file.display().to_string();
    for (id, weight) in [("3", 81.5), ("-4", 60.0)] {
        let done = sim(&["individual", &example(), &table, id, "--file", &name]);
        assert_eq!(done.code, 0, "{}", done.err);
        let written = opened(&file);
        let q = pbpk::path::find_one(written.structure().model(), "Organism|Weight").unwrap();
        assert_eq!(written.value(q), Some(weight));
        let set = format!("Organism|Weight={weight} kg");
        let runs = [
            sim(&["run", &name, "--csv", "-"]),
            sim(&["run", &example(), "--param", &set, "--csv", "-"]),
        ];
        assert_eq!(
            (runs[0].code, &runs[0].out),
            (0, &runs[1].out),
            "{}",
            runs[0].err
        );
    }
}

#[test]
fn a_person_that_is_not_there_is_refused() {
    let folder = folder("nobody");
    let table = folder.join("people.csv");
    std::fs::write(&table, "IndividualId,Organism|Weight\n3,80\n").unwrap();
    let table = table.display().to_string();
    let done = sim(&["individual", &example(), &table, "4"]);
    assert_eq!((done.code, done.out.as_str()), (2, ""));
    assert!(
        done.err.contains("has no individual 4") && done.err.contains("begin with 3"),
        "{}",
        done.err
    );
    let done = sim(&["individual", &example(), &table, "3", "--file", &example()]);
    assert!(
        done.code == 2 && done.err.contains("not overwritten"),
        "{}",
        done.err
    );
}
