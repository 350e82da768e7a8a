//! Least time of reading and compiling a model, in milliseconds: `loading FILE TIMES`.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a model file")?;
    let times: usize = arguments.next().map_or(Ok(20), |n| n.parse())?;
    let mut least = [f64::INFINITY; 3];
    for _ in 0..times {
        let started = Instant::now();
        let model = pbpk::read::file(std::path::Path::new(&file), &Default::default())?;
        let read = started.elapsed();
        let outputs = model.outputs();
        let structure = pbpk::compile::Structure::new(Arc::new(model), outputs)?;
        let compiled = started.elapsed();
        let individual = pbpk::compile::Instance::new(&structure);
        let folded = started.elapsed();
        assert!(individual.values().len() == structure.model().quantities.len());
        for (least, now) in least
            .iter_mut()
            .zip([read, compiled - read, folded - compiled])
        {
            *least = least.min(now.as_secs_f64() * 1e3);
        }
    }
    let [read, compile, fold] = least;
    writeln!(
        std::io::stdout(),
        "read {read:.2} compile {compile:.2} fold {fold:.2} ms"
    )?;
    Ok(())
}
