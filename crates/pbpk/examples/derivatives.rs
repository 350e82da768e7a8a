//! Least time, in milliseconds, of a run with the derivatives of all outputs by the parameters of a population:
//! `derivatives FILE POPULATION RUNS [RTOL [ATOL]]`.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("name {what}"));
    let (file, population) = (next("a model file")?, next("a population file")?);
    let runs: usize = next("a number of runs")?.parse()?;
    let rel_tol = next("").ok().map(|n| n.parse()).transpose()?;
    let abs_tol = next("").ok().map(|n| n.parse()).transpose()?;
    let model = pbpk::read::file(std::path::Path::new(&file), &Default::default())?;
    let population = pbpk::population::Population::read(&mut std::io::BufReader::new(
        std::fs::File::open(population)?,
    ))?;
    let columns = population.columns.iter();
    let parameters: Vec<usize> = columns.filter_map(|c| model.position(&c.path)).collect();
    let outputs = model.outputs();
    let structure = pbpk::compile::Structure::new(Arc::new(model), outputs)?;
    let individual = pbpk::compile::Instance::new(&structure);
    let options = pbpk::run::RunOptions {
        rel_tol,
        abs_tol,
        sensitivity_to: &parameters,
        ..Default::default()
    };
    let mut least = f64::INFINITY;
    let mut shape = (0, 0, 0);
    for _ in 0..runs {
        let started = Instant::now();
        let results = pbpk::run::run(&individual, &options).map_err(|failure| failure.error)?;
        least = least.min(started.elapsed().as_secs_f64() * 1e3);
        shape = (results.times.len(), results.paths.len(), parameters.len());
    }
    let (times, outputs, parameters) = shape;
    writeln!(
        std::io::stdout(),
        "{least:.1} ms: {times} times, {outputs} outputs, {parameters} parameters"
    )?;
    Ok(())
}
