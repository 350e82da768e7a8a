//! `durward sim`: the simulation engine on the command line, ended in order by Ctrl-C.

use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::interrupt::{self, BY_SIGNAL};

/// The signal that asked for the end; 0 for none.
static ASKED: AtomicU8 = AtomicU8::new(0);

/// Carries out a command. The first signal ends it in order: finished parts stay, and it says so.
pub fn run(args: pbpk::cli::Args, out: &mut dyn Write, err: &mut (dyn Write + Send)) -> u8 {
    interrupt::listen(|signal| {
        ASKED.store(signal, Ordering::Relaxed);
        pbpk::cli::stop();
    });
    let code = pbpk::cli::run(args, &mut BufWriter::new(out), err);
    match ASKED.load(Ordering::Relaxed) {
        asked if asked > 0 && code != pbpk::cli::OK => BY_SIGNAL + asked,
        _ => code,
    }
}
