//! Figures of a population's results: percentiles over individuals, and pharmacokinetic parameters of each.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use crate::csv;
use crate::pk::{Curve, Dosing, analyse_all};
use crate::population::{Population, PopulationPlan};
use crate::watch::Watch;

/// Most numbers of results that are held at once.
const NUMBERS_MAX: usize = 4 << 20;
/// Bytes of a line that make a unit of work.
const BYTES_OF_A_UNIT: usize = 128;
/// Numbers in order that make a unit of work.
const SORTED_OF_A_UNIT: usize = 1024;

/// The curves of one individual: a row of numbers for each time.
pub(super) struct FigureCurves {
    pub(super) id: i64,
    pub(super) times: Vec<f64>,
    pub(super) values: Vec<f64>,
}

/// A table of results that this program wrote.
pub(super) struct FigureSource<'a> {
    pub(super) file: &'a Path,
    /// Asked now and then whether to go on.
    pub(super) watch: &'a Watch<'a>,
}

/// Calls `each` with every individual of a table of results.
pub(super) fn individuals(
    results: &FigureSource<'_>,
    mut each: impl FnMut(&FigureCurves) -> io::Result<()>,
) -> io::Result<()> {
    let mut current: Option<FigureCurves> = None;
    let mut lines = BufReader::new(File::open(results.file)?).lines();
    lines.next().transpose()?;
    for line in lines {
        let line = line?;
        let units = 1 + line.len() / BYTES_OF_A_UNIT;
        results.watch.work(units)?;
        let mut fields = line.split(',');
        let broken = || io::Error::other("the table of results is damaged");
        let id = fields
            .next()
            .and_then(|f| f.parse::<i64>().ok())
            .ok_or_else(broken)?;
        if current.as_ref().is_none_or(|c| c.id != id) {
            if let Some(done) = current.take() {
                each(&done)?;
            }
            current = Some(FigureCurves {
                id,
                times: Vec::new(),
                values: Vec::new(),
            });
        }
        let Some(curves) = &mut current else { continue };
        let time = fields.next().and_then(csv::number).ok_or_else(broken)?;
        curves.times.push(time);
        for field in fields {
            curves.values.push(csv::number(field).ok_or_else(broken)?);
        }
    }
    current.map_or(Ok(()), |last| each(&last))
}

/// Returns the value below which this part of the sorted numbers lies, with straight lines between them.
///
/// Source: R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", Am. Stat. 50 (1996), definition 7.
pub(super) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * sorted.len().saturating_sub(1) as f64;
    let below = place.floor();
    // A cast from float to integer saturates; the place lies within the list.
    let at = |i: f64| sorted.get(i as usize).copied();
    match (at(below), at(below + 1.0)) {
        (Some(a), Some(b)) => a + (place - below) * (b - a),
        (Some(a), None) => a,
        _ => f64::NAN,
    }
}

/// Writes percentiles over all individuals, for each output and time; numbers that are none are left out and the rest
/// counted.
pub(super) fn percentiles(
    results: &FigureSource<'_>,
    file: &Path,
    plan: &PopulationPlan,
    people: usize,
    percent: &[f64],
) -> io::Result<()> {
    let outputs: Vec<String> = plan.outputs().map(|(p, u)| csv::titled(p, u)).collect();
    let width = outputs.len();
    let mut times = Vec::new();
    individuals(results, |c| {
        if times.is_empty() {
            times.clone_from(&c.times);
        }
        Ok(())
    })?;
    let mut out = BufWriter::new(File::create(file)?);
    let mut line = String::from("Output,Time [min],Individuals");
    for p in percent {
        line.push_str(&format!(",P{p}"));
    }
    line.push('\n');
    let cells = times.len() * width;
    let block = (NUMBERS_MAX / people.max(1)).max(1);
    // By output, then by time: cell c is output c / times, time c % times.
    for from in (0..cells).step_by(block) {
        let to = (from + block).min(cells);
        let mut found: Vec<Vec<f64>> = vec![Vec::new(); to - from];
        individuals(results, |c| {
            for (cell, numbers) in (from..to).zip(&mut found) {
                let place = (cell % times.len()) * width + cell / times.len();
                numbers.extend(c.values.get(place).filter(|v| !v.is_nan()));
            }
            Ok(())
        })?;
        for (cell, numbers) in (from..to).zip(&mut found) {
            let units = 1 + numbers.len() / SORTED_OF_A_UNIT;
            results.watch.work(units)?;
            numbers.sort_by(f64::total_cmp);
            let output = outputs.get(cell / times.len()).map_or("", String::as_str);
            csv::push_field(&mut line, output);
            line.push(',');
            csv::push_number(
                &mut line,
                times.get(cell % times.len()).copied().unwrap_or(f64::NAN),
            );
            line.push_str(&format!(",{}", numbers.len()));
            for p in percent {
                line.push(',');
                csv::push_number(&mut line, quantile(numbers, p / 100.0));
            }
            line.push('\n');
        }
        out.write_all(line.as_bytes())?;
        line.clear();
    }
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Writes the pharmacokinetic parameters of every individual, as the suite writes them, each with the doses and the
/// body weight of its own.
pub(super) fn kinetics(
    results: &FigureSource<'_>,
    file: &Path,
    plan: &PopulationPlan,
    population: &Population,
) -> io::Result<()> {
    let outputs: Vec<String> = plan.outputs().map(|(p, _)| p.to_owned()).collect();
    let mut out = BufWriter::new(File::create(file)?);
    out.write_all(b"IndividualId,QuantityPath,Parameter,Value,Unit\n")?;
    let mut row = 0;
    individuals(results, |c| {
        // Both tables are in the same order; who failed has no curves.
        while row < population.len() && population.id(row) != c.id {
            row += 1;
        }
        let individual = plan.individual(population, row).map_err(io::Error::other)?;
        let quantities = &individual.structure().model().quantities;
        let constants = quantities.iter().zip(individual.values());
        let dosing = Dosing::from_constants(constants.map(|(q, v)| (q.path.as_str(), *v)));
        let dosing = dosing.map_err(|e| io::Error::other(e.to_string()))?;
        let mut text = String::new();
        for (o, output) in outputs.iter().enumerate() {
            let values = c.values.iter().skip(o).step_by(outputs.len().max(1));
            let values: Vec<f64> = values.copied().collect();
            let curve =
                Curve::new(&c.times, &values).map_err(|e| io::Error::other(e.to_string()))?;
            for v in analyse_all(curve, &dosing) {
                text.push_str(&format!("{},", c.id));
                csv::push_field(&mut text, output);
                text.push_str(&format!(",{},", v.parameter.name));
                csv::push_number(&mut text, v.display());
                text.push(',');
                csv::push_field(&mut text, v.parameter.display_unit);
                text.push('\n');
            }
        }
        out.write_all(text.as_bytes())
    })?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// Values that R 4 gives: `quantile(c(1, 2, 4, 8), c(0.05, 0.5, 0.95))`.
    #[test]
    fn quantiles_lie_on_straight_lines() {
        let x = [1.0, 2.0, 4.0, 8.0];
        for (part, expected) in [
            (0.0, 1.0),
            (0.05, 1.15),
            (0.5, 3.0),
            (0.95, 7.4),
            (1.0, 8.0),
        ] {
            assert!((quantile(&x, part) - expected).abs() < 1e-12);
        }
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(quantile(&[3.0], 0.9), 3.0);
    }
}
