//! SIGINT and SIGTERM for commands that end in order when they are asked to.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit codes of a process that a signal ended begin above this.
pub const BY_SIGNAL: u8 = 128;
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

/// Listens on a thread of its own: `first` is told the number of the first signal, the second ends the process. Where
/// nothing can listen, a signal ends the process as it always did.
pub fn listen(first: impl FnOnce(u8) + Send + 'static) {
    let _ = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || wait(first));
}

fn wait(first: impl FnOnce(u8)) {
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
        first(next(&mut interrupt, &mut terminate).await);
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
    reason = "a signal asked for the end, and nothing that has to be written is under way"
)]
pub fn end(number: u8) -> ! {
    std::process::exit(i32::from(BY_SIGNAL + number));
}
