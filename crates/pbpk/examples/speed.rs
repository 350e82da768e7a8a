//! Least time of a run, in milliseconds: `speed FILE RUNS [RTOL [ATOL]]` prints one number and the counts, or with
//! `--csv` as last argument the results.

use pbpk::csv::CurveSeries;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a model file")?;
    let runs: usize = arguments.next().map_or(Ok(100), |n| n.parse())?;
    let rel_tol = arguments.next().map(|n| n.parse()).transpose()?;
    let abs_tol = arguments.next().map(|n| n.parse()).transpose()?;
    let model = pbpk::read::file(
        std::path::Path::new(&file),
        &pbpk::read::ReadOptions::default(),
    )?;
    let outputs = model.outputs();
    let structure = pbpk::compile::Structure::new(Arc::new(model), outputs)?;
    let individual = pbpk::compile::Instance::new(&structure);
    let options = pbpk::run::RunOptions {
        rel_tol,
        abs_tol,
        ..Default::default()
    };
    let mut out = std::io::stdout();
    if arguments.next().is_some_and(|a| a == "--csv") {
        let results = pbpk::run::run(&individual, &options).map_err(|failure| failure.error)?;
        let series: Vec<CurveSeries> = results
            .paths
            .iter()
            .zip(results.units.iter())
            .enumerate()
            .map(|(i, (path, unit))| CurveSeries {
                name: path.clone(),
                unit: unit.clone(),
                values: results.column(i).collect(),
            })
            .collect();
        return Ok(pbpk::csv::write(&mut out, &results.times, &series)?);
    }
    let mut least = f64::INFINITY;
    let mut counts = None;
    for _ in 0..runs {
        let started = Instant::now();
        let results = pbpk::run::run(&individual, &options).map_err(|failure| failure.error)?;
        least = least.min(started.elapsed().as_secs_f64() * 1e3);
        counts = Some((results.times.len(), results.statistics));
    }
    writeln!(out, "{least:.4}")?;
    if let Some((times, s)) = counts {
        writeln!(
            out,
            "times {times} steps {} rhs {} jacobians {} factorisations {} iterations {} error-failures {} convergence-failures {}",
            s.steps,
            s.rhs,
            s.jacobians,
            s.factorisations,
            s.newton_iterations,
            s.error_test_failures,
            s.convergence_failures
        )?;
    }
    Ok(())
}
