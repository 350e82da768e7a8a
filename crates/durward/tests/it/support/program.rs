//! The program under test: the one that Cargo built, or the one that `DURWARD_UNDER_TEST` names.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// Names another program to test; a test that describes a correction can so be run against an earlier build.
const VARIABLE: &str = "DURWARD_UNDER_TEST";

/// Names the program to measure to `durward-lab`.
const GUARD: &str = "DURWARD_PROGRAM";

/// Returns the path of the program under test.
pub fn binary() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let built = env!("CARGO_BIN_EXE_durward");
        std::env::var(VARIABLE).unwrap_or_else(|_| built.to_owned())
    });
    &PATH
}

/// Returns the path of `durward-lab` of the current build, whichever program is under test. `cargo test --workspace` builds it, and
/// so does `-p lab` beside `-p durward`.
pub fn lab_binary() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_BIN_EXE_durward")).with_file_name("durward-lab");
        let hint = "build it first: cargo build --package lab";
        assert!(path.is_file(), "{} is missing; {hint}", path.display());
        path.to_str().unwrap().to_owned()
    });
    &PATH
}

/// Returns a command of the lab that measures the program under test.
pub fn lab_command() -> Command {
    let mut command = Command::new(lab_binary());
    command.env(GUARD, binary());
    command
}
