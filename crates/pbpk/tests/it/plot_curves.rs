//! Plots: what is drawn, what is left out, what is refused.

use pbpk::csv::{CurveSeries, CurveTable};
use pbpk::plot::{PlotError, PlotOptions, SERIES_MAX, TerminalOptions, TimeUnit, svg, terminal};
use proptest::prelude::*;

fn curve(name: &str, unit: &str, f: impl Fn(f64) -> f64) -> CurveSeries {
    CurveSeries {
        name: name.to_owned(),
        unit: unit.to_owned(),
        values: (0..=96).map(|i| f(f64::from(i) * 15.0)).collect(),
    }
}

fn curves(series: Vec<CurveSeries>) -> CurveTable {
    CurveTable {
        times: (0..=96).map(|i| f64::from(i) * 15.0).collect(),
        series,
    }
}

fn decay() -> CurveTable {
    curves(vec![curve("Organism|Blood <&>", "µmol/l", |t| {
        6.0 * (-t / 300.0).exp()
    })])
}

/// A tiny well-formedness check: tags balance and nothing is left unescaped.
fn assert_xml(text: &str) {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag is closed");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn svg_is_one_well_formed_document() {
    let text = svg(
        &decay(),
        &PlotOptions {
            title: "a < b & \"c\"".to_owned(),
            ..PlotOptions::default()
        },
    )
    .unwrap();
    assert_xml(&text);
    for part in [
        "viewBox=\"0 0 390 ",
        "prefers-color-scheme:dark",
        "a &lt; b &amp; &quot;c&quot;",
        "Organism|Blood &lt;&amp;&gt;",
        "Time [h]",
        "[µmol/l]",
        "<title>",
    ] {
        assert!(text.contains(part), "{part} is missing");
    }
    // Nothing is fetched: the only address is the namespace.
    assert_eq!(text.matches("http").count(), 1);
    assert!(!text.contains("<script") && !text.contains("href"));
}

#[test]
fn svg_curve_goes_through_its_points() {
    let text = svg(&decay(), &PlotOptions::default()).unwrap();
    let path = text
        .split("<path class=\"c0\" d=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let points: Vec<(f64, f64)> = path[1..]
        .split('L')
        .map(|p| {
            let (x, y) = p.split_once(' ').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        })
        .collect();
    assert_eq!(points.len(), 97);
    // Top of the frame is 26 and it is 230 high; the axis ends at 6.
    assert_eq!(points[0], (54.0, 26.0));
    let (x, y) = points[40];
    assert!((x - (54.0 + 322.0 * 40.0 / 96.0)).abs() < 0.01);
    assert!((y - (256.0 - 230.0 * (-2.0_f64).exp())).abs() < 0.01);
}

#[test]
fn what_cannot_be_shown_leaves_a_gap() {
    let mut data = decay();
    data.series[0].values[10] = f64::NAN;
    data.series[0].values[50] = f64::INFINITY;
    let text = svg(&data, &PlotOptions::default()).unwrap();
    let path = text
        .split("<path class=\"c0\" d=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(path.matches('M').count(), 3);
    let log = PlotOptions {
        log: true,
        ..PlotOptions::default()
    };
    data.series[0].values[20] = 0.0;
    let text = svg(&data, &log).unwrap();
    let path = text
        .split("<path class=\"c0\" d=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(path.matches('M').count(), 4);
}

/// The class and the dashes of each swatch of the legend.
fn swatches(text: &str) -> Vec<(&str, &str)> {
    let marks = text.split("<path class=\"").skip(1);
    let marks = marks.filter(|mark| mark.contains("d=\"M10 ") && mark.contains("h22\""));
    marks
        .map(|mark| {
            let class = mark.split('"').next().unwrap();
            let dashes = mark.split("stroke-dasharray=\"").nth(1);
            (
                class,
                dashes.map_or("", |rest| rest.split('"').next().unwrap()),
            )
        })
        .collect()
}

/// Blue and indigo, and orange and red, are near: such curves have other dashes too.
#[test]
fn no_two_swatches_look_alike() {
    let all = (0..SERIES_MAX)
        .map(|i| curve(&i.to_string(), "", |t| t))
        .collect();
    let text = svg(&curves(all), &PlotOptions::default()).unwrap();
    let found = swatches(&text);
    assert_eq!(found.len(), SERIES_MAX);
    for (i, one) in found.iter().enumerate() {
        assert!(!found[..i].contains(one), "{found:?}");
    }
    for (near, other) in [(0, 7), (1, 6)] {
        assert_ne!(found[near].1, found[other].1, "{found:?}");
    }
}

#[test]
fn what_makes_no_plot_is_refused() {
    let options = PlotOptions::default();
    let log = PlotOptions {
        log: true,
        ..PlotOptions::default()
    };
    assert_eq!(
        svg(&CurveTable::default(), &options),
        Err(PlotError::NoSeries)
    );
    let many = curves(
        (0..=SERIES_MAX)
            .map(|i| curve(&i.to_string(), "", |t| t))
            .collect(),
    );
    assert_eq!(
        svg(&many, &options),
        Err(PlotError::TooManySeries {
            found: SERIES_MAX + 1
        })
    );
    let nan = curves(vec![curve("a", "", |_| f64::NAN)]);
    assert_eq!(
        terminal(&nan, &options, &TerminalOptions::default()),
        Err(PlotError::NoPoints { log: false })
    );
    let zero = curves(vec![curve("a", "", |_| 0.0)]);
    assert_eq!(svg(&zero, &log), Err(PlotError::NoPoints { log: true }));
    assert!(svg(&zero, &options).is_ok());
}

#[test]
fn thinning_keeps_a_spike() {
    let times: Vec<f64> = (0..100_000).map(f64::from).collect();
    let mut values = vec![1.0; times.len()];
    values[54_321] = 9.0;
    let data = CurveTable {
        times,
        series: vec![CurveSeries {
            name: "a".to_owned(),
            unit: String::new(),
            values,
        }],
    };
    let text = svg(&data, &PlotOptions::default()).unwrap();
    assert!(text.len() < 60_000, "{} bytes", text.len());
    // The axis ends at 10: 9 is at 26 + 23.
    assert!(text.contains(" 49.00"));
}

#[test]
fn mixed_units_move_to_the_legend() {
    let data = curves(vec![
        curve("A", "µmol/l", |t| t),
        curve("B", "kg", |t| 2.0 * t),
    ]);
    let text = svg(&data, &PlotOptions::default()).unwrap();
    assert!(text.contains(">A [µmol/l]<") && text.contains(">B [kg]<"));
    let drawn = terminal(&data, &PlotOptions::default(), &TerminalOptions::default()).unwrap();
    assert!(
        drawn.contains("* A [µmol/l]") && drawn.contains("+ B [kg]"),
        "{drawn}"
    );
}

#[test]
fn terminal_plot_of_a_line_in_ascii() {
    let data = CurveTable {
        times: vec![0.0, 60.0],
        series: vec![CurveSeries {
            name: "Blut|µ".to_owned(),
            unit: "µmol".to_owned(),
            values: vec![0.0, 4.0],
        }],
    };
    let options = TerminalOptions {
        columns: 32,
        rows: 5,
        ascii: true,
        colour: false,
    };
    let drawn = terminal(
        &data,
        &PlotOptions {
            title: "Line".to_owned(),
            ..PlotOptions::default()
        },
        &options,
    )
    .unwrap();
    let expected = "\
Line
[umol]
5 +
  |                      *******
  |              ********
  |     *********
0 +*****
  +-----------------------------
   0            30            60
                      Time [min]
* Blut|u
";
    assert_eq!(drawn, expected, "\n{drawn}");
}

#[test]
fn braille_only_where_curves_can_be_told_apart() {
    let one = decay();
    let two = curves(vec![curve("A", "", |t| t), curve("B", "", |t| 2.0 * t)]);
    let is_braille = |text: &str| text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
    let plain = TerminalOptions::default();
    let coloured = TerminalOptions {
        colour: true,
        ..plain
    };
    let options = PlotOptions {
        time_unit: Some(TimeUnit::Minutes),
        ..PlotOptions::default()
    };
    assert!(is_braille(&terminal(&one, &options, &plain).unwrap()));
    assert!(!is_braille(&terminal(&two, &options, &plain).unwrap()));
    let drawn = terminal(&two, &options, &coloured).unwrap();
    assert!(is_braille(&drawn) && drawn.contains("\u{1b}[34m") && drawn.contains("\u{1b}[33m"));
}

proptest! {
    #[test]
    fn any_numbers_are_drawn_or_refused(
        values in prop::collection::vec(any::<f64>(), 1..40),
        log in any::<bool>(),
        ascii in any::<bool>(),
        columns in 0_usize..500,
        start in -1e6_f64..1e6,
    ) {
        let times = (0..values.len()).map(|i| start + i as f64).collect();
        let data = CurveTable { times, series: vec![CurveSeries { name: "a".to_owned(), unit: String::new(), values }] };
        let options = PlotOptions { log, ..PlotOptions::default() };
        if let Ok(text) = svg(&data, &options) {
            assert_xml(&text);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"));
        }
        let screen = TerminalOptions { columns, rows: 0, ascii, colour: false };
        if let Ok(text) = terminal(&data, &options, &screen) {
            let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
            prop_assert!(widest <= columns.clamp(32, 400), "{widest} of {columns}\n{text}");
            prop_assert!(!ascii || text.is_ascii());
        }
    }
}

#[test]
fn a_long_title_keeps_its_beginning_and_a_long_path_its_end() {
    let mut data = decay();
    data.series[0].name = format!("Organism|{}|Concentration", "Compartment".repeat(9));
    let options = PlotOptions {
        title: "Plasma after the second dose, as measured and as simulated".to_owned(),
        ..PlotOptions::default()
    };
    let text = svg(&data, &options).unwrap();
    assert!(text.contains("class=\"t\">Plasma after the second dose, as me…<"));
    assert!(text.contains("|Concentration</text>"));
}
