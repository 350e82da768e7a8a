//! What is asked of a model beyond its curves: explain, diff, sensitivity, fit, and figures of populations.

#![cfg(feature = "cli")]

use crate::cli::{example, folder, observed, sim};

#[test]
fn a_value_is_explained_down_to_numbers_of_the_file() {
    let done = sim(&["explain", &example(), "Example|Organism|Central|Volume"]);
    assert_eq!(done.code, 0, "{}", done.err);
    for line in [
        "Example|Organism|Central|Volume = 14 l (formula, at the start)",
        "  = [Example|Organism|Volume per body weight]*[Example|Organism|Weight]",
        "  Example|Organism|Weight = 70 kg (value of the file)",
        "  Example|Organism|Volume per body weight = 0.2 l/kg (value of the file)",
    ] {
        let other = line.replace(
            "[Example|Organism|Volume per body weight]*[Example|Organism|Weight]",
            "[Example|Organism|Weight]*[Example|Organism|Volume per body weight]",
        );
        assert!(
            done.out.lines().any(|l| l == line || l == other),
            "{line}\n{}",
            done.out
        );
    }
    let set = sim(&[
        "explain",
        &example(),
        "Example|Organism|Central|Volume",
        "--param",
        "Example|Organism|Central|Volume=3",
    ]);
    assert!(set.out.contains("= 3 l (set with --param)"), "{}", set.out);
    assert_eq!(set.out.lines().count(), 1, "{}", set.out);
    // A state: its rate is that of the engine, and the events that change it are told.
    let state = sim(&["explain", &example(), "Example|Organism|Central|Drug"]);
    assert!(
        state.out.contains("start value of a state"),
        "{}",
        state.out
    );
    assert!(state.out.contains("rate 0 at the start"), "{}", state.out);
    let rate = sim(&["explain", &example(), "Example|Applications|Infusion|Rate"]);
    assert!(rate.out.contains("changed by event"), "{}", rate.out);
    assert_eq!(sim(&["explain", &example(), "Example|Nothing"]).code, 2);
}

#[test]
fn models_are_compared_by_path() {
    let same = sim(&["diff", &example(), &example()]);
    assert_eq!((same.code, same.out.as_str()), (0, "no difference\n"));
    let folder = folder("diff");
    let text = std::fs::read_to_string(example()).unwrap();
    let at = text.find("name=\"Clearance\"").unwrap();
    let value = at + text[at..].find("value=\"").unwrap() + "value=\"".len();
    let end = value + text[value..].find('"').unwrap();
    let other = folder.join("other.xml");
    std::fs::write(&other, format!("{}0.25{}", &text[..value], &text[end..])).unwrap();
    let done = sim(&["diff", &example(), &other.display().to_string()]);
    let rows: Vec<&str> = done.out.lines().skip(1).collect();
    assert_eq!(rows.len(), 1, "{}", done.out);
    let words: Vec<&str> = rows[0].split_whitespace().collect();
    assert_eq!(
        words,
        ["Organism|Clearance", "value", "0.1", "0.25"],
        "{}",
        done.out
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_exported_model_differs_from_its_original_in_nothing_that_it_computes() {
    let folder = folder("diff-export");
    let written = folder.join("model.xml").display().to_string();
    let done = sim(&[
        "export",
        &example(),
        "--format",
        "simmodel",
        "--file",
        &written,
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    let done = sim(&["diff", &example(), &written]);
    for row in done.out.lines().skip(1) {
        assert!(
            !row.contains(" value ") && !row.contains("formula"),
            "{row}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The data were made with a clearance of 0.13 and a flow of 0.25, and 5 % noise.
#[test]
fn a_fit_finds_what_the_data_were_made_with() {
    let folder = folder("fit");
    let table = folder.join("fitted.csv").display().to_string();
    let done = sim(&[
        "fit",
        &example(),
        &observed(),
        "--vary",
        "Example|Organism|Clearance=0.01..1",
        "--vary",
        "Example|Organism|Exchange flow",
        "--json",
        "--csv",
        &table,
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    for (i, truth) in [0.13, 0.25].into_iter().enumerate() {
        let p = &json["parameters"][i];
        let at = |key: &str| p[key].as_f64().unwrap();
        assert!(at("low") < truth && truth < at("high"), "{p}");
        assert!((at("value") / truth - 1.0).abs() < 0.1, "{p}");
    }
    assert_eq!(json["degrees_of_freedom"], 12);
    assert!(std::fs::read_to_string(table).unwrap().lines().count() == 15);
    for wrong in [
        "Example|Organism|*",
        "Example|Nothing",
        "Example|Organism|Clearance=2..1",
    ] {
        let done = sim(&["fit", &example(), &observed(), "--vary", wrong]);
        assert_eq!(done.code, 2, "{wrong}: {}", done.err);
    }
    let moved = sim(&["fit", &example(), &observed(), "--vary", "**|Infusion time"]);
    assert!(
        moved.code == 1 && moved.err.contains("when something happens"),
        "{}",
        moved.err
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn sensitivities_are_printed_both_ways() {
    let arguments = [
        "sensitivity",
        &example(),
        "--parameter",
        "Example|Organism|Clearance",
        "--output",
        "**|Concentration",
    ];
    let done = sim(&arguments);
    assert!(
        done.code == 0 && done.out.contains("AUC_inf"),
        "{}{}",
        done.out,
        done.err
    );
    let exact = sim(&[&arguments[..], &["--exact", "--csv", "-"]].concat());
    let lines: Vec<&str> = exact.out.lines().collect();
    assert_eq!(lines[0], "Output,Parameter,Time [min],Derivative");
    assert_eq!(lines.len(), 214);
}

/// Percentiles and kinetics of a drawn population equal those computed here from single runs.
#[test]
fn figures_of_populations_are_those_of_their_individuals() {
    let folder = folder("figures");
    let out = folder.join("people").display().to_string();
    let vary = "Example|Organism|Clearance=lognormal(0.1;1.3)";
    let done = sim(&[
        "population",
        &example(),
        "--size",
        "7",
        "--vary",
        vary,
        "--output",
        "**|Concentration",
        "--times",
        "0,30,60,240,480,960,1440",
        "--percentiles",
        "10,50",
        "--pk",
        "--out",
        &out,
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    let rows = |name: &str| {
        let bytes = std::fs::read(folder.join("people").join(name)).unwrap();
        pbpk::csv::read(&mut bytes.as_slice()).unwrap().rows
    };
    let number = |text: &String| text.parse::<f64>().unwrap();
    let (results, percentiles) = (rows("results.csv"), rows("percentiles.csv"));
    assert_eq!(percentiles.len(), 7);
    for row in &percentiles {
        let at = |r: &&Vec<String>| r[1] == row[1];
        let mut values: Vec<f64> = results.iter().filter(at).map(|r| number(&r[2])).collect();
        values.sort_by(f64::total_cmp);
        assert_eq!((values.len(), row[2].as_str()), (7, "7"));
        // Seven values lie at sixths: the median is the fourth, a tenth lies 0.6 of the way from the first to the second.
        let tenth = values[0] + 0.6 * (values[1] - values[0]);
        assert!(
            (number(&row[3]) - tenth).abs() <= 1e-12 * tenth.abs(),
            "{row:?}"
        );
        assert_eq!(number(&row[4]), values[3]);
    }
    let (people, kinetics) = (rows("population.csv"), rows("pk.csv"));
    for person in &people {
        let set = format!("Example|Organism|Clearance={}", person[1]);
        let done = sim(&[
            "pk",
            &example(),
            "--param",
            &set,
            "--output",
            "**|Concentration",
            "--times",
            "0,30,60,240,480,960,1440",
            "--json",
        ]);
        let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let expected = json["parameters"].as_array().unwrap();
        let found: Vec<&Vec<String>> = kinetics.iter().filter(|k| k[0] == person[0]).collect();
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert_eq!(a[2], b["parameter"].as_str().unwrap());
            let (ours, theirs) = (pbpk::csv::number(&a[3]).unwrap(), b["value"].as_f64());
            // The reader of JSON may round the last digit.
            assert!(
                theirs.is_none_or(|v| (v - ours).abs() <= 1e-15 * ours.abs()),
                "{a:?} {b}"
            );
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
