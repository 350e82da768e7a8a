//! `durward policy init`

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use gate::policy::starter::STARTER_POLICY;

use super::{EXIT_FINE, Failure};
use admin::atomic::{self, Existing};

pub const HELP: &str = "\
Examples:
  durward policy init                  writes policy.json here
  durward policy init my-rules.json
  durward policy show my-rules.json    its rules, in the order in which they decide

The file is the starter policy that applies where no policy is given: tools that are known to only read pass, every
other tool waits for a person. Edit it, then run `durward policy check`.";

/// Arguments of `durward policy init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to write it
    #[arg(value_name = "FILE", default_value = "policy.json")]
    file: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

pub fn run(args: &InitArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let existing = if args.force {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let file = args.file.display();
    atomic::write(&args.file, STARTER_POLICY.as_bytes(), existing).map_err(|error| {
        Failure::Configuration(if error.kind() == io::ErrorKind::AlreadyExists {
            format!("{file} exists already; choose another name, or replace it with --force")
        } else {
            format!("cannot write {file}: {error}")
        })
    })?;
    writeln!(out, "{file}: the starter policy")?;
    writeln!(out, "next: durward run --policy {file} -- CMD")?;
    Ok(EXIT_FINE)
}
