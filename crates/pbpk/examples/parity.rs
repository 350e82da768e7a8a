//! Writes `docs/parity.md`: the measured deviation of every case from the reference numbers.

#[expect(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the tests use the rest, and a failure here ends the example as it ends a test"
)]
#[path = "../tests/it/common/mod.rs"]
mod common;

use std::io::Write;

use common::cases::{Case, PKML, RESTATED, XML};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "# Parity with the genuine solver\n\n\
         Written by `cargo run --release -p pbpk --example parity > docs/parity.md`; a test checks that every case is here and within its bound.\n\n\
         Deviation of a column: largest difference over time, relative to the column's peak; columns whose peak is below 100 absolute\n\
         tolerances are compared with that band. A case's deviation is that of its worst column. *E* is the reference's own error,\n\
         measured against the genuine solver at tight tolerances where that was done, else the rounding to expect. *Tight* is our run at rtol 1e-10 and the file's atol times 1e-5: it\n\
         may differ from the reference by E, because E is what the reference lacks. *Allowed* is the rule's bound, and at most three times\n\
         the deviation recorded in the tests.\n"
    )?;
    for (title, cases) in [
        ("pkml files", &PKML[..]),
        ("The same models restated as SimModel xml", &RESTATED[..]),
        ("SimModel xml files", &XML[..]),
    ] {
        writeln!(
            out,
            "## {title}\n\n| file | columns | E | as the file says | allowed | tight | allowed |\n|---|--:|--:|--:|--:|--:|--:|"
        )?;
        for case in cases {
            row(&mut out, case)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, case: &Case) -> std::io::Result<()> {
    let (loose, tight, rel_tol) = common::measure(case);
    let file = case.file.rsplit('/').next().unwrap_or(case.file);
    writeln!(
        out,
        "| {file} | {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |",
        loose.columns,
        case.error,
        loose.worst,
        case.loose(rel_tol),
        tight.worst,
        case.tight()
    )
}
