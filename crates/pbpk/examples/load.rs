fn main() {
    for f in std::env::args().skip(1) {
        let t = std::time::Instant::now();
        match pbpk::read::file(std::path::Path::new(&f), &Default::default()) {
            Ok(m) => println!(
                "{f}: {} q={} states={} f={} ev={} times={} sel={} out={} warn={} {:?} {:?}",
                m.name,
                m.quantities.len(),
                m.states().len(),
                m.formulas.len(),
                m.events.len(),
                m.grid.sorted(Default::default()).len(),
                m.selections.len(),
                m.outputs().len(),
                m.warnings.len(),
                m.solver,
                t.elapsed()
            ),
            Err(e) => println!("{f}: ERROR {e}"),
        }
    }
}
