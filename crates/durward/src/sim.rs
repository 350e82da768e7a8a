//! `durward sim`: the simulation engine on the command line, ended in order by Ctrl-C.

use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit codes of a process that a signal ended begin above this.
const BY_SIGNAL: u8 = 128;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;
/// The signal that asked for the end; 0 for none.
static ASKED: AtomicU8 = AtomicU8::new(0);

/// Carries out a command. The first signal ends it in order: finished parts stay, and it says so.
pub fn run(args: pbpk::cli::Args, out: &mut dyn Write, err: &mut (dyn Write + Send)) -> u8 {
    // Where nothing listens, a signal ends the process as it always did.
    let _ = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listen);
    let code = pbpk::cli::run(args, &mut BufWriter::new(out), err);
    match ASKED.load(Ordering::Relaxed) {
        asked if asked > 0 && code != pbpk::cli::OK => BY_SIGNAL + asked,
        _ => code,
    }
}

/// Listens to SIGINT and SIGTERM: the first asks the command to end, the second ends the process.
fn listen() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let Ok(runtime) = runtime else {
        return;
    };
    runtime.block_on(async {
        let both = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        );
        let (Ok(mut interrupt), Ok(mut terminate)) = both else {
            return;
        };
        ASKED.store(
            next(&mut interrupt, &mut terminate).await,
            Ordering::Relaxed,
        );
        pbpk::cli::stop();
        end(next(&mut interrupt, &mut terminate).await);
    });
}

/// The number of the next signal.
async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> u8 {
    tokio::select! {
        _ = interrupt.recv() => SIGINT,
        _ = terminate.recv() => SIGTERM,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "who asks twice does not wait for the end in order"
)]
fn end(signal: u8) {
    std::process::exit(i32::from(BY_SIGNAL + signal));
}
