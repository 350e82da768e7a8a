//! The program under test: the one that Cargo built, or the one that `DURWARD_UNDER_TEST` names.

use std::sync::LazyLock;

/// Names another program to test; a test that describes a correction can so be run against an earlier build.
const VARIABLE: &str = "DURWARD_UNDER_TEST";

/// Returns the path of the program under test.
pub fn binary() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let built = env!("CARGO_BIN_EXE_durward");
        std::env::var(VARIABLE).unwrap_or_else(|_| built.to_owned())
    });
    &PATH
}
