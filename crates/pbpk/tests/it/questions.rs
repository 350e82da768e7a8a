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
    let drawn = folder.join("fit.svg").display().to_string();
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
        "--svg",
        &drawn,
    ]);
    assert_eq!(done.code, 0, "{}", done.err);
    // Each observation once against its fitted value, and once over time.
    let drawn = std::fs::read_to_string(drawn).unwrap();
    assert_eq!(drawn.matches("<circle ").count(), 28);
    assert!(drawn.contains("ln(observed / fitted)"), "{drawn}");
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    for (i, truth) in [0.13, 0.25].into_iter().enumerate() {
        let p = &json["parameters"][i];
        let at = |key: &str| p[key].as_f64().unwrap();
        assert!(at("low") < truth && truth < at("high"), "{p}");
        assert!((at("value") / truth - 1.0).abs() < 0.1, "{p}");
    }
    assert_eq!(json["degrees_of_freedom"], 12);
    assert!(std::fs::read_to_string(table).unwrap().lines().count() == 15);
    for (wrong, word) in [
        ("Example|Organism|*", "name one"),
        ("Example|Nothing", "no quantity has the path"),
        (
            "Example|Organism|Clearance=2..1",
            "2, is not below the upper one, 1",
        ),
        ("Example|Organism|Clearance=2..3", "starts at 0.1"),
    ] {
        let done = sim(&["fit", &example(), &observed(), "--vary", wrong]);
        assert_eq!(done.code, 2, "{wrong}: {}", done.err);
        assert!(done.err.contains(word), "{wrong}: {}", done.err);
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
    // A table and a summary may be asked for at once; the largest derivative of the table is that of the summary.
    let folder = folder("sensitivity");
    let table = folder.join("exact.csv").display().to_string();
    let both = sim(&[&arguments[..], &["--exact", "--json", "--csv", &table]].concat());
    assert_eq!(std::fs::read_to_string(&table).unwrap(), exact.out);
    let json: serde_json::Value = serde_json::from_str(&both.out).unwrap();
    let rows = json["sensitivities"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    for row in rows {
        let own = |line: &&&str| line.starts_with(row["output"].as_str().unwrap());
        let numbers = lines.iter().filter(own).map(|line| {
            let mut fields = line.rsplit(',').map(|f| f.parse::<f64>().unwrap());
            let derivative = fields.next().unwrap();
            (fields.next().unwrap(), derivative)
        });
        let largest = numbers.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        assert_eq!(row["time_min"].as_f64(), largest.map(|l| l.0), "{row}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// What the tables say is in the JSON too.
#[test]
fn explanations_and_differences_are_json_too() {
    let json = |words: &[&str]| -> serde_json::Value {
        let done = sim(words);
        assert_eq!(done.code, 0, "{}", done.err);
        serde_json::from_str(&done.out).unwrap()
    };
    let volume = json(&[
        "explain",
        &example(),
        "Example|Organism|Central|Volume",
        "--json",
    ]);
    assert_eq!(volume["value"], 14.0);
    assert_eq!(volume["unit"], "l");
    let uses = volume["uses"].as_array().unwrap();
    let product: f64 = uses.iter().map(|u| u["value"].as_f64().unwrap()).product();
    assert!(
        (product - 14.0).abs() < 1e-12 && uses.len() == 2,
        "{volume}"
    );
    let state = json(&[
        "explain",
        &example(),
        "Example|Organism|Central|Drug",
        "--json",
    ]);
    assert!(
        state["rates"].as_array().is_some_and(|r| !r.is_empty()),
        "{state}"
    );
    let rate = json(&[
        "explain",
        &example(),
        "Example|Applications|Infusion|Rate",
        "--json",
    ]);
    assert!(rate["events"][0]["gives"].is_string(), "{rate}");
    let same = json(&["diff", &example(), &example(), "--json"]);
    assert_eq!(same["differences"].as_array().unwrap().len(), 0);
    let folder = folder("diff-json");
    let other = folder.join("other.xml");
    let text = std::fs::read_to_string(example()).unwrap();
    assert!(text.contains("<EndTime>2880</EndTime>"));
    std::fs::write(
        &other,
        text.replace("<EndTime>2880</EndTime>", "<EndTime>1440</EndTime>"),
    )
    .unwrap();
    let one = json(&["diff", &example(), &other.display().to_string(), "--json"]);
    assert_eq!(one["differences"].as_array().unwrap().len(), 1, "{one}");
    assert_eq!(one["differences"][0]["what"], "times");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A table of kinetics has the digits of the JSON.
#[test]
fn kinetics_are_written_as_a_table() {
    let folder = folder("pk-csv");
    let table = folder.join("pk.csv").display().to_string();
    let words = [
        "pk",
        &example(),
        "--output",
        "**|Concentration",
        "--json",
        "--csv",
        &table,
    ];
    let done = sim(&words);
    assert_eq!(done.code, 0, "{}", done.err);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let expected = json["parameters"].as_array().unwrap();
    let bytes = std::fs::read(&table).unwrap();
    let rows = pbpk::csv::read(&mut bytes.as_slice()).unwrap().rows;
    assert_eq!(rows.len(), expected.len());
    assert!(rows.len() > 10);
    for (row, json) in rows.iter().zip(expected) {
        for (i, key) in [(0, "output"), (1, "parameter"), (3, "unit")] {
            assert_eq!(row[i], json[key].as_str().unwrap());
        }
        let value = pbpk::csv::number(&row[2]).unwrap();
        match json["value"].as_f64() {
            // The reader of JSON may round the last digit.
            Some(v) => assert!((v - value).abs() <= 1e-15 * v.abs(), "{row:?} {json}"),
            None => assert!(!value.is_finite(), "{row:?}"),
        }
    }
    let alone = sim(&[&words[..4], &["--csv", "-"]].concat());
    assert_eq!(alone.out.as_bytes(), bytes);
    std::fs::remove_dir_all(folder).unwrap();
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
        // Seven values lie at sixths: the median is the fourth, a tenth lies 0.6 of the way from the first to the
        // second.
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
