//! The command line: every data file, the README's commands, and what must be refused.

#![cfg(feature = "cli")]

use std::path::{Path, PathBuf};

use crate::common;
pub use crate::common::data;
use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: pbpk::cli::Args,
}

pub struct Done {
    pub code: u8,
    pub out: String,
    pub err: String,
}

pub fn sim(arguments: &[&str]) -> Done {
    let words = std::iter::once("sim").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = pbpk::cli::run(cli.args, &mut out, &mut err);
    Done {
        code,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

/// A folder of this test's own, emptied.
pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pbpk-cli-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The measurements beside the example.
pub fn observed() -> String {
    example().replace("two_compartment.xml", "observed.csv")
}

pub fn example() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/two_compartment.xml")
        .display()
        .to_string()
}

/// Rows and columns, or a word of the refusal.
type Ending = Result<(usize, usize), &'static str>;

/// Every file of the data and how its run ends: number of rows and columns, or a word of the refusal.
const FILES: [(&str, Ending); 63] = [
    ("pkml/coreR_not_ok_sim.pkml", Ok((1441, 139))),
    ("pkml/coreR_simple.pkml", Ok((21, 5))),
    ("pkml/core_BlackBox.pkml", Err("SpatialStructure")),
    ("pkml/core_EventsAppKeywordReplacement.pkml", Ok((97, 4))),
    ("pkml/core_simple.pkml", Ok((21, 5))),
    ("pkml/core_warnings.pkml", Ok((5761, 13))),
    ("pkml/ospr_TestSim_2Modules.pkml", Ok((97, 1))),
    ("pkml/ospr_simple.pkml", Ok((21, 20))),
    ("pkml/ospr_simple_v11.pkml", Ok((21, 6))),
    ("pkml/ospr_tests_simple.pkml", Ok((21, 20))),
    ("pkml/pi_IR_model_doseResponse.pkml", Ok((121, 21))),
    ("pkml/pi_StepIncrease_100nm.pkml", Ok((121, 21))),
    ("pkml/pksim_S1_concentrBased.pkml", Ok((241, 91))),
    ("pkml/pksim_simple_simulation.pkml", Ok((129, 350))),
    ("pkml/simmodel_RemoveBelowAbsTolTest.pkml", Ok((101, 6))),
    ("simmodel/12.0_Brockmoller2005_CPA.xml", Ok((2002, 2))),
    ("simmodel/AdultPopulation.xml", Ok((125, 319))),
    ("simmodel/BCM_Platelet6Lit.xml", Ok((241, 19))),
    ("simmodel/ConstZeroTableFormulation.xml", Ok((129, 215))),
    ("simmodel/InvalidSimmodelXML.xml", Ok((11, 3))),
    ("simmodel/NaN_Inf_NegInf.xml", Ok((97, 12))),
    ("simmodel/Nan_If_Conditional_Min_Max.xml", Ok((97, 1))),
    (
        "simmodel/NegativeInititalValue.xml",
        Err("negative initial value"),
    ),
    (
        "simmodel/NegativeValuesForbidden_CheckSettingFalse.xml",
        Ok((97, 3)),
    ),
    (
        "simmodel/NegativeValuesForbidden_CheckSettingTrue.xml",
        Err("negative value at t = 15"),
    ),
    (
        "simmodel/NegativeValuesForbidden_NoCheckSetting.xml",
        Err("negative value at t = 15"),
    ),
    ("simmodel/NonMonotoneBasegridTest.xml", Ok((602, 4))),
    ("simmodel/OralTable01.xml", Ok((96, 205))),
    ("simmodel/OutputSchemaSaveToXml.xml", Ok((2, 2))),
    ("simmodel/PKModelCoreCaseStudy_01.xml", Ok((241, 36))),
    ("simmodel/PKSim_Input_01.xml", Ok((120, 65))),
    ("simmodel/PKSim_Input_BelowAbsTol.xml", Ok((100, 392))),
    ("simmodel/PKSim_Input_NewSchema_01.xml", Ok((121, 226))),
    ("simmodel/POP_EHC_StartTime.xml", Ok((97, 226))),
    ("simmodel/PersistableOutputsTest.xml", Ok((3, 3))),
    ("simmodel/PersistableParams.xml", Ok((97, 3))),
    ("simmodel/RemoveBelowAbsTolTest.xml", Ok((101, 3))),
    (
        "simmodel/S30_negativeValues.xml",
        Err("negative value at t = 33"),
    ),
    ("simmodel/S3_reduced.xml", Ok((21, 2))),
    ("simmodel/SimModel4_ExampleInput04.xml", Ok((120, 3))),
    ("simmodel/SimModel4_ExampleInput06.xml", Ok((11, 5))),
    (
        "simmodel/SimModel4_ExampleInput06_Modified.xml",
        Ok((11, 5)),
    ),
    (
        "simmodel/SimModel4_ExampleInput06_Modified2.xml",
        Ok((11, 5)),
    ),
    (
        "simmodel/SimModel4_ExampleInput06_Modified_V4.xml",
        Ok((11, 5)),
    ),
    (
        "simmodel/SimModel4_ExampleInput06_NewSchema.xml",
        Ok((11, 4)),
    ),
    ("simmodel/TableParametersViaDCI_Test01.xml", Ok((105, 197))),
    ("simmodel/Test4SavingSpeciesInitialValues.xml", Ok((11, 3))),
    ("simmodel/TestAllParametersInitialValues.xml", Ok((11, 4))),
    (
        "simmodel/TestCrashSimultaneousEvents.xml",
        Err("S1|Organism|M1"),
    ),
    ("simmodel/TestExportUsedParameters02.xml", Ok((97, 5))),
    ("simmodel/TestSimultanEvents.xml", Ok((3, 2))),
    ("simmodel/TestWarnings_LowMxStep.xml", Err("t = 0.2")),
    ("simmodel/VersionTest.xml", Ok((2, 40))),
    ("simmodel/cvsRoberts_FSA_dns.xml", Ok((3, 2))),
    ("simmodel/pH_Solubility_Table.xml", Ok((129, 213))),
    ("ref/coreR_not_ok_sim.simmodel.xml", Ok((1441, 139))),
    ("ref/coreR_simple.simmodel.xml", Ok((21, 5))),
    ("ref/ospr_simple.simmodel.xml", Ok((21, 20))),
    ("ref/pi_IR_model_doseResponse.simmodel.xml", Ok((121, 18))),
    ("ref/pi_StepIncrease_100nm.simmodel.xml", Ok((121, 18))),
    ("ref/pksim_S1_concentrBased.simmodel.xml", Ok((241, 77))),
    ("ref/pksim_simple_simulation.simmodel.xml", Ok((129, 350))),
    (
        "ref/simmodel_RemoveBelowAbsTolTest.simmodel.xml",
        Ok((101, 6)),
    ),
];

#[test]
fn every_file_runs_or_is_refused() {
    if crate::common::is_reference_absent() {
        return;
    }
    let mut faults = Vec::new();
    for (file, expected) in FILES {
        let done = sim(&[
            "run",
            &data(file).display().to_string(),
            "--csv",
            "-",
            "--all",
        ]);
        let found = if done.code == 0 {
            let rows: Vec<Vec<&str>> = done.out.lines().map(|l| split(l)).collect();
            let uneven = rows.iter().filter(|r| r.len() != rows[0].len()).count();
            if uneven > 0 || rows[0][0] != "Time [min]" {
                faults.push(format!("{file}: {uneven} uneven rows"));
            }
            Ok((rows.len() - 1, rows[0].len()))
        } else {
            Err(done.err.clone())
        };
        match (&expected, &found) {
            (Ok(e), Ok(f)) if e == f => {}
            (Err(word), Err(text)) if text.contains(word) && done.code == 1 => {}
            _ => faults.push(format!("{file}: {found:?} instead of {expected:?}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_file_is_forgotten() {
    if crate::common::is_reference_absent() {
        return;
    }
    for (sub, end) in [
        ("pkml", ".pkml"),
        ("simmodel", ".xml"),
        ("ref", ".simmodel.xml"),
    ] {
        for entry in std::fs::read_dir(data(sub)).unwrap() {
            let name = format!("{sub}/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(
                !name.ends_with(end) || FILES.iter().any(|(f, _)| *f == name),
                "{name} is not tested"
            );
        }
    }
}

fn split(line: &str) -> Vec<&str> {
    let mut quoted = false;
    line.split(move |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .collect()
}

#[test]
fn csv_reads_back_to_the_same_bits() {
    if crate::common::is_reference_absent() {
        return;
    }
    let file = data("simmodel/SimModel4_ExampleInput06.xml");
    let done = sim(&["run", &file.display().to_string(), "--csv", "-"]);
    let results = common::run(
        &common::instance(common::load("simmodel/SimModel4_ExampleInput06.xml")),
        &Default::default(),
    );
    for (row, line) in done.out.lines().skip(1).enumerate() {
        let fields: Vec<f64> = split(line).iter().map(|f| f.parse().unwrap()).collect();
        assert_eq!(fields[0].to_bits(), results.times[row].to_bits());
        for (i, field) in fields[1..].iter().enumerate() {
            assert_eq!(
                field.to_bits(),
                results.values[row * results.paths.len() + i].to_bits()
            );
        }
    }
}

#[test]
fn selection_of_the_file_is_the_default() {
    if crate::common::is_reference_absent() {
        return;
    }
    let file = data("pkml/coreR_simple.pkml").display().to_string();
    let header = |arguments: &[&str]| {
        let done = sim(&[&["run", file.as_str(), "--csv", "-"], arguments].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        done.out.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        header(&[]),
        "Time [min],Organism|B [µmol],Organism|Liver|A [µmol],Organism|Liver|B [µmol],Organism|A [µmol]"
    );
    assert_eq!(
        header(&["--output", "Organism|Liver|*"]),
        "Time [min],Organism|Liver|Volume [l],Organism|Liver|A [µmol],Organism|Liver|B [µmol]"
    );
    assert_eq!(
        header(&["--output", "Simple|Organism|A"]),
        "Time [min],Organism|A [µmol]"
    );
}

#[test]
fn parameters_change_the_run() {
    if crate::common::is_reference_absent() {
        return;
    }
    let file = data("pkml/coreR_simple.pkml").display().to_string();
    let last = |arguments: &[&str]| -> f64 {
        let done = sim(&[
            &[
                "run",
                file.as_str(),
                "--csv",
                "-",
                "--output",
                "Organism|A",
                "--rtol",
                "1e-10",
                "--atol",
                "1e-12",
            ],
            arguments,
        ]
        .concat());
        assert_eq!(done.code, 0, "{}", done.err);
        split(done.out.lines().last().unwrap())[1].parse().unwrap()
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-7 * b, "{a} {b}");
    near(last(&[]), 40.0 * (-3.0_f64).exp());
    near(last(&["--param", "R1|k1=0.02"]), 40.0 * (-6.0_f64).exp());
    near(
        last(&["--param", "R1|k1=0.6[1/h]"]),
        40.0 * (-3.0_f64).exp(),
    );
    near(
        last(&["--param", "Organism|A=20 \u{b5}mol"]),
        20.0 * (-3.0_f64).exp(),
    );
    near(
        last(&["--param", "Organism|A=0.02 mmol", "--param", "R1|k1=0"]),
        20.0,
    );
}

#[test]
fn misuse_is_answered_with_help() {
    if crate::common::is_reference_absent() {
        return;
    }
    let file = data("pkml/coreR_simple.pkml").display().to_string();
    for (arguments, word) in [
        (
            vec!["--param", "Organism|Liver|Volme=3"],
            "Organism|Liver|Volume",
        ),
        (vec!["--param", "Organism|Liver|Volume=3 kg"], "accepted: l"),
        (vec!["--param", "Organism|Liver|Volume=abc"], "number"),
        (vec!["--param", "Organism|Liver|Volume"], "'='"),
        (vec!["--param", "Organism|Liver|Volume=nan"], "not a number"),
        (vec!["--output", "Organism|Kidney"], "nearest"),
        (vec!["--rtol", "0"], "positive"),
        (vec!["--rtol", "-1"], "--rtol must be a positive number"),
        (
            vec!["--timeout", "-3"],
            "--timeout must be a positive number",
        ),
        (vec!["--times", "0,-1"], "not a time"),
        (vec!["--times", "-5,10"], "-5 is not a time"),
        (vec!["--csv", file.as_str()], "not overwritten"),
    ] {
        let done = sim(&[&["run", file.as_str()], arguments.as_slice()].concat());
        assert_eq!(done.code, 2, "{arguments:?}: {}", done.err);
        assert!(done.err.contains(word), "{arguments:?}: {}", done.err);
        assert!(done.out.is_empty(), "{arguments:?}");
    }
    for (name, value, word) in [
        ("--times", "10,5 h", "write a number"),
        ("--rtol", "1e-4x", "write a number"),
        ("--max-steps", "0", "a whole number above 0"),
        ("--max-steps", "-3", "a whole number above 0"),
    ] {
        let words = ["sim", "run", file.as_str(), name, value];
        let refused = Cli::try_parse_from(words).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let missing = sim(&["run", "/no/such/file.pkml"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing
            .err
            .starts_with("error: cannot read /no/such/file.pkml"),
        "{}",
        missing.err
    );
}

#[test]
fn bounds_of_the_file_hold() {
    if crate::common::is_reference_absent() {
        return;
    }
    let folder = folder("bounds");
    let text = std::fs::read_to_string(data("pkml/coreR_simple.pkml")).unwrap();
    // The rate constant gets a lower and an upper bound.
    let at = text.rfind("name=\"k1\"").unwrap();
    let info = at + text[at..].find("<Info ").unwrap() + 6;
    let file = folder.join("bounded.pkml");
    std::fs::write(
        &file,
        format!("{}min=\"0\" max=\"1\" {}", &text[..info], &text[info..]),
    )
    .unwrap();
    let with = |value: &str| {
        sim(&[
            "run",
            &file.display().to_string(),
            "--param",
            &format!("R1|k1={value}"),
        ])
    };
    assert_eq!(with("0.5").code, 0);
    for value in ["-0.1", "1.5", "61[1/min]"] {
        let done = with(value);
        assert_eq!(done.code, 2);
        assert!(
            done.err.contains("outside the range") && done.err.contains("0 to 1"),
            "{}",
            done.err
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn statistics_and_json() {
    let file = example();
    let done = sim(&["run", &file, "--stats", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(
        done.err.lines().any(|l| l.starts_with("steps ")),
        "{}",
        done.err
    );
    assert!(done.out.starts_with("{\"times\":213,"), "{}", done.out);
    let info = sim(&["info", &file, "--json"]);
    assert!(info.out.contains("\"states\":2"), "{}", info.out);
    let params = sim(&["params", &file, "--json", "--used"]);
    assert!(
        params.out.contains("Clearance") && !params.out.contains("AbsTol"),
        "{}",
        params.out
    );
}

#[test]
fn a_timeout_ends_a_run_and_an_export() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = data("simmodel/VersionTest.xml").display().to_string();
    for words in [
        &["run", &model][..],
        &["export", &model, "--format", "sbml"],
    ] {
        let done = sim(&[words, &["--timeout", "1e-9"]].concat());
        assert_eq!((done.code, done.out.as_str()), (1, ""));
        assert!(done.err.contains("deadline exceeded"), "{}", done.err);
        let refused = sim(&[words, &["--timeout", "0"]].concat());
        assert_eq!(refused.code, 2, "{}", refused.err);
    }
}

#[test]
fn located_events_do_not_depend_on_the_grid() {
    // A falls as exp(-t); when it is below 1/2, B is set to 1. The true time is ln 2.
    let folder = folder("events");
    let file = folder.join("threshold.xml");
    let text = "<Simulation version=\"4\" objectPathDelimiter=\"|\"><VariableList>\
        <V id=\"1\" path=\"S|A\" name=\"A\" value=\"1\" persistable=\"1\"><RHSFormulaList><RHSFormula id=\"10\"/></RHSFormulaList></V>\
        <V id=\"2\" path=\"S|B\" name=\"B\" value=\"0\" persistable=\"1\"><RHSFormulaList><RHSFormula id=\"11\"/></RHSFormulaList></V></VariableList>\
        <ParameterList><P id=\"3\" path=\"S|on\" name=\"on\" value=\"0\"/></ParameterList>\
        <EventList><Event id=\"4\" conditionFormulaId=\"12\" oneTime=\"1\"><AssignmentList><Assignment objectId=\"3\" newFormulaId=\"13\" useAsValue=\"1\"/></AssignmentList></Event></EventList>\
        <FormulaList><ExplicitFormula id=\"10\"><Equation>-A</Equation><ReferenceList><R alias=\"A\" id=\"1\"/></ReferenceList></ExplicitFormula>\
        <ExplicitFormula id=\"11\"><Equation>on</Equation><ReferenceList><R alias=\"on\" id=\"3\"/></ReferenceList></ExplicitFormula>\
        <ExplicitFormula id=\"12\"><Equation>A &lt; 0.5</Equation><ReferenceList><R alias=\"A\" id=\"1\"/></ReferenceList></ExplicitFormula>\
        <ExplicitFormula id=\"13\"><Equation>1</Equation></ExplicitFormula></FormulaList>\
        <OutputSchema><OutputTimeList><OutputTime>0</OutputTime><OutputTime>1</OutputTime><OutputTime>2</OutputTime></OutputTimeList></OutputSchema></Simulation>";
    std::fs::write(&file, text).unwrap();
    let b = |arguments: &[&str]| -> f64 {
        let file = file.display().to_string();
        let done = sim(&[
            &[
                "run",
                file.as_str(),
                "--csv",
                "-",
                "--output",
                "S|B",
                "--rtol",
                "1e-9",
                "--atol",
                "1e-12",
            ],
            arguments,
        ]
        .concat());
        assert_eq!(done.code, 0, "{}", done.err);
        split(done.out.lines().last().unwrap())[1].parse().unwrap()
    };
    assert!(
        (b(&[]) - 1.0).abs() < 1e-9,
        "fires at the next output time, 1"
    );
    for grid in [
        vec!["--locate-events"],
        vec!["--locate-events", "--times", "0,0.3,2"],
    ] {
        let found = b(&grid);
        assert!(
            (found - (2.0 - std::f64::consts::LN_2)).abs() < 1e-7,
            "{found}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// An oscillator x = cos t, y = sin t crosses 0.7 upwards ten times in 20 π; the time alone does so too, while nothing
/// else moves. Each event adds 1 at each crossing, and nowhere else, whatever the grid.
#[test]
fn all_crossings_are_located() {
    let folder = folder("crossings");
    let file = folder.join("crossings.xml");
    let formula = |id: u32, text: &str, refs: &[(&str, u32)]| {
        let refs: String = refs
            .iter()
            .map(|(a, id)| format!("<R alias=\"{a}\" id=\"{id}\"/>"))
            .collect();
        format!(
            "<ExplicitFormula id=\"{id}\"><Equation>{text}</Equation><ReferenceList>{refs}</ReferenceList></ExplicitFormula>"
        )
    };
    let state = |id: u32, name: &str, value: u32, rate: u32| {
        format!(
            "<V id=\"{id}\" path=\"S|{name}\" name=\"{name}\" value=\"{value}\" persistable=\"1\"><RHSFormulaList><RHSFormula id=\"{rate}\"/></RHSFormulaList></V>"
        )
    };
    let event = |id: u32, condition: u32, target: u32, formula: u32| {
        format!(
            "<Event id=\"{id}\" conditionFormulaId=\"{condition}\" oneTime=\"0\"><AssignmentList><Assignment objectId=\"{target}\" newFormulaId=\"{formula}\" useAsValue=\"1\"/></AssignmentList></Event>"
        )
    };
    let text = format!(
        "<Simulation version=\"4\" objectPathDelimiter=\"|\"><VariableList>{}{}{}{}</VariableList><EventList>{}{}</EventList><FormulaList>{}{}{}{}{}{}{}</FormulaList>\
        <OutputSchema><OutputTimeList><OutputTime>0</OutputTime><OutputTime>62.8318530717</OutputTime></OutputTimeList></OutputSchema></Simulation>",
        state(1, "x", 1, 11),
        state(2, "y", 0, 12),
        state(3, "n", 0, 13),
        state(4, "m", 0, 13),
        event(5, 14, 3, 15),
        event(6, 16, 4, 17),
        formula(11, "-y", &[("y", 2)]),
        formula(12, "x", &[("x", 1)]),
        formula(13, "0", &[]),
        formula(14, "y&gt;0.7", &[("y", 2)]),
        formula(15, "n+1", &[("n", 3)]),
        formula(16, "SIN(t)&gt;0.7", &[("t", 0)]),
        formula(17, "m+1", &[("m", 4)]),
    );
    std::fs::write(&file, text).unwrap();
    let path = file.display().to_string();
    for times in ["62.8318530717", "1,2,3,4,5,6,7,8,9,30,62.8318530717"] {
        let done = sim(&[
            "run",
            &path,
            "--csv",
            "-",
            "--locate-events",
            "--times",
            times,
        ]);
        assert_eq!(done.code, 0, "{}", done.err);
        let last = split(done.out.lines().last().unwrap());
        assert_eq!((last[3], last[4]), ("10", "10"), "{}", done.out);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Splits a command as a shell does, as far as the README needs.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

#[test]
fn commands_of_the_readme_work() {
    let folder = folder("readme");
    let text = include_str!("../../README.md");
    let mut commands = 0;
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines().filter(|l| !l.trim().is_empty()) {
            let mut command = words(line);
            assert_eq!(command[..2], ["durward", "sim"], "{line}");
            for word in &mut command {
                *word = word.replace("examples/two_compartment.xml", &example());
                if word == "people" || word == "cohort" {
                    *word = folder.join(&*word).display().to_string();
                }
                if word == "examples/observed.csv" {
                    *word = observed();
                } else if word.ends_with(".csv")
                    || word.ends_with(".svg")
                    || (word.ends_with(".xml") && !word.contains("two_compartment"))
                {
                    *word = folder.join(&*word).display().to_string();
                }
            }
            let arguments: Vec<&str> = command[2..].iter().map(String::as_str).collect();
            let done = sim(&arguments);
            assert_eq!(done.code, 0, "{line}: {}", done.err);
            let writes = arguments
                .iter()
                .any(|a| a.ends_with(".csv") || a.ends_with(".svg"));
            assert!(writes || !done.out.trim().is_empty(), "{line} said nothing");
            assert!(!done.err.contains("warning"), "{line}: {}", done.err);
            commands += 1;
        }
    }
    assert!(commands >= 10, "{commands}");
    for written in ["results.csv", "curves.svg", "fit.svg"] {
        assert!(
            std::fs::metadata(folder.join(written)).unwrap().len() > 100,
            "{written}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}
