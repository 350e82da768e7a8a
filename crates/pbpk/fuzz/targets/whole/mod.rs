//! Bytes through the whole library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pbpk::compile::{Instance, Structure};
use pbpk::run::RunOptions;
use pbpk::solve::Interrupt;

/// Most steps of one run, and most output times: a fuzzer looks for faults, not for long runs.
const STEPS_MAX: u32 = 300;
const TIMES_MAX: usize = 200;

pub fn read_and_run(bytes: &[u8]) {
    let Ok(model) = pbpk::read::bytes(bytes, &Default::default()) else {
        return;
    };
    let mut times = model.grid.sorted(Default::default());
    times.truncate(TIMES_MAX);
    let outputs = model.outputs();
    let Ok(structure) = Structure::new(Arc::new(model), outputs) else {
        return;
    };
    let instance = Instance::new(&structure);
    let steps = AtomicU32::new(0);
    let ask = || (steps.fetch_add(1, Relaxed) >= STEPS_MAX).then_some(Interrupt::Cancelled);
    let options = RunOptions {
        times: Some(&times),
        max_steps: Some(50),
        interrupt: Some(&ask),
        ..RunOptions::default()
    };
    let _ = pbpk::run::run(&instance, &options);
}
