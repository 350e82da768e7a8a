//! `durward budgets`: the budgets that replicas share.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stores::redis::{ReleaseOutcome, SharedBudgets};

use crate::config::Settings;
use crate::failure::{EXIT_CONFIGURATION, Failure};
use crate::plural::count;
use crate::providers::shared_store::OperatorStore;

pub const HELP: &str = "\
Examples:
  durward budgets show
  durward budgets release gate-2          return the unused quota of a replica that is gone
  durward budgets thaw                    grant again without the replicas that have not reported

Works on the store that `state:` of durward.yaml names. The use of each replica is as of its latest report, a tenth of
a second ago while it runs.

A replica that was killed keeps its unused quota until it is back, its window ends, or you release it: use that it had
not reported is then not counted. After the store has lost its state nothing is granted until all replicas that were
known have reported: `thaw` goes on without the others, whose use is then not counted.

Exit codes: 0 done; 1 the store cannot be reached; 16 there is no such store, or it could not be done.";

const SHOW_HELP: &str = "\
Examples:
  durward budgets show
  durward budgets show --json | jq '.accounts[].account'";

const RELEASE_HELP: &str = "\
Examples:
  durward budgets release gate-2";

const THAW_HELP: &str = "\
Examples:
  durward budgets thaw";

/// Arguments of `durward budgets`.
#[derive(Debug, Args)]
pub struct BudgetsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print replicas and accounts: use and quota
    #[command(after_help = SHOW_HELP)]
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Return the unused quota of a replica that is gone
    #[command(after_help = RELEASE_HELP)]
    Release {
        /// Its name: `state.replica`
        #[arg(value_name = "REPLICA")]
        replica: String,
    },
    /// Grant again without the replicas that have not reported since the store lost its state
    #[command(after_help = THAW_HELP)]
    Thaw,
}

/// Does it; returns the exit code.
pub fn run(
    args: &BudgetsArgs,
    settings: &Settings,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    match execute(args, settings, out) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(err, "error: cannot write: {error}");
            EXIT_CONFIGURATION
        }
    }
}

fn execute(
    args: &BudgetsArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> io::Result<Result<(), Failure>> {
    let Some(own) = &settings.state else {
        return Ok(Err(Failure::configuration(
            "no store is configured\n  hint: write state: { url: redis://HOST:6379, replica: NAME }".to_owned(),
        )));
    };
    let store = match OperatorStore::open(own) {
        Ok(store) => store,
        Err(failure) => return Ok(Err(failure)),
    };
    match &args.command {
        Command::Show { json } => match store.shared_budgets() {
            Ok(budgets) if *json => writeln!(out, "{:#}", object(&budgets))?,
            Ok(budgets) => print(&budgets, out)?,
            Err(failure) => return Ok(Err(failure)),
        },
        Command::Release { replica } => match store.release(replica.clone()) {
            Ok(ReleaseOutcome::Released(accounts)) => {
                writeln!(
                    out,
                    "released the quota of {replica} on {}",
                    count(accounts, "account")
                )?;
            }
            Ok(ReleaseOutcome::IsAlive) => {
                return Ok(Err(Failure::configuration(format!(
                    "the replica \"{replica}\" is alive, and returns what it does not use"
                ))));
            }
            Err(failure) => return Ok(Err(failure)),
        },
        Command::Thaw => match store.thaw() {
            Ok(true) => writeln!(out, "thawed")?,
            Ok(false) => writeln!(out, "nothing is frozen")?,
            Err(failure) => return Ok(Err(failure)),
        },
    }
    Ok(Ok(()))
}

fn print(budgets: &SharedBudgets, out: &mut dyn Write) -> io::Result<()> {
    if budgets.is_frozen {
        writeln!(
            out,
            "frozen: nothing is granted until every replica has reported"
        )?;
    }
    writeln!(out, "replicas")?;
    for replica in &budgets.replicas {
        let note = match replica.has_declared {
            true => "",
            false => "  has not reported",
        };
        writeln!(
            out,
            "  {:<24} seen {} ms ago{note}",
            replica.name.escape_debug(),
            replica.seen_ms
        )?;
    }
    writeln!(out, "accounts")?;
    for account in &budgets.accounts {
        let used: u64 = account.claims.iter().map(|claim| claim.settled).sum();
        writeln!(
            out,
            "  {}  window {}  used {used}",
            account.account.escape_debug(),
            account.window
        )?;
        for claim in &account.claims {
            writeln!(
                out,
                "    {:<22} used {}  holds {} more",
                claim.replica.escape_debug(),
                claim.settled,
                claim.claim.saturating_sub(claim.settled)
            )?;
        }
    }
    if budgets.has_more {
        writeln!(out, "  there are more accounts")?;
    }
    Ok(())
}

fn object(budgets: &SharedBudgets) -> Value {
    let replicas = budgets.replicas.iter().map(|replica| {
        json!({ "name": replica.name, "seen_ms": replica.seen_ms, "reported": replica.has_declared })
    });
    let accounts = budgets.accounts.iter().map(|account| {
        let claims = account.claims.iter().map(|claim| {
            json!({ "replica": claim.replica, "used": claim.settled, "granted": claim.claim })
        });
        json!({ "account": account.account, "window": account.window, "replicas": claims.collect::<Vec<_>>() })
    });
    json!({
        "frozen": budgets.is_frozen,
        "replicas": replicas.collect::<Vec<_>>(),
        "accounts": accounts.collect::<Vec<_>>(),
        "more": budgets.has_more,
    })
}
