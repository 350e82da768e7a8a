//! What must fail: with the stated kind of error, by line or path, never with a crash.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::{self, data, instance, load};
use pbpk::error::LoadError;
use pbpk::formula::FormulaError;
use pbpk::read::{self, ReadOptions, XmlLimits};
use pbpk::run::{RunError, RunFailure, RunOptions};
use pbpk::solve::Interrupt;

fn fails(file: &str) -> Box<RunFailure> {
    pbpk::run::run(
        &instance(load(&format!("simmodel/{file}.xml"))),
        &RunOptions::default(),
    )
    .expect_err(file)
}

fn refused(text: &str) -> LoadError {
    read::bytes(text.as_bytes(), &ReadOptions::default()).expect_err(text)
}

/// A SimModel file of version 4 with these lists.
fn model(lists: &str) -> String {
    format!(
        "<Simulation version=\"4\" objectPathDelimiter=\"|\">{lists}<OutputSchema><OutputTimeList><OutputTime>0</OutputTime>\
         <OutputTime>1</OutputTime></OutputTimeList></OutputSchema></Simulation>"
    )
}

/// A parameter `S|p` with this formula over the aliases a and b of `S|a` and `S|b`.
fn formula(equation: &str) -> String {
    let equation = equation.replace('<', "&lt;");
    model(&format!(
        "<ParameterList><P id=\"1\" path=\"S|a\" name=\"a\" value=\"2\"/><P id=\"2\" path=\"S|b\" name=\"b\" value=\"3\"/>\
         <P id=\"3\" path=\"S|p\" name=\"p\" formulaId=\"9\" persistable=\"1\"/></ParameterList><FormulaList><ExplicitFormula id=\"9\">\
         <Equation>{equation}</Equation><ReferenceList><R alias=\"a\" id=\"1\"/><R alias=\"b\" id=\"2\"/></ReferenceList>\
         </ExplicitFormula></FormulaList>"
    ))
}

#[test]
fn negative_start_value() {
    if crate::common::is_reference_absent() {
        return;
    }
    let failure = fails("NegativeInititalValue");
    assert!(matches!(failure.error, RunError::NegativeStart { .. }));
    let text = failure.to_string();
    assert!(
        text.contains("initial value")
            && text.contains("negative")
            && text.contains("NegativeInititalValue|Organism|C1"),
        "{text}"
    );
}

#[test]
fn negative_states_end_the_run_with_their_time() {
    if crate::common::is_reference_absent() {
        return;
    }
    for (file, at) in [
        ("NegativeValuesForbidden_CheckSettingTrue", 15.0),
        ("NegativeValuesForbidden_NoCheckSetting", 15.0),
        ("S30_negativeValues", 33.0),
    ] {
        let failure = fails(file);
        assert!(
            matches!(failure.error, RunError::Negative { time, .. } if time == at),
            "{file}: {failure}"
        );
        let text = failure.to_string();
        assert!(
            text.contains("negative") && text.contains(&format!("t = {at}")),
            "{text}"
        );
    }
}

#[test]
fn negative_states_pass_where_the_file_allows_them() {
    if crate::common::is_reference_absent() {
        return;
    }
    let results = common::run(
        &instance(load(
            "simmodel/NegativeValuesForbidden_CheckSettingFalse.xml",
        )),
        &RunOptions::default(),
    );
    let last = |path: &str| *results.by_path(path).unwrap().last().unwrap();
    assert!((last("2Species1Reaction_NegativeValuesForbidden|Container|C1") + 1440.0).abs() < 1e-6);
    assert!((last("2Species1Reaction_NegativeValuesForbidden|Container|C2") - 1440.0).abs() < 1e-6);
}

#[test]
fn too_much_work_names_limit_and_time_and_is_a_warning_too() {
    if crate::common::is_reference_absent() {
        return;
    }
    let failure = fails("TestWarnings_LowMxStep");
    assert!(
        matches!(failure.error, RunError::TooMuchWork { time, limit: 2, .. } if time == 0.2),
        "{failure}"
    );
    let text = failure.to_string();
    assert!(
        text.contains("0.2") && text.contains("2 internal steps"),
        "{text}"
    );
    assert_eq!(failure.warnings.last(), Some(&text));
}

#[test]
fn negative_output_time_is_refused_when_strict_and_dropped_when_not() {
    if crate::common::is_reference_absent() {
        return;
    }
    let path = data("simmodel/InvalidSimmodelXML.xml");
    let strict = read::file(
        &path,
        &ReadOptions {
            strict: true,
            ..ReadOptions::default()
        },
    )
    .unwrap_err();
    assert!(strict.to_string().contains("output times"), "{strict}");
    let lenient = load("simmodel/InvalidSimmodelXML.xml");
    assert_eq!(lenient.warnings.len(), 1);
    let results = common::run(&instance(lenient), &RunOptions::default());
    assert_eq!(results.times[0], 0.0);
    for path in ["TopContainer/y1", "TopContainer/y2"] {
        assert!(results.by_path(path).unwrap().iter().all(|v| *v == 2.0));
    }
}

#[test]
fn formulas_that_replace_themselves_are_a_cycle() {
    if crate::common::is_reference_absent() {
        return;
    }
    let failure = fails("TestCrashSimultaneousEvents");
    assert!(matches!(failure.error, RunError::Cycle { .. }));
    assert!(failure.to_string().contains("S1|Organism|M1"), "{failure}");
}

#[test]
fn building_blocks_are_named() {
    if crate::common::is_reference_absent() {
        return;
    }
    let error = read::file(&data("pkml/core_BlackBox.pkml"), &ReadOptions::default()).unwrap_err();
    assert_eq!(
        error,
        LoadError::UnsupportedRoot {
            found: "SpatialStructure".to_owned()
        }
    );
    assert!(error.to_string().contains("SpatialStructure"));
}

#[test]
fn truncated_files_are_refused_wherever_they_end() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in [
        "simmodel/TestSimultanEvents.xml",
        "pkml/core_EventsAppKeywordReplacement.pkml",
    ] {
        let whole = std::fs::read(data(file)).unwrap();
        let end = whole.iter().rposition(|b| *b == b'>').unwrap();
        for cut in (0..=end).step_by(97) {
            let error = read::bytes(&whole[..cut], &ReadOptions::default());
            assert!(error.is_err(), "{file} cut at {cut}");
        }
    }
}

#[test]
fn empty_and_foreign_documents() {
    assert!(matches!(refused(""), LoadError::Invalid { .. }));
    assert!(matches!(refused("   \n\n"), LoadError::Invalid { .. }));
    assert!(matches!(
        refused("no xml at all"),
        LoadError::Invalid { .. } | LoadError::Xml { .. }
    ));
    assert_eq!(
        refused("<html/>"),
        LoadError::UnsupportedRoot {
            found: "html".to_owned()
        }
    );
    assert!(matches!(
        refused("<SimulationTransfer version=\"18\"/>"),
        LoadError::Invalid { .. }
    ));
    assert!(matches!(
        refused("<SimulationTransfer version=\"2\"><Simulation/></SimulationTransfer>"),
        LoadError::Invalid { .. }
    ));
    assert!(matches!(
        refused("<Simulation/><Simulation/>"),
        LoadError::Invalid { .. } | LoadError::Xml { .. }
    ));
}

#[test]
fn projects_are_named_with_what_to_export() {
    let mut project = b"SQLite format 3\0".to_vec();
    project.extend([0xff; 200]);
    let error = read::bytes(&project, &ReadOptions::default()).unwrap_err();
    assert_eq!(error, LoadError::Project);
    let text = error.to_string();
    assert!(
        text.contains(".pksim5") && text.contains("export the simulation as .pkml"),
        "{text}"
    );
}

#[test]
fn mismatched_tags_name_their_line() {
    let error = refused("<Simulation>\n<ParameterList>\n</Simulation>");
    assert!(matches!(error, LoadError::Xml { line: 3, .. }), "{error:?}");
}

#[test]
fn entity_bombs_are_refused() {
    let bomb = "<!DOCTYPE b [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><Simulation><ParameterList>&b;</ParameterList></Simulation>";
    assert!(
        refused(bomb).to_string().contains("document type"),
        "{}",
        refused(bomb)
    );
    assert!(matches!(
        refused(
            "<Simulation><FormulaList><ExplicitFormula id=\"1\"><Equation>&b;</Equation></ExplicitFormula></FormulaList></Simulation>"
        ),
        LoadError::Xml { .. }
    ));
    assert!(matches!(
        refused("<Simulation version=\"&b;\"/>"),
        LoadError::Xml { .. }
    ));
}

#[test]
fn bounds_of_depth_size_and_tags() {
    let deep = format!("<Simulation>{}", "<a>".repeat(10_000));
    assert!(matches!(
        refused(&deep),
        LoadError::Limit {
            what: "levels of nesting",
            ..
        }
    ));
    let small = |bytes: u64, tag: u64| ReadOptions {
        limits: XmlLimits {
            file_bytes_max: bytes,
            tag_bytes_max: tag,
            ..XmlLimits::default()
        },
        ..ReadOptions::default()
    };
    let long = format!(
        "<Simulation><a b=\"{}\"/></Simulation>",
        "x".repeat(100_000)
    );
    assert!(matches!(
        read::bytes(long.as_bytes(), &small(1 << 30, 10_000)),
        Err(LoadError::Limit {
            what: "bytes in one tag",
            ..
        })
    ));
    let many = format!("<Simulation>{}</Simulation>", "<a/>".repeat(100_000));
    assert!(matches!(
        read::bytes(many.as_bytes(), &small(10_000, 10_000)),
        Err(LoadError::Limit {
            what: "bytes in the file",
            ..
        })
    ));
    let times = model(
        "<OutputSchema><OutputIntervalList><OutputInterval><StartTime>0</StartTime><EndTime>1</EndTime><NumberOfTimePoints>3e6</NumberOfTimePoints></OutputInterval><OutputInterval><StartTime>0</StartTime><EndTime>1</EndTime><NumberOfTimePoints>3e6</NumberOfTimePoints></OutputInterval></OutputIntervalList></OutputSchema>",
    );
    assert!(matches!(
        refused(&times),
        LoadError::Limit {
            what: "output times",
            ..
        }
    ));
}

#[test]
fn unknown_ids_are_named_with_their_user() {
    let text = model(
        "<ParameterList><P id=\"1\" path=\"S|p\" name=\"p\" formulaId=\"77\"/></ParameterList>",
    );
    assert_eq!(
        refused(&text),
        LoadError::UnknownId {
            id: "77".to_owned(),
            used_by: "S|p".to_owned()
        }
    );
    let text = formula("a+b").replace("alias=\"b\" id=\"2\"", "alias=\"b\" id=\"55\"");
    assert!(matches!(refused(&text), LoadError::UnknownId { id, .. } if id == "55"));
    let text = model("<Solver><AbsTol id=\"5\"/></Solver>");
    assert!(
        matches!(refused(&text), LoadError::UnknownId { id, used_by } if id == "5" && used_by.contains("AbsTol"))
    );
}

#[test]
fn unresolved_paths_are_named_with_their_user() {
    if crate::common::is_reference_absent() {
        return;
    }
    let whole = std::fs::read_to_string(data("pkml/coreR_simple.pkml")).unwrap();
    let broken = whole.replace("s=\"Simple|R1|k1\"", "s=\"Simple|R1|k2\"");
    assert_ne!(whole, broken);
    match read::bytes(broken.as_bytes(), &ReadOptions::default()) {
        Err(LoadError::UnresolvedPath { path, used_by }) => {
            assert_eq!(path, "Simple|R1|k2");
            assert!(used_by.ends_with("R1"), "{used_by}");
        }
        other => panic!("{other:?}"),
    }
}

/// Whether the error is the one that is due.
type Expected = fn(&FormulaError) -> bool;

#[test]
fn faulty_formulas_say_what_and_where() {
    let cases: [(&str, Expected); 12] = [
        (
            "foo(a)",
            |e| matches!(e, FormulaError::UnknownFunction { name, column: 1 } if name == "foo"),
        ),
        (
            "a+c",
            |e| matches!(e, FormulaError::UnknownName { name, column: 3 } if name == "c"),
        ),
        ("a+", |e| matches!(e, FormulaError::Unexpected { .. })),
        ("(a", |e| matches!(e, FormulaError::Unexpected { .. })),
        ("a)", |e| {
            matches!(e, FormulaError::Unexpected { column: 2, .. })
        }),
        ("", |e| {
            matches!(e, FormulaError::Unexpected { column: 1, .. })
        }),
        ("a ? b", |e| matches!(e, FormulaError::Unexpected { .. })),
        ("MIN(a)", |e| {
            matches!(e, FormulaError::Operands { wanted: 2, .. })
        }),
        ("SIN(a;b)", |e| {
            matches!(e, FormulaError::Operands { wanted: 1, .. })
        }),
        ("RND()", |e| matches!(e, FormulaError::Random { .. })),
        ("a*/b", |e| {
            matches!(e, FormulaError::Unexpected { column: 3, .. })
        }),
        ("((((((((((a", |e| {
            matches!(e, FormulaError::Unexpected { .. })
        }),
    ];
    for (equation, expected) in cases {
        match refused(&formula(equation)) {
            LoadError::Formula { source, .. } => {
                assert!(expected(&source), "{equation}: {source:?}")
            }
            other => panic!("{equation}: {other:?}"),
        }
    }
    let nested = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
    assert!(matches!(
        refused(&formula(&nested)),
        LoadError::Formula {
            source: FormulaError::TooLarge { .. },
            ..
        }
    ));
}

#[test]
fn cyclic_parameters_are_named() {
    let text = model(
        "<ParameterList><P id=\"1\" path=\"S|a\" name=\"a\" formulaId=\"9\"/><P id=\"2\" path=\"S|b\" name=\"b\" formulaId=\"8\"/></ParameterList>\
         <FormulaList><ExplicitFormula id=\"9\"><Equation>b+1</Equation><ReferenceList><R alias=\"b\" id=\"2\"/></ReferenceList></ExplicitFormula>\
         <ExplicitFormula id=\"8\"><Equation>a*2</Equation><ReferenceList><R alias=\"a\" id=\"1\"/></ReferenceList></ExplicitFormula></FormulaList>",
    );
    match refused(&text) {
        LoadError::Cycle { paths } => assert_eq!(paths, ["S|a", "S|b", "S|a"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tables_must_increase_and_have_points() {
    for points in [
        "",
        "<Point x=\"1\" y=\"1\"/>",
        "<Point x=\"1\" y=\"1\"/><Point x=\"1\" y=\"2\"/>",
        "<Point x=\"NaN\" y=\"1\"/><Point x=\"1\" y=\"2\"/>",
    ] {
        let text = model(&format!(
            "<FormulaList><TableFormula id=\"1\" useDerivedValues=\"1\"><PointList>{points}</PointList></TableFormula></FormulaList>"
        ));
        assert!(
            matches!(refused(&text), LoadError::Invalid { .. }),
            "{points}"
        );
    }
}

#[test]
fn an_empty_grid_cannot_run() {
    let text = "<Simulation version=\"4\"><ParameterList><P id=\"1\" path=\"S|a\" name=\"a\" value=\"1\"/></ParameterList></Simulation>";
    let model = read::bytes(text.as_bytes(), &ReadOptions::default()).unwrap();
    let failure = pbpk::run::run(&instance(model), &RunOptions::default()).unwrap_err();
    assert_eq!(failure.error, RunError::EmptyGrid);
}

#[test]
fn a_model_that_cannot_start_names_the_state() {
    let text = model(
        "<VariableList><V id=\"1\" path=\"S|y\" name=\"y\" value=\"0\"><RHSFormulaList><RHSFormula id=\"9\"/></RHSFormulaList></V></VariableList>\
         <FormulaList><ExplicitFormula id=\"9\"><Equation>LN(y-1)</Equation><ReferenceList><R alias=\"y\" id=\"1\"/></ReferenceList></ExplicitFormula></FormulaList>",
    );
    let failure = pbpk::run::run(
        &instance(read::bytes(text.as_bytes(), &ReadOptions::default()).unwrap()),
        &RunOptions::default(),
    )
    .unwrap_err();
    assert!(
        matches!(&failure.error, RunError::CannotStart { path, .. } if path == "S|y"),
        "{failure}"
    );
}

#[test]
fn cancellation_and_deadline_end_a_run_inside() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("simmodel/VersionTest.xml"));
    for cause in [Interrupt::Cancelled, Interrupt::Deadline] {
        let asked = AtomicUsize::new(0);
        let ask = || (asked.fetch_add(1, Relaxed) >= 50).then_some(cause);
        let failure = pbpk::run::run(
            &i,
            &RunOptions {
                interrupt: Some(&ask),
                ..RunOptions::default()
            },
        )
        .unwrap_err();
        assert!(matches!(failure.error, RunError::Interrupted { cause: c, .. } if c == cause));
        assert_eq!(asked.into_inner(), 51);
    }
}

#[test]
fn a_directory_and_a_missing_file() {
    if crate::common::is_reference_absent() {
        return;
    }
    assert!(matches!(
        read::file(&data("pkml"), &ReadOptions::default()),
        Err(LoadError::Io { .. })
    ));
    assert!(matches!(
        read::file(&data("no such file"), &ReadOptions::default()),
        Err(LoadError::Io { .. })
    ));
    let small = ReadOptions {
        limits: XmlLimits {
            file_bytes_max: 1000,
            ..XmlLimits::default()
        },
        ..ReadOptions::default()
    };
    assert!(matches!(
        read::file(&data("pkml/core_simple.pkml"), &small),
        Err(LoadError::Limit {
            what: "bytes in the file",
            limit: 1000,
            ..
        })
    ));
}

/// Reading and compiling ask the caller, and end where the answer says so.
#[test]
fn reading_and_compiling_can_be_interrupted() {
    if crate::common::is_reference_absent() {
        return;
    }
    use pbpk::watch::{Interrupt, Watch};
    let file = common::data("pkml/pksim_S1_concentrBased.pkml");
    let asked = AtomicUsize::new(0);
    // Every question is answered with a stop, one after another, until the work gets through.
    let attempt = |allowed: usize| {
        asked.store(0, Relaxed);
        let ask = || (asked.fetch_add(1, Relaxed) >= allowed).then_some(Interrupt::Cancelled);
        let watch = Watch::new(Some(&ask));
        let model = match pbpk::read::file_watched(&file, &Default::default(), &watch) {
            Ok(model) => model,
            Err(e) => return Err(e.to_string()),
        };
        let outputs = model.outputs();
        let made =
            pbpk::compile::Structure::with_watch(std::sync::Arc::new(model), outputs, &watch);
        made.map(|_| ()).map_err(|e| e.to_string())
    };
    attempt(usize::MAX).unwrap();
    let questions = asked.load(Relaxed);
    assert!(questions >= 20, "{questions}");
    for allowed in [0, 1, questions / 2, questions - 1] {
        let error = attempt(allowed).unwrap_err();
        assert!(
            error.starts_with("cancelled while the model was"),
            "{error}"
        );
    }
}
