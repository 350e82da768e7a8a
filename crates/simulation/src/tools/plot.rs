//! Curves of a result as a picture, with measured values over them, if there are any.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pbpk::csv::{CurveSeries, CurveTable};
use pbpk::plot::{PlotError, PlotOptions, SERIES_MAX, svg};
use serde_json::{Value, json};
use toolkit::server::{Args, Content};

use super::observed::{ObservedOutput, read};
use super::png::png;
use super::results::{choose_columns, columns, find_result};
use crate::fault::Fault;
use crate::service::CallContext;

pub(super) fn results(context: &CallContext<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = find_result(context, &keeper, args)?;
    let columns = columns(context, &keeper, &kept)?;
    let observed = read(args, "observed")?;
    let chosen = choose_columns(&columns, args);
    let series = chosen.iter().take(SERIES_MAX + 1).filter_map(|at| {
        let column = columns.columns.get(*at)?;
        Some(CurveSeries {
            name: column.parameter.clone(),
            unit: column.unit.clone(),
            values: columns.column(*at).to_vec(),
        })
    });
    let curves = CurveTable {
        series: series.collect(),
        times: columns.times.clone(),
    };
    let outputs: Vec<String> = curves.series.iter().map(|one| one.name.clone()).collect();
    let curves = overlaid(curves, &observed)?;
    let title = args.text("title").unwrap_or_default();
    let options = PlotOptions {
        title: title.to_owned(),
        log: args.is_set("logarithmic"),
        time_unit: None,
    };
    let picture = svg(&curves, &options).map_err(|error| {
        let fault = Fault::input("outputs", error.to_string());
        match error {
            PlotError::TooManySeries { .. } => fault.hint(format!(
                "{} outputs were chosen; choose some by pattern",
                chosen.len()
            )),
            PlotError::NoSeries | PlotError::NoPoints { .. } => fault,
        }
    })?;
    Ok(json!({
        "resultsId": kept.results_id,
        "outputs": outputs,
        "contentType": "image/svg+xml",
        "data": STANDARD.encode(&picture),
        "svg": picture,
    }))
}

/// Returns the content that a model reads of a plot: the picture, and its description.
///
/// # Errors
/// [`Fault`] if it cannot be drawn.
pub(super) fn plot_content(told: &Value) -> Result<Vec<Content>, Fault> {
    let text = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
    let outputs = told.get("outputs").and_then(Value::as_array);
    let outputs: Vec<&str> = outputs
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    Ok(vec![
        Content::Image {
            base64: STANDARD.encode(png(text("svg"))?),
            media_type: "image/png",
        },
        Content::Text(format!(
            "{} of {}: {}",
            if outputs.len() == 1 {
                "A curve"
            } else {
                "Curves"
            },
            text("resultsId"),
            outputs.join(", ")
        )),
    ])
}

/// Part of the time axis by which values that were measured at the same time are moved apart, so that each is drawn.
const APART: f64 = 1e-6;

/// Returns the curves, and measured values as curves of lone points.
fn overlaid(curves: CurveTable, observed: &[ObservedOutput]) -> Result<CurveTable, Fault> {
    if observed.is_empty() {
        return Ok(curves);
    }
    let measured: Vec<(&ObservedOutput, Vec<(f64, f64)>)> = observed
        .iter()
        .map(|one| (one, apart(&one.points)))
        .collect();
    let mut times = curves.times.clone();
    for (_, points) in &measured {
        times.extend(points.iter().map(|(time, _)| *time));
        // Between two points there is a time without a value, so that no line joins them.
        let pairs = points.iter().zip(points.iter().skip(1));
        times.extend(pairs.map(|(one, other)| f64::midpoint(one.0, other.0)));
    }
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut series: Vec<CurveSeries> = curves
        .series
        .iter()
        .map(|one| CurveSeries {
            values: times
                .iter()
                .map(|time| between(&curves.times, one, *time))
                .collect(),
            ..one.clone()
        })
        .collect();
    for (one, points) in &measured {
        let of = curves
            .series
            .iter()
            .find(|series| series.name == one.output);
        let of = of.ok_or_else(|| {
            let wrong = format!("'{}' is not one of the curves of the plot", one.output);
            Fault::missing("observed.output", wrong)
        })?;
        let mut values = vec![f64::NAN; times.len()];
        for (time, value) in points {
            let at = times.binary_search_by(|known| known.total_cmp(time));
            if let Some(place) = at.ok().and_then(|at| values.get_mut(at)) {
                *place = one.in_base(*value, &of.unit)?;
            }
        }
        series.push(CurveSeries {
            name: format!("{} (observed)", one.output),
            unit: of.unit.clone(),
            values,
        });
    }
    Ok(CurveTable { times, series })
}

/// Returns the points by time, no two at the same.
fn apart(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let span = points.last().map_or(1.0, |(time, _)| time.max(1.0));
    let mut latest = f64::NEG_INFINITY;
    let moved = points.iter().map(|(time, value)| {
        latest = time.max(latest + span * APART);
        (latest, *value)
    });
    moved.collect()
}

/// Returns the value of a curve at any time: on the straight line between its own points, which is drawn there anyway.
fn between(times: &[f64], series: &CurveSeries, time: f64) -> f64 {
    let after = times.partition_point(|known| *known < time);
    let at = |row: usize| Some((*times.get(row)?, series.at(row)?));
    match (after.checked_sub(1).and_then(at), at(after)) {
        (_, Some((known, value))) if known == time => value,
        (Some((from, low)), Some((to, high))) => low + (high - low) * (time - from) / (to - from),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> CurveTable {
        CurveTable {
            times: vec![0.0, 60.0, 120.0],
            series: vec![CurveSeries {
                name: "A".to_owned(),
                unit: "µmol/l".to_owned(),
                values: vec![0.0, 2.0, 1.0],
            }],
        }
    }

    fn observed(output: &str, points: &[(f64, f64)]) -> ObservedOutput {
        ObservedOutput {
            output: output.to_owned(),
            unit: Some("mmol/l".to_owned()),
            points: points.to_vec(),
            limit: None,
            weight: 1.0,
        }
    }

    #[test]
    fn measured_values_are_lone_points_over_an_unchanged_curve() {
        let points = [(30.0, 0.001), (30.0, 0.002), (40.0, 0.003), (200.0, 0.004)];
        let both = overlaid(curves(), &[observed("A", &points)]).unwrap();
        let (curve, dots) = (&both.series[0], &both.series[1]);
        assert_eq!(dots.name, "A (observed)");
        let drawn: Vec<f64> = dots
            .values
            .iter()
            .copied()
            .filter(|v| !v.is_nan())
            .collect();
        assert_eq!(
            drawn,
            [1.0, 2.0, 3.0, 4.0],
            "replicates are kept, in the curve's unit"
        );
        let joined = dots
            .values
            .windows(2)
            .filter(|two| !two[0].is_nan() && !two[1].is_nan());
        assert_eq!(joined.count(), 0);
        for (time, value) in both.times.iter().zip(&curve.values) {
            let expect = match *time {
                t if t <= 60.0 => t / 30.0,
                t if t <= 120.0 => 3.0 - t / 60.0,
                _ => f64::NAN,
            };
            assert!(
                (value - expect).abs() < 1e-12 || (value.is_nan() && expect.is_nan()),
                "{time}"
            );
        }
    }

    #[test]
    fn values_of_no_curve_or_of_another_unit_are_refused() {
        let fault = overlaid(curves(), &[observed("B", &[(1.0, 1.0)])]).unwrap_err();
        assert_eq!(fault.details[0].field.as_deref(), Some("observed.output"));
        let kilograms = ObservedOutput {
            unit: Some("kg".to_owned()),
            ..observed("A", &[(1.0, 1.0)])
        };
        assert!(overlaid(curves(), &[kilograms]).is_err());
        assert_eq!(overlaid(curves(), &[]).unwrap(), curves());
    }
}
