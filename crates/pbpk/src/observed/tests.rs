use super::{ObservedData, ObservedOutput, read};
use crate::csv::CsvError;
use crate::watch::Watch;

fn read_text(text: &str) -> Result<ObservedData, CsvError> {
    read(&mut text.as_bytes(), &Watch::default())
}

fn values(text: &str) -> Vec<(f64, f64, bool)> {
    let data = read_text(text).unwrap();
    let points = data.series.iter().flat_map(|series| &series.points);
    points.map(|p| (p.time, p.value, p.is_censored)).collect()
}

#[test]
fn values_below_a_limit_are_censored() {
    let text = "Time [h],A|C [mg/l]\n0.5,10.2\n1,\n8,<0.2\n";
    assert_eq!(values(text), [(30.0, 10.2, false), (480.0, 0.2, true)]);
    let text = "Time,A|C [mg/l],LLOQ [mg/l]\n1,3,0.5\n2,0.3,0.5\n3,BLQ,0.5\n";
    assert_eq!(
        values(text),
        [(1.0, 3.0, false), (2.0, 0.5, true), (3.0, 0.5, true)]
    );
    let error = read_text("Time,A|C\n1,BLQ\n").unwrap_err().to_string();
    assert!(
        error.contains("line 2") && error.contains("write <LIMIT"),
        "{error}"
    );
}

#[test]
fn a_column_of_deviations_belongs_to_the_output_before_it() {
    let text = "Time,A|C [mg/l],SD [mg/l],B|C,B|C SD\n1,3,0.5,7,\n";
    let data = read_text(text).unwrap();
    let found: Vec<(String, Option<f64>)> = data
        .series
        .iter()
        .map(|series| (series.output.to_string(), series.points[0].deviation))
        .collect();
    let expected = [("A|C".to_owned(), Some(0.5)), ("B|C".to_owned(), None)];
    assert_eq!(found, expected);
}

#[test]
fn decimal_commas_are_read_between_semicolons() {
    let text = "Time [h];A|C [mg/l]\n0,5;10,2\n8;<0,2\n";
    assert_eq!(values(text), [(30.0, 10.2, false), (480.0, 0.2, true)]);
    assert_eq!(
        read_text(text).unwrap().warnings,
        ["numbers with a decimal comma were read"]
    );
}

#[test]
fn individuals_have_series_of_their_own() {
    let text = "IndividualId,Time,A|C\n1,0,3\n1,1,4\n2,0,5\n";
    let data = read_text(text).unwrap();
    let counts: Vec<usize> = data.series.iter().map(|s| s.points.len()).collect();
    assert_eq!(counts, [2, 1]);
    let error = read_text("Time,A|C\n1,x\n").unwrap_err().to_string();
    assert!(error.contains("line 2: \"x\" is not a number"), "{error}");
}

#[test]
fn observations_are_told_from_doses_and_missing_values() {
    let text = "ID,TIME [h],DV [mg/l],AMT,II,ADDL,SS,EVID,CMT,MDV,BLQ,LLOQ\n\
                1,0,.,10,24,2,0,1,1,1,0,0.5\n\
                1,1,28,.,.,.,.,0,2,0,0,0.5\n\
                1,2,0.1,.,.,.,.,0,2,0,1,0.5\n\
                1,3,7,.,.,.,.,0,2,1,0,0.5\n\
                1,4,3,.,.,.,.,0,3,0,0,0.5\n\
                2,1,5,.,.,.,.,0,2,0,0,0.5\n";
    let data = read(&mut text.as_bytes(), &Watch::default()).unwrap();
    let series: Vec<_> = data
        .series
        .iter()
        .map(|series| {
            let points = series.points.iter();
            let points: Vec<_> = points.map(|p| (p.time, p.value, p.is_censored)).collect();
            (series.output.clone(), series.unit.as_str(), points)
        })
        .collect();
    let of = |number: &str| ObservedOutput::Compartment(Some(number.to_owned()));
    assert_eq!(
        series,
        [
            (
                of("2"),
                "mg/l",
                vec![(60.0, 28.0, false), (120.0, 0.5, true)]
            ),
            (of("3"), "mg/l", vec![(240.0, 3.0, false)]),
            (of("2"), "mg/l", vec![(60.0, 5.0, false)]),
        ]
    );
    assert_eq!(data.warnings.len(), 1);
    assert!(
        data.warnings[0].contains("1 records of doses"),
        "{:?}",
        data.warnings
    );
}

#[test]
fn a_time_without_a_unit_is_said() {
    let text = "ID,TIME,DV,AMT,EVID\n1,0,.,10,1\n1,1,28,.,0\n";
    let data = read(&mut text.as_bytes(), &Watch::default()).unwrap();
    assert_eq!(data.series.len(), 1);
    assert_eq!(data.series[0].output, ObservedOutput::Compartment(None));
    assert!(data.warnings[0].contains("TIME [h]"), "{:?}", data.warnings);
}
