//! Plots of how well curves fit: places of the circles against the labels of the axes.

use pbpk::plot::{FittedOutput, PlotError, PlotOptions, goodness_of_fit};

/// Two numbers: a place, or a value and where it stands.
type Place = (f64, f64);

/// Lower ends of the two plots of a drawing without title.
const BOTTOMS: [f64; 2] = [256.0, 548.0];
/// Half of the last digit of a place, and of what a label's place is rounded to.
const ROUNDING: f64 = 0.2;

fn attribute(element: &str, name: &str) -> f64 {
    let rest = element.split(&format!(" {name}=\"")).nth(1).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

fn circles(text: &str) -> Vec<Place> {
    let all = text.split("<circle").skip(1);
    all.map(|c| (attribute(c, "cx"), attribute(c, "cy")))
        .collect()
}

/// Labels of this class with their places.
fn labels(text: &str, class: &str) -> Vec<(f64, Place)> {
    let beginning = format!("<text class=\"{class}\"");
    let all = text.split(&beginning).skip(1);
    let read = |element: &str| {
        let label = element.split('>').nth(1)?.split('<').next()?;
        let place = (attribute(element, "x"), attribute(element, "y"));
        Some((label.parse::<f64>().ok()?, place))
    };
    all.filter_map(read).collect()
}

/// The value at a place, on the straight line through two labels.
fn value(labels: &[(f64, f64)], at: f64, log: bool) -> f64 {
    let scaled = |v: f64| if log { v.log10() } else { v };
    let (first, last) = (labels[0], labels[labels.len() - 1]);
    let part = (at - first.1) / (last.1 - first.1);
    let v = scaled(first.0) + part * (scaled(last.0) - scaled(first.0));
    if log { 10_f64.powf(v) } else { v }
}

/// Labels up and along of plot `which`, with the places that they stand for.
fn axes(text: &str, which: usize) -> [Vec<Place>; 2] {
    let here = |y: f64| (y <= BOTTOMS[0] + 20.0) == (which == 0);
    let up = labels(text, "e").into_iter().filter(|l| here(l.1.1));
    let along = labels(text, "m").into_iter().filter(|l| here(l.1.1));
    // A label's text stands 4 below its line.
    [
        up.map(|(v, (_, y))| (v, y - 4.0)).collect(),
        along.map(|(v, (x, _))| (v, x)).collect(),
    ]
}

fn outputs() -> Vec<FittedOutput> {
    let output = |name: &str, observed: [f64; 4], fitted: [f64; 4]| FittedOutput {
        name: name.to_owned(),
        unit: "µmol/l".to_owned(),
        times: vec![10.0, 30.0, 60.0, 120.0],
        observed: observed.to_vec(),
        fitted: fitted.to_vec(),
    };
    vec![
        output("plasma", [8.0, 4.0, 2.5, 0.9], [7.0, 4.4, 2.0, 1.0]),
        output("liver", [3.0, 6.0, 5.0, 1.5], [2.5, 6.5, 5.0, 2.0]),
    ]
}

#[test]
fn circles_stand_at_their_values() {
    for log in [false, true] {
        let options = PlotOptions {
            log,
            ..PlotOptions::default()
        };
        let text = goodness_of_fit(&outputs(), &options).unwrap();
        let all = circles(&text);
        assert_eq!(all.len(), 16);
        let [observed, fitted] = axes(&text, 0);
        let [rest, times] = axes(&text, 1);
        let mut places = all.chunks(2);
        for output in outputs() {
            let rows = output
                .times
                .iter()
                .zip(&output.observed)
                .zip(&output.fitted);
            for ((time, o), f) in rows {
                let [above, below] = places.next().unwrap() else {
                    panic!("a pair")
                };
                let difference = if log { (o / f).ln() } else { o - f };
                for (labels, at, expected, log) in [
                    (&fitted, above.0, *f, log),
                    (&observed, above.1, *o, log),
                    (&times, below.0, *time, false),
                    (&rest, below.1, difference, false),
                ] {
                    let near = [at - ROUNDING, at + ROUNDING].map(|at| value(labels, at, log));
                    let (low, high) = (near[0].min(near[1]), near[0].max(near[1]));
                    assert!(
                        low <= expected && expected <= high,
                        "{expected} is not from {low} to {high}\n{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_fit_without_error_lies_on_the_lines() {
    let mut outputs = outputs();
    for output in &mut outputs {
        output.fitted.clone_from(&output.observed);
    }
    let text = goodness_of_fit(&outputs, &PlotOptions::default()).unwrap();
    // Both plots are 322 wide and 230 high.
    for pair in circles(&text).chunks(2) {
        let along = (pair[0].0 - 54.0) / 322.0;
        let up = (BOTTOMS[0] - pair[0].1) / 230.0;
        assert!((along - up).abs() < 1e-4, "{pair:?}");
        assert_eq!(pair[1].1, BOTTOMS[1] - 115.0);
    }
    let lines = text.matches("stroke-dasharray=\"4 3\"").count();
    assert_eq!(lines, 2);
}

#[test]
fn what_cannot_be_drawn_is_left_out_or_refused() {
    let mut some = outputs();
    some[0].observed[1] = f64::NAN;
    some[1].fitted[2] = -1.0;
    let log = PlotOptions {
        log: true,
        ..PlotOptions::default()
    };
    assert_eq!(circles(&goodness_of_fit(&some, &log).unwrap()).len(), 12);
    assert_eq!(goodness_of_fit(&[], &log), Err(PlotError::NoSeries));
    some.truncate(1);
    some[0].fitted.fill(0.0);
    let nothing = goodness_of_fit(&some, &log);
    assert_eq!(nothing, Err(PlotError::NoPoints { log: true }));
}
