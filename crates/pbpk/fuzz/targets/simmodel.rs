//! Any bytes are a model or a clear error; a model compiles, and runs or says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;

mod whole;

fuzz_target!(|bytes: &[u8]| whole::read_and_run(bytes));
