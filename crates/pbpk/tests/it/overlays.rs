//! Observed data on curves, and bands of percentiles.

use pbpk::csv::{CurveSeries, CurveTable};
use pbpk::plot::{MeasuredPoints, PlotOptions, PlotOverlay, ValueBand, svg_with};

type Place = (f64, f64);

fn curves() -> CurveTable {
    let values = |f: fn(f64) -> f64| (0..=24).map(|i| f(f64::from(i))).collect();
    let series = |name: &str, values: Vec<f64>| CurveSeries {
        name: name.to_owned(),
        unit: "µmol/l".to_owned(),
        values,
    };
    CurveTable {
        times: (0..=24).map(|i| f64::from(i) * 60.0).collect(),
        series: vec![
            series("low", values(|t| 2.0 * (-t / 8.0).exp())),
            series("high", values(|t| 5.0 * (-t / 10.0).exp())),
        ],
    }
}

/// Places of a path's corners.
fn corners(path: &str) -> Vec<Place> {
    let pieces = path.trim_matches(|c| c == 'M' || c == 'Z').split('L');
    let place = |p: &str| {
        let (x, y) = p.split_once(' ').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    pieces.map(place).collect()
}

/// The path of the first element with this class.
fn path<'a>(text: &'a str, class: &str) -> &'a str {
    let start = format!("<path class=\"{class}\" d=\"");
    text.split(&start)
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
}

fn circles(text: &str) -> Vec<Place> {
    let number = |text: &str, name: &str| -> f64 {
        let rest = text.split(&format!("{name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let all = text.split("<circle ").skip(1);
    all.map(|c| (number(c, "cx"), number(c, "cy"))).collect()
}

fn drawn(overlay: &PlotOverlay, log: bool) -> String {
    let options = PlotOptions {
        log,
        ..PlotOptions::default()
    };
    svg_with(&curves(), overlay, &options).unwrap()
}

#[test]
fn points_on_a_curve_lie_on_its_line() {
    let data = curves();
    let points = MeasuredPoints {
        name: "observed: high".to_owned(),
        curve: 1,
        times: vec![120.0, 600.0, 1440.0],
        values: [2, 10, 24].map(|i| data.series[1].values[i]).to_vec(),
        ..MeasuredPoints::default()
    };
    for log in [false, true] {
        let overlay = PlotOverlay {
            points: vec![points.clone()],
            bands: Vec::new(),
        };
        let text = drawn(&overlay, log);
        let line = corners(path(&text, "c1"));
        assert_eq!(circles(&text), [line[2], line[10], line[24]]);
        assert!(text.contains("<g class=\"o c1\"><title>observed: high"));
        assert!(text.contains(">observed: high</text>"), "{text}");
    }
}

#[test]
fn the_axes_reach_all_points_and_what_cannot_be_shown_is_left_out() {
    let points = MeasuredPoints {
        name: "far".to_owned(),
        curve: 0,
        times: vec![0.0, 2880.0, 60.0, 120.0],
        values: vec![1.0, 50.0, f64::NAN, f64::INFINITY],
        ..MeasuredPoints::default()
    };
    let overlay = PlotOverlay {
        points: vec![points],
        bands: Vec::new(),
    };
    let found = circles(&drawn(&overlay, false));
    assert_eq!(found.len(), 2);
    // The later one is at the right end, and at the top of an axis that ends at 50.
    assert_eq!(found[1], (376.0, 26.0));
    assert_eq!(found[0], (54.0, 26.0 + 230.0 * (1.0 - 1.0 / 50.0)));
}

#[test]
fn a_band_lies_between_its_lines() {
    let data = curves();
    let band = ValueBand {
        name: "5 to 95 %".to_owned(),
        curve: 0,
        low: data.series[0].values.clone(),
        high: data.series[1].values.clone(),
    };
    for log in [false, true] {
        let overlay = PlotOverlay {
            points: Vec::new(),
            bands: vec![band.clone()],
        };
        let text = drawn(&overlay, log);
        let mut around = corners(path(&text, "c0"));
        around.extend(corners(path(&text, "c1")).iter().rev());
        assert_eq!(corners(path(&text, "h h0")), around);
        // The legend says what the area is, and the page is long enough for it.
        let entry = text.split(">5 to 95 %</text>").next().unwrap();
        let y = entry.rsplit("y=\"").next().unwrap();
        let y: f64 = y.trim_end_matches('"').parse().unwrap();
        let height = text.split("viewBox=\"0 0 390 ").nth(1).unwrap();
        let height: f64 = height.split('"').next().unwrap().parse().unwrap();
        assert!(y > 300.0 && y < height, "{y} {height}");
    }
    // A gap parts it, and on a logarithmic axis what is not positive ends at the bottom.
    let mut gap = band;
    gap.low[3] = 0.0;
    gap.high[12] = f64::NAN;
    let overlay = PlotOverlay {
        points: Vec::new(),
        bands: vec![gap],
    };
    let text = drawn(&overlay, true);
    let band = path(&text, "h h0");
    assert_eq!(
        (band.matches('M').count(), band.matches('Z').count()),
        (2, 2)
    );
    let first = band.split('Z').next().unwrap();
    assert_eq!(corners(first)[3].1, 256.0);
}

#[test]
fn a_title_that_is_a_path_keeps_its_end() {
    let options = PlotOptions {
        title: "Example|Organism|PeripheralVenousBlood|Drug|Plasma".to_owned(),
        ..PlotOptions::default()
    };
    let text = svg_with(&curves(), &PlotOverlay::default(), &options).unwrap();
    assert!(text.contains("|Drug|Plasma</text>"), "{text}");
}

#[cfg(feature = "cli")]
mod command {
    use super::{circles, corners, path};
    use crate::cli::{data, example, folder, observed, sim};

    #[test]
    fn observed_data_are_drawn_with_their_curves() {
        let root = folder("overlay");
        let svg = root.join("curves.svg").display().to_string();
        let done = sim(&["plot", &example(), "--observed", &observed(), "--svg", &svg]);
        assert_eq!(done.code, 0, "{}", done.err);
        let text = std::fs::read_to_string(&svg).unwrap();
        let table = std::fs::read_to_string(observed()).unwrap();
        let cells: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(circles(&text).len(), cells.len());
        // A unit that is a thousand times smaller changes numbers on the axis and nothing else.
        let small = root.join("small.svg").display().to_string();
        let words = [
            "plot",
            &example(),
            "--observed",
            &observed(),
            "--svg",
            &small,
        ];
        let done = sim(&[&words[..], &["--unit", "nmol/l"]].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let other = std::fs::read_to_string(&small).unwrap();
        assert_eq!(circles(&other), circles(&text));
        assert!(other.contains("[nmol/l]") && text.contains("[µmol/l]"));
        let missing = sim(&["plot", &example(), "--observed", "no.csv", "--svg", &svg]);
        assert_eq!(missing.code, 1);
        // A file that could not be written leaves nothing, and one that is there stays as it is.
        let folder = root.join("taken");
        std::fs::create_dir(&folder).unwrap();
        let taken = folder.display().to_string();
        let done = sim(&["plot", &example(), "--svg", &taken]);
        assert!(done.err.contains("cannot write"), "{}", done.err);
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 3);
        assert!(
            missing.err.contains("cannot read no.csv"),
            "{}",
            missing.err
        );
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn percentiles_are_drawn_as_bands() {
        if crate::common::is_reference_absent() {
            return;
        }
        let root = folder("bands");
        let out = root.join("out").display().to_string();
        let model = data("pkml/pksim_simple_simulation.pkml")
            .display()
            .to_string();
        let people = data("csv/ospr_pop.csv").display().to_string();
        let done = sim(&[
            "population",
            &model,
            &people,
            "--output",
            "Organism|VenousBlood|Plasma|C1",
            "--out",
            &out,
            "--percentiles",
            "95,50,5",
            "--bands",
        ]);
        assert_eq!(done.code, 0, "{}", done.err);
        let text = std::fs::read_to_string(root.join("out/percentiles-1.svg")).unwrap();
        let table = std::fs::read_to_string(root.join("out/percentiles.csv")).unwrap();
        let line = corners(path(&text, "c0"));
        let band = corners(path(&text, "h h0"));
        assert_eq!(band.len(), 2 * line.len());
        // The page is 230 high for an axis that ends at a round number: the same for all columns of the table.
        let rows: Vec<Vec<f64>> = table
            .lines()
            .skip(1)
            .map(|l| l.split(',').skip(3).map(|n| n.parse().unwrap()).collect())
            .collect();
        let top = 46.0;
        let height = |y: f64| (top + 230.0 - y) / 230.0;
        let at = rows.iter().position(|r| r[0] > 1.0).unwrap();
        let end = rows[at][0] / height(band[2 * line.len() - 1 - at].1);
        for (i, row) in rows.iter().enumerate() {
            let places = [band[2 * line.len() - 1 - i].1, line[i].1, band[i].1];
            for (value, y) in row.iter().zip(places) {
                assert!((value / end - height(y)).abs() < 2e-4, "{i}: {value} {y}");
            }
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
