//! What the releases of OSP do otherwise at the start of a run. The numbers are those of the genuine libraries.

use crate::common::{instance, run};
use pbpk::run::{OspVersion, Results, RunOptions};

/// A model of one state (M' = -0.3 M, 10 at the start) with these events, each a condition, what M becomes and whether
/// it happens once; output times are whole minutes from `first` to 4.
fn model(events: &[(&str, &str, bool)], first: u32) -> String {
    let escaped = |text: &str| text.replace('<', "&lt;").replace('>', "&gt;");
    let (mut formulas, mut list) = (String::new(), String::new());
    for (i, (condition, value, once)) in events.iter().enumerate() {
        for (id, text) in [(100 + i, condition), (200 + i, value)] {
            formulas += &format!(
                "<ExplicitFormula id=\"{id}\"><Equation>{}</Equation><ReferenceList><R alias=\"Time\" id=\"0\"/>\
                 <R alias=\"M\" id=\"4\"/></ReferenceList></ExplicitFormula>",
                escaped(text)
            );
        }
        list += &format!(
            "<Event id=\"{}\" conditionFormulaId=\"{}\" oneTime=\"{}\"><AssignmentList><Assignment objectId=\"4\" \
             newFormulaId=\"{}\" useAsValue=\"1\"/></AssignmentList></Event>",
            300 + i,
            100 + i,
            u8::from(*once),
            200 + i
        );
    }
    format!(
        "<Simulation version=\"4\" objectPathDelimiter=\"|\"><FormulaList><ExplicitFormula id=\"20\"><Equation>-k*M</Equation>\
         <ReferenceList><R alias=\"k\" id=\"1\"/><R alias=\"M\" id=\"4\"/></ReferenceList></ExplicitFormula>{formulas}\
         </FormulaList><VariableList><V id=\"4\" name=\"M\" path=\"S|M\" value=\"10\" persistable=\"1\"><RHSFormulaList>\
         <RHSFormula id=\"20\"/></RHSFormulaList></V></VariableList><ParameterList><P id=\"1\" name=\"k\" path=\"S|k\" \
         value=\"0.3\"/></ParameterList><EventList>{list}</EventList><OutputSchema><OutputIntervalList><OutputInterval>\
         <StartTime>{first}</StartTime><EndTime>4</EndTime><NumberOfTimePoints>{}</NumberOfTimePoints></OutputInterval>\
         </OutputIntervalList></OutputSchema></Simulation>",
        5 - first
    )
}

fn results(events: &[(&str, &str, bool)], first: u32, release: OspVersion) -> Results {
    let xml = model(events, first);
    let model = pbpk::read::bytes(xml.as_bytes(), &Default::default()).unwrap();
    let options = RunOptions {
        osp_version: release,
        rel_tol: Some(1e-9),
        abs_tol: Some(1e-12),
        ..RunOptions::default()
    };
    run(&instance(model), &options)
}

/// Checks times and values of M against those of the genuine library, which has five digits of them.
fn check(events: &[(&str, &str, bool)], first: u32, release: OspVersion, expected: &[(f64, f64)]) {
    let found = results(events, first, release);
    let values = found.by_path("S|M").unwrap();
    let rows: Vec<(f64, f64)> = found.times.iter().copied().zip(values).collect();
    let same = rows.len() == expected.len()
        && rows
            .iter()
            .zip(expected)
            .all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() <= 1e-4);
    assert!(same, "{events:?} from {first} with {release}: {rows:?}");
    assert_eq!(found.osp_version, release);
}

const RELEASE: OspVersion = OspVersion::V12_4_3;
const BUILD: OspVersion = OspVersion::Dev13;

#[test]
fn the_release_tests_events_once_at_zero_and_the_build_twice() {
    let once = [
        (0.0, 10.0),
        (1.0, 8.14896),
        (2.0, 6.0369),
        (3.0, 4.47223),
        (4.0, 3.3131),
    ];
    let twice = [
        (0.0, 10.0),
        (1.0, 8.88977),
        (2.0, 6.58571),
        (3.0, 4.8788),
        (4.0, 3.6143),
    ];
    let repeating = [("Time=0", "M+1", false)];
    check(&repeating, 0, RELEASE, &once);
    check(&repeating, 0, BUILD, &twice);
    assert!(results(&repeating, 0, RELEASE).warnings.is_empty());
    let warnings = results(&repeating, 0, BUILD).warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("repeats at 0"),
        "{warnings:?}"
    );
    // 0 is no switch time here.
    let on_state = [("M>1", "M+1", false)];
    let rows = [
        (0.0, 10.0),
        (1.0, 8.14896),
        (2.0, 6.77768),
        (3.0, 5.76182),
        (4.0, 5.00925),
    ];
    check(&on_state, 0, RELEASE, &rows);
    check(&on_state, 0, BUILD, &rows);
}

#[test]
fn the_release_always_stores_the_row_at_zero() {
    let rows = [
        (0.0, 10.0),
        (1.0, 8.14896),
        (2.0, 6.77768),
        (3.0, 5.76182),
        (4.0, 5.00925),
    ];
    let on_state = [("M>1", "M+1", false)];
    check(&on_state, 1, RELEASE, &rows);
    check(&on_state, 1, BUILD, &rows[1..]);
    let plain = [(0.0, 10.0), (3.0, 4.0657), (4.0, 3.01194)];
    check(&[], 3, RELEASE, &plain);
    check(&[], 3, BUILD, &plain[1..]);
}

#[test]
fn the_release_ignores_switch_times_before_zero_and_the_build_starts_there() {
    let two = [("Time=-2", "5", true), ("Time=-1", "7", false)];
    let ignored = [
        (0.0, 10.0),
        (1.0, 7.40818),
        (2.0, 5.48812),
        (3.0, 4.0657),
        (4.0, 3.01194),
    ];
    let early = [
        (1.0, 3.84166),
        (2.0, 2.84597),
        (3.0, 2.10834),
        (4.0, 1.56189),
    ];
    check(&two, 0, RELEASE, &ignored);
    check(&two, 0, BUILD, &early);
    check(&two, 1, BUILD, &early);
    let said = |release| results(&two, 0, release).warnings.join("; ");
    assert!(
        said(RELEASE).contains("-2, which lies before the start and is ignored"),
        "{}",
        said(RELEASE)
    );
    assert!(
        said(BUILD).contains("the run starts there and has no row at 0"),
        "{}",
        said(BUILD)
    );
    // 0 is a point like any other then, and the events of the start are tested twice.
    let zero = [("Time=-2", "5", true), ("Time=0", "M+1", false)];
    check(
        &zero,
        0,
        BUILD,
        &[
            (1.0, 2.77364),
            (2.0, 2.05477),
            (3.0, 1.5222),
            (4.0, 1.12767),
        ],
    );
    let state = [("Time=-2", "5", true), ("M>1", "M+1", false)];
    check(
        &state,
        0,
        BUILD,
        &[
            (1.0, 2.84597),
            (2.0, 2.84915),
            (3.0, 2.8515),
            (4.0, 2.85325),
        ],
    );
    let later = [("Time>-1", "M+1", false)];
    check(
        &later,
        0,
        BUILD,
        &[
            (1.0, 5.48809),
            (2.0, 4.80647),
            (3.0, 4.30152),
            (4.0, 3.92744),
        ],
    );
}

#[test]
fn times_of_the_caller_are_all_that_is_stored() {
    let model = pbpk::read::bytes(model(&[], 0).as_bytes(), &Default::default()).unwrap();
    let instance = instance(model);
    for release in OspVersion::ALL {
        let options = RunOptions {
            times: Some(&[2.0, 3.0]),
            osp_version: release,
            ..RunOptions::default()
        };
        assert_eq!(run(&instance, &options).times, [2.0, 3.0]);
    }
}

#[test]
fn releases_have_names() {
    for release in OspVersion::ALL {
        assert_eq!(release.name().parse(), Ok(release));
    }
    let wrong = "12.4".parse::<OspVersion>().unwrap_err().to_string();
    assert!(wrong.contains("12.4.3 or 13-dev"), "{wrong}");
}
