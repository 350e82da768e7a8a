//! Studies: what one file describes is done once, goes on where it stopped, and becomes one page.

#![cfg(feature = "cli")]

use std::path::Path;

use crate::cli::{Done, example, folder, observed, sim};

const STUDY: &str = "name: Twice a <day>
arms:
  - name: base
    model: model.xml
    outputs: ['**|Central|Drug|Concentration']
    data: observed.csv
    estimates: clearance
  - name: repeated
    model: model.xml
    regimen: [{dose: 300 µmol, interval: 6 h, number: 4}]
    outputs: ['**|Central|Drug|Concentration']
    population: people.csv
fits:
  - {name: clearance, arm: base, vary: ['Example|Organism|Clearance=0.01..1'], error: proportional, starts: 2}
";

/// A folder with a study and its files.
fn write_study(name: &str, text: &str) -> std::path::PathBuf {
    let folder = folder(name);
    std::fs::copy(example(), folder.join("model.xml")).unwrap();
    std::fs::copy(observed(), folder.join("observed.csv")).unwrap();
    let people = "IndividualId,Example|Organism|Weight [kg]\n0,60\n1,70\n2,85\n";
    std::fs::write(folder.join("people.csv"), people).unwrap();
    std::fs::write(folder.join("study.yaml"), text).unwrap();
    folder
}

fn run_study(folder: &Path) -> Done {
    sim(&[
        "study",
        "run",
        &folder.join("study.yaml").display().to_string(),
    ])
}

#[test]
fn a_study_is_done_once_and_goes_on_with_what_changed() {
    let folder = write_study("study", STUDY);
    let done = run_study(&folder);
    assert_eq!(done.code, 0, "{}", done.err);
    let steps = |done: &Done, ending: &str| {
        done.err
            .lines()
            .filter(|line| line.ends_with(ending))
            .count()
    };
    assert_eq!(
        (steps(&done, ": done"), steps(&done, ": done before")),
        (8, 0),
        "{}",
        done.err
    );
    let out = folder.join("study");
    for file in [
        "fits/clearance/fit.json",
        "fits/clearance/fitted.svg",
        "arms/base/curves.csv",
        "arms/repeated/pk.csv",
        "arms/repeated/population/percentiles.csv",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let kinetics = std::fs::read_to_string(out.join("arms/repeated/pk.csv")).unwrap();
    assert!(
        kinetics.contains("R_ac") && kinetics.contains("AUC_tau_ss"),
        "{kinetics}"
    );
    let again = run_study(&folder);
    assert_eq!(
        (steps(&again, ": done"), steps(&again, ": done before")),
        (0, 8),
        "{}",
        again.err
    );
    // Other people: only the population is run again.
    let people = "IndividualId,Example|Organism|Weight [kg]\n0,61\n";
    std::fs::write(folder.join("people.csv"), people).unwrap();
    std::fs::remove_dir_all(out.join("arms/repeated/population")).unwrap();
    let other = run_study(&folder);
    assert_eq!(
        (steps(&other, ": done"), steps(&other, ": done before")),
        (1, 7),
        "{}",
        other.err
    );
    // The estimates of the fit are those of the arm.
    let text = std::fs::read_to_string(out.join("fits/clearance/fit.json")).unwrap();
    let fit: serde_json::Value = serde_json::from_str(&text).unwrap();
    let clearance = fit["parameters"][0]["value"].as_f64().unwrap();
    let model = folder.join("model.xml").display().to_string();
    let set = format!("Example|Organism|Clearance={clearance:?}");
    let file = folder.join("curves.csv").display().to_string();
    let words = [
        "run",
        &model,
        "--param",
        &set,
        "--output",
        "**|Central|Drug|Concentration",
        "--csv",
        &file,
    ];
    assert_eq!(sim(&words).code, 0);
    let expected = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        std::fs::read_to_string(out.join("arms/base/curves.csv")).unwrap(),
        expected
    );
}

#[test]
fn a_report_is_one_page_without_links() {
    let folder = write_study("report", STUDY);
    let study = folder.join("study.yaml").display().to_string();
    let file = folder.join("report.html").display().to_string();
    let done = sim(&["report", &study, "--file", &file]);
    assert_eq!(done.code, 0, "{}", done.err);
    let page = std::fs::read_to_string(&file).unwrap();
    for expected in [
        "<title>Twice a &lt;day&gt;</title>",
        "OSP 12.4.3",
        "AIC",
        "standard deviation of",
        "R_ac",
        "dose=300 µmol,interval=6 h,number=4",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    // Two pictures of curves, the fit, and the percentiles.
    assert_eq!(page.matches("src=\"data:image/svg+xml,").count(), 4);
    assert_eq!(page.matches("src=").count(), 4);
    assert!(!page.contains("href") && !page.contains("<script"));
}

#[test]
fn what_is_wrong_with_a_study_is_named() {
    for (from, to, expected) in [
        ("arm: base", "arm: other", "there is no arm 'other'"),
        (
            "estimates: clearance",
            "estimates: volume",
            "there is no fit 'volume'",
        ),
        ("number: 4", "numbr: 4", "did you mean number"),
        ("name: repeated", "name: base", "arm 'base' occurs twice"),
        ("name: repeated", "name: ../x", "letters, digits"),
        ("data: observed.csv", "dta: observed.csv", "dta"),
        ("error: proportional", "error: proportionl", "proportionl"),
    ] {
        let folder = write_study("wrong-study", &STUDY.replacen(from, to, 1));
        let done = run_study(&folder);
        assert_ne!(done.code, 0, "{to}");
        assert!(done.err.contains(expected), "{to}: {}", done.err);
    }
}
