//! Curves of a result as a picture.

use base64::Engine as _;
use pbpk::csv::{Curves, Series};
use pbpk::plot::{PlotError, PlotOptions, SERIES_MAX, svg};
use serde_json::{Value, json};
use toolkit::server::Args;

use super::results::{chosen, columns, kept};
use crate::fault::Fault;
use crate::service::Context;

pub(super) fn results(context: &Context<'_>, args: Args<'_>) -> Result<Value, Fault> {
    let keeper = context.service.keeper()?;
    let kept = kept(context, &keeper, args)?;
    let columns = columns(context, &keeper, &kept)?;
    let chosen = chosen(&columns, args);
    let series = chosen.iter().take(SERIES_MAX + 1).filter_map(|at| {
        let column = columns.columns.get(*at)?;
        Some(Series {
            name: column.parameter.clone(),
            unit: column.unit.clone(),
            values: columns.column(*at).to_vec(),
        })
    });
    let curves = Curves {
        series: series.collect(),
        times: columns.times.clone(),
    };
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
        "outputs": curves.series.iter().map(|series| &series.name).collect::<Vec<_>>(),
        "contentType": "image/svg+xml",
        "data": base64::engine::general_purpose::STANDARD.encode(&picture),
        "svg": picture,
    }))
}
