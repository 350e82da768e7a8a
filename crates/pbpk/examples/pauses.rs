//! Longest time between two looks at the cancel flag, in milliseconds: `pauses FILE [MINUTES]`.
//!
//! Reading, compiling, a run as far as MINUTES, and the same run with the derivatives by up to 20 parameters.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pbpk::compile::{Instance, Structure};
use pbpk::model::{Kind, Source};
use pbpk::run::{RunOptions, run};
use pbpk::watch::{Interrupt, Watch};

/// When somebody asked last, and the longest pause so far.
struct Pauses(Mutex<(Instant, f64, usize)>);

impl Pauses {
    fn look(&self) -> Option<Interrupt> {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        at.1 = at.1.max(at.0.elapsed().as_secs_f64() * 1e3);
        at.2 += 1;
        at.0 = Instant::now();
        None
    }

    /// Does a piece of work and says what its longest pause was.
    fn during<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, Box<dyn std::error::Error>>,
    ) -> Result<T, Box<dyn std::error::Error>> {
        let begun = Instant::now();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (begun, 0.0, 0);
        let done = work();
        self.look();
        let (_, longest, looks) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = begun.elapsed().as_secs_f64() * 1e3;
        writeln!(
            std::io::stdout(),
            "{name}: longest pause {longest:.2} ms, {looks} looks in {whole:.1} ms"
        )?;
        done
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a model file")?;
    let until: Option<f64> = arguments.next().map(|t| t.parse()).transpose()?;
    let pauses = Pauses(Mutex::new((Instant::now(), 0.0, 0)));
    let ask = || pauses.look();
    let path = std::path::Path::new(&file);
    let model = pauses.during("read", || {
        let watch = Watch::new(Some(&ask));
        Ok(pbpk::read::file_watched(path, &Default::default(), &watch)?)
    })?;
    let structure = pauses.during("compile", || {
        let (outputs, watch) = (model.outputs(), Watch::new(Some(&ask)));
        Ok(Structure::watched(Arc::new(model), outputs, &watch)?)
    })?;
    let individual = pauses.during("fold", || Ok(Instance::new(&structure)))?;
    let times = until.map(|t| [t]);
    let options = RunOptions {
        interrupt: Some(&ask),
        times: times.as_ref().map(|t| t.as_slice()),
        ..RunOptions::default()
    };
    pauses.during("run", || Ok(run(&individual, &options)?))?;
    let quantities = structure.model().quantities.iter().enumerate();
    let parameters: Vec<usize> = quantities
        .filter(|(_, q)| {
            q.kind == Kind::Parameter && q.rhs.is_empty() && matches!(q.source, Source::Constant(_))
        })
        .map(|(at, _)| at)
        .take(20)
        .collect();
    let options = RunOptions {
        sensitivity_to: &parameters,
        ..options
    };
    pauses.during("run with derivatives", || Ok(run(&individual, &options)?))?;
    Ok(())
}
