//! `sim export`: write the model in another format.

use std::io::Write;

use super::args::ExportArgs;
use super::failure::Failure;
use super::model;

pub(super) fn run(
    args: &ExportArgs,
    _out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    model::open(&args.model, err)?;
    Err(Failure::failed(format!(
        "export to {:?} is not available in this build",
        args.format
    )))
}
