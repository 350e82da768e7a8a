//! Writing and reading tables.

use pbpk::csv::{self, CsvError, CurveSeries};
use proptest::prelude::*;

fn text(times: &[f64], series: &[CurveSeries]) -> String {
    let mut out = Vec::new();
    csv::write(&mut out, times, series).unwrap();
    String::from_utf8(out).unwrap()
}

fn series(name: &str, values: &[f64]) -> CurveSeries {
    CurveSeries {
        name: name.to_owned(),
        unit: "µmol/l".to_owned(),
        values: values.to_vec(),
    }
}

#[test]
fn a_table_as_written() {
    let columns = [
        series("Organism|A", &[0.1, f64::NAN]),
        series("a,b \"c\"", &[f64::INFINITY, f64::NEG_INFINITY]),
        series("constant", &[1e-300]),
        series("large", &[1e300, -0.0]),
    ];
    let expected = "Time [min],Organism|A [µmol/l],\"a,b \"\"c\"\" [µmol/l]\",constant [µmol/l],large [µmol/l]\n0,0.1,inf,1e-300,1e300\n0.30000000000000004,nan,-inf,1e-300,-0\n";
    assert_eq!(text(&[0.0, 0.1 + 0.2], &columns), expected);
}

/// Who takes the units off the names takes them off all of them, or off none: a name without one would be taken for a
/// path among names.
#[test]
fn every_name_ends_with_a_unit() {
    let mut columns = [series("share", &[0.5]), series("amount", &[1.0])];
    columns[0].unit.clear();
    let written = text(&[0.0], &columns);
    assert_eq!(
        written.lines().next(),
        Some("Time [min],share [],amount [µmol/l]")
    );
    let table = csv::read(&mut written.as_bytes()).unwrap();
    assert_eq!(csv::split_unit(&table.header[1]), ("share", ""));
    let read = csv::results(&mut written.as_bytes()).unwrap();
    assert_eq!(read[0].curves.series[0].name, "share");
    assert_eq!(read[0].curves.series[0].unit, "");
}

proptest! {
    #[test]
    fn numbers_read_back_to_the_same_bits(bits in prop::collection::vec(any::<u64>(), 1..50), name in "[ -~µ]{1,20}") {
        let values: Vec<f64> = bits.iter().map(|b| f64::from_bits(*b)).collect();
        let times: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
        let written = text(&times, &[series(&name, &values)]);
        let table = csv::read(&mut written.as_bytes()).unwrap();
        prop_assert_eq!(csv::split_unit(&table.header[1]), (name.as_str(), "µmol/l"));
        for (row, value) in table.rows.iter().zip(&values) {
            let read = csv::number(&row[1]).unwrap();
            prop_assert!(read.to_bits() == value.to_bits() || (read.is_nan() && value.is_nan()));
        }
    }

    #[test]
    fn arbitrary_text_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = csv::results(&mut bytes.as_slice());
    }
}

#[test]
fn files_of_the_suite_are_read() {
    if crate::common::is_reference_absent() {
        return;
    }
    let folder = crate::common::data("csv");
    // name, individuals, rows each, curves
    for (name, individuals, rows, curves) in [
        ("ospr_SimResults.csv", 1, 491, 1),
        ("ospr_SimResults_pop.csv", 50, 491, 2),
        ("ospr_Stevens_2012_placebo_indiv_results.csv", 1, 251, 5),
        ("core_SingleDosing_CL.csv", 1, 65, 1),
    ] {
        let file = std::fs::File::open(folder.join(name)).unwrap();
        let read = csv::results(&mut std::io::BufReader::new(file)).unwrap();
        let found = (
            read.len(),
            read[0].curves.times.len(),
            read[0].curves.series.len(),
        );
        assert_eq!(found, (individuals, rows, curves), "{name}");
    }
    for name in ["ospr_res.csv", "ospr_res_10.csv"] {
        let file = std::fs::File::open(folder.join(name)).unwrap();
        let read = csv::results(&mut std::io::BufReader::new(file)).unwrap();
        assert!(
            read.iter()
                .all(|i| i.curves.times.len() == i.curves.series[0].values.len()),
            "{name}"
        );
        assert_eq!(
            read[0].curves.times[1], 10.0,
            "time without a unit is minutes"
        );
    }
    for name in ["ospr_pop.csv", "ospr_pop_5_spared_id.csv"] {
        let file = std::fs::File::open(folder.join(name)).unwrap();
        let table = csv::read(&mut std::io::BufReader::new(file)).unwrap();
        assert_eq!(table.comments.len(), 2, "{name}");
        assert_eq!(table.header[0], "IndividualId", "{name}");
        assert_eq!(
            csv::split_unit(&table.header[4]),
            ("Organism|Weight", "kg"),
            "{name}"
        );
    }
}

#[test]
fn faults_are_named_with_their_line() {
    let cases = [
        ("Time,a\n0,1\n1\n", 3, "expected 2 fields"),
        ("Time,a\n0,x\n", 2, "not a number"),
        ("Time [furlong],a\n0,1\n", 1, "unknown time unit"),
        ("a,b\n0,1\n", 1, "no column named Time"),
        ("Time,a\n0,\"1\n", 2, "not closed"),
    ];
    for (text, line, what) in cases {
        match csv::results(&mut text.as_bytes()) {
            Err(CsvError::Line {
                line: found,
                what: message,
            }) => {
                assert_eq!(found, line, "{text:?}: {message}");
                assert!(message.contains(what), "{text:?}: {message}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
    assert!(matches!(
        csv::results(&mut "".as_bytes()),
        Err(CsvError::Empty)
    ));
    assert!(matches!(
        csv::results(&mut "Time,a\n".as_bytes()),
        Err(CsvError::Empty)
    ));
    let long = format!("Time,a\n0,{}\n", "1".repeat(csv::LINE_BYTES_MAX));
    assert!(matches!(
        csv::results(&mut long.as_bytes()),
        Err(CsvError::Line { line: 2, .. })
    ));
}

#[test]
fn hours_become_minutes() {
    let read = csv::results(&mut "Time [h],a [mg]\n0,1\n2,3\n".as_bytes()).unwrap();
    assert_eq!(read[0].curves.times, [0.0, 120.0]);
    assert_eq!(
        (
            read[0].curves.series[0].name.as_str(),
            read[0].curves.series[0].unit.as_str()
        ),
        ("a", "mg")
    );
}
