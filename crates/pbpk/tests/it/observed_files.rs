//! Observed data as people have them: masses, values below the limit of quantification, deviations, records of NONMEM.

#![cfg(feature = "cli")]

use std::path::Path;

use crate::cli::{Done, example, folder, observed, sim};

const OUTPUT: &str = "Example|Organism|Central|Drug|Concentration";

/// The example with a molecular weight of 400 g/mol: 1 µmol/l is 0.4 mg/l.
fn weighed(folder: &Path) -> String {
    let text = std::fs::read_to_string(example()).unwrap();
    let weight = "<P id=\"90\" entityId=\"mw\" name=\"Molecular weight\" path=\"Example|Drug|Molecular weight\" \
                  unit=\"kg/\u{b5}mol\" value=\"4E-7\" persistable=\"0\"/></ParameterList>";
    let file = folder.join("weighed.xml");
    std::fs::write(&file, text.replacen("</ParameterList>", weight, 1)).unwrap();
    file.display().to_string()
}

fn written(folder: &Path, text: &str) -> String {
    let file = folder.join("observed.csv");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// A fit of the clearance to these data.
fn fitted(folder: &Path, data: &str, more: &[&str]) -> (Done, f64) {
    let (model, data) = (weighed(folder), written(folder, data));
    let words = [
        "fit",
        &model,
        &data,
        "--vary",
        "**|Clearance=0.01..1",
        "--json",
    ];
    let done = sim(&[&words[..], more].concat());
    let json = serde_json::from_str(&done.out).unwrap_or(serde_json::Value::Null);
    let value = json["parameters"][0]["value"].as_f64().unwrap_or(f64::NAN);
    (done, value)
}

/// Values of the example's curve at these hours.
fn truth(hours: &[f64]) -> Vec<f64> {
    let times: Vec<String> = hours.iter().map(|h| (h * 60.0).to_string()).collect();
    let times = times.join(",");
    let words = [
        "run",
        &example(),
        "--output",
        OUTPUT,
        "--times",
        &times,
        "--csv",
        "-",
    ];
    let done = sim(&[&words[..], &["--rtol", "1e-9", "--atol", "1e-12"]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let rows = done.out.lines().skip(1);
    rows.map(|row| row.split(',').nth(1).unwrap().parse().unwrap())
        .collect()
}

#[test]
fn masses_are_taken_for_amounts_by_molecular_weight() {
    let folder = folder("observed-mass");
    let hours = [1.0, 2.0, 4.0, 8.0];
    let mut data = format!("Time [h],{OUTPUT} [mg/L]\n");
    for (hour, value) in hours.iter().zip(truth(&hours)) {
        data += &format!("{hour},{}\n", value * 0.4);
    }
    let (done, clearance) = fitted(&folder, &data, &[]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!((clearance - 0.1).abs() < 1e-4, "{clearance}");
    let (model, drawn) = (
        weighed(&folder),
        folder.join("curves.svg").display().to_string(),
    );
    let words = [
        "plot",
        &model,
        "--observed",
        &written(&folder, &data),
        "--svg",
        &drawn,
    ];
    let done = sim(&[&words[..], &["--unit", "mg/l"]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let drawn = std::fs::read_to_string(drawn).unwrap();
    assert_eq!(drawn.matches("<circle ").count(), 4);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn values_below_the_limit_are_censored_in_fits_and_drawn_as_such() {
    let folder = folder("observed-lloq");
    let hours = [1.0, 2.0, 4.0, 40.0];
    let values = truth(&hours);
    let mut data = format!("Time [h],{OUTPUT} [\u{b5}mol/l]\n");
    for (hour, value) in hours.iter().zip(&values).take(3) {
        data += &format!("{hour},{value}\n");
    }
    // The model is below this limit already: the value adds nothing.
    let below = format!("{data}40,<{}\n", values[3] * 3.0);
    let (done, clearance) = fitted(&folder, &below, &[]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!((clearance - 0.1).abs() < 1e-4, "{clearance}");
    // As a measured value it would draw the curve up.
    let measured = format!("{data}40,{}\n", values[3] * 3.0);
    let (_, drawn_up) = fitted(&folder, &measured, &[]);
    assert!(drawn_up < 0.099, "{drawn_up}");
    // A limit that the model is above draws it down.
    let above = format!("{data}40,<{}\n", values[3] / 3.0);
    let (_, drawn_down) = fitted(&folder, &above, &[]);
    assert!(drawn_down > 0.101, "{drawn_down}");
    let drawn = folder.join("curves.svg").display().to_string();
    let words = [
        "plot",
        &example(),
        "--observed",
        &written(&folder, &below),
        "--svg",
        &drawn,
    ];
    assert_eq!(sim(&words).code, 0);
    let drawn = std::fs::read_to_string(drawn).unwrap();
    assert_eq!(drawn.matches("<circle ").count(), 3);
    assert_eq!(
        drawn.matches("h6l-3 5.2Z").count(),
        2,
        "the value, and its mark in the legend"
    );
    assert!(drawn.contains("below quantification"), "{drawn}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn deviations_weight_values_and_are_drawn_as_bars() {
    let folder = folder("observed-sd");
    let hours = [1.0, 2.0, 4.0];
    let values = truth(&hours);
    let mut data = format!("Time [h],{OUTPUT} [\u{b5}mol/l],SD [\u{b5}mol/l]\n");
    for (hour, value) in hours.iter().zip(&values) {
        data += &format!("{hour},{value},{}\n", 0.1 * value);
    }
    // A value that is far off counts little where its deviation is large.
    let loose = format!("{data}8,60,600\n");
    let (done, clearance) = fitted(&folder, &loose, &["--error", "absolute"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!((clearance - 0.1).abs() < 2e-3, "{clearance}");
    let tight = format!("{data}8,60,1\n");
    let (_, clearance) = fitted(&folder, &tight, &["--error", "absolute"]);
    assert!(clearance < 0.09, "{clearance}");
    let drawn = folder.join("curves.svg").display().to_string();
    let words = [
        "plot",
        &example(),
        "--observed",
        &written(&folder, &data),
        "--svg",
        &drawn,
    ];
    assert_eq!(sim(&words).code, 0);
    let drawn = std::fs::read_to_string(drawn).unwrap();
    let points = drawn.split("<g class=\"o c0\">").nth(1).unwrap();
    let points = points.split("</g>").next().unwrap();
    assert_eq!(points.matches("<path d=\"M").count(), 3, "{points}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn decimal_commas_are_read_and_said() {
    let folder = folder("observed-comma");
    let data = format!("Time [h];{OUTPUT} [\u{b5}mol/l]\n0,5;10,2\n1;8,1\n2;5,5\n");
    let (done, clearance) = fitted(&folder, &data, &[]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(clearance.is_finite());
    assert!(done.err.contains("decimal comma"), "{}", done.err);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn records_of_nonmem_are_read_for_the_output_that_is_named() {
    let folder = folder("observed-records");
    let hours = [1.0, 2.0, 4.0];
    let mut data = "ID,TIME [h],DV [mg/l],AMT,EVID,CMT,MDV\n1,0,.,280,1,1,1\n".to_owned();
    for (hour, value) in hours.iter().zip(truth(&hours)) {
        data += &format!("1,{hour},{},.,0,2,0\n", value * 0.4);
    }
    for named in [OUTPUT.to_owned(), format!("2={OUTPUT}")] {
        let (done, clearance) = fitted(&folder, &data, &["--dv", &named]);
        assert_eq!(done.code, 0, "{}", done.err);
        assert!((clearance - 0.1).abs() < 1e-4, "{clearance}");
        assert!(
            done.err.contains("1 records of doses are left out"),
            "{}",
            done.err
        );
    }
    let (done, _) = fitted(&folder, &data, &[]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("--dv '2=OUTPUT'"), "{}", done.err);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn doses_may_be_given_in_mass_and_flows_in_litres() {
    let folder = folder("observed-dose");
    let model = weighed(&folder);
    let last = |sets: &[&str]| {
        let mut words = vec!["run", &model, "--output", OUTPUT, "--json"];
        for set in sets {
            words.extend(["--param", set]);
        }
        let done = sim(&words);
        assert_eq!(done.code, 0, "{}", done.err);
        let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        json["outputs"][0]["max"].as_f64().unwrap()
    };
    let in_amount = last(&["**|DrugMass=350", "**|Clearance=0.2"]);
    let in_mass = last(&["**|DrugMass=140 mg", "**|Clearance=12 L/h"]);
    assert!(
        (in_amount / in_mass - 1.0).abs() < 1e-9,
        "{in_amount} {in_mass}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn parameters_of_an_amount_have_its_unit() {
    let unit = |output: &str, name: &str| {
        let done = sim(&["pk", &example(), "--output", output, "--csv", "-"]);
        assert_eq!(done.code, 0, "{}", done.err);
        let rows = done
            .out
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let mut rows = rows.filter(|row| row[1] == name);
        rows.next().unwrap()[3].to_owned()
    };
    let amount = "Example|Organism|Central|Drug";
    assert_eq!(unit(amount, "C_max"), "\u{b5}mol");
    assert_eq!(unit(amount, "AUC_tEnd"), "\u{b5}mol*min");
    assert_eq!(
        unit(amount, "CL"),
        "",
        "no clearance follows from an amount"
    );
    assert_eq!(unit(amount, "t_max"), "h");
    assert_eq!(unit(OUTPUT, "C_max"), "\u{b5}mol/l");
    assert_eq!(unit(OUTPUT, "CL"), "ml/min/kg");
}

#[test]
fn results_name_the_release_that_they_follow() {
    let release = |more: &[&str]| {
        let words = ["run", &example(), "--output", OUTPUT, "--json", "--stats"];
        let done = sim(&[&words[..], more].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let named = json["osp_version"].as_str().unwrap().to_owned();
        assert!(
            done.err.contains(&format!("osp_version {named}")),
            "{}",
            done.err
        );
        named
    };
    assert_eq!(release(&[]), "12.4.3");
    assert_eq!(release(&["--osp-version", "13-dev"]), "13-dev");
}

#[test]
fn a_sheet_of_a_workbook_gives_the_fit_of_its_text() {
    let folder = folder("sheet");
    let text = std::fs::read_to_string(observed()).unwrap();
    let cell = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) => tables::SheetCell::Number(number),
        Err(_) => tables::SheetCell::Text(text.trim().to_owned()),
    };
    let mut lines = text.lines();
    let header = lines
        .next()
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let rows = lines
        .map(|line| line.split(',').map(cell).collect())
        .collect();
    let data = tables::WorkSheet {
        name: "Data".to_owned(),
        header,
        rows,
    };
    let empty = tables::WorkSheet {
        name: "Notes".to_owned(),
        header: vec!["nothing".to_owned()],
        rows: Vec::new(),
    };
    let file = folder.join("observed.xlsx");
    std::fs::write(&file, tables::workbook(&[empty, data]).unwrap()).unwrap();
    let file = file.display().to_string();
    let fit = |words: &[&str]| {
        let vary = ["--vary", "Example|Organism|Clearance=0.01..1"];
        let model = example();
        let mut all = vec!["fit", &model];
        all.extend(words.iter().chain(&vary));
        sim(&all)
    };
    let (text, sheet) = (fit(&[&observed()]), fit(&[&file, "--sheet", "Data"]));
    assert_eq!(sheet.code, 0, "{}", sheet.err);
    assert_eq!(sheet.out, text.out);
    let other = fit(&[&file, "--sheet", "Other"]);
    assert!(
        other.err.contains("its sheets are Notes, Data"),
        "{}",
        other.err
    );
}
