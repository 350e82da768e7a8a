//! Writes a model in another format to standard output: `export sbml|sbml-numbers|simmodel FILE`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let format = arguments.next().ok_or("name a format: sbml or simmodel")?;
    let file = arguments.next().ok_or("name a model file")?;
    let model = pbpk::read::file(
        std::path::Path::new(&file),
        &pbpk::read::ReadOptions::default(),
    )?;
    let mut out = std::io::BufWriter::new(std::io::stdout());
    match format.as_str() {
        "sbml" => pbpk::export::sbml(&model, None, &mut out)?,
        "sbml-numbers" => {
            let outputs = model.outputs();
            let structure =
                pbpk::compile::Structure::new(std::sync::Arc::new(model.clone()), outputs)?;
            let individual = pbpk::compile::Instance::new(&structure);
            pbpk::export::sbml(&model, Some(individual.values()), &mut out)?;
        }
        "simmodel" => pbpk::export::simmodel(&model, &mut out)?,
        _ => return Err("formats are sbml, sbml-numbers and simmodel".into()),
    }
    Ok(out.flush()?)
}
