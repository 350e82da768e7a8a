//! Runs in pieces and runs without a table: checkpoints and sinks give the bits of a run as a whole.

use std::sync::Mutex;

use crate::common::{instance, load};
use pbpk::compile::Instance;
use pbpk::read;
use pbpk::run::{CheckpointError, RunCheckpoint, RunOptions, resume, run, run_until};

fn example() -> Instance {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/two_compartment.xml");
    instance(read::file(&file, &read::ReadOptions::default()).unwrap())
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Stops at each of these times, goes on from the bytes, and compares with the run as a whole.
fn same_in_pieces(individual: &Instance, stops: &[f64]) {
    let options = RunOptions::default();
    let whole = run(individual, &options).unwrap();
    for &stop in stops {
        let (before, checkpoint) = run_until(individual, &options, stop).unwrap();
        assert!(before.times.iter().all(|t| *t <= stop.max(0.0)));
        let kept = RunCheckpoint::from_bytes(checkpoint.as_bytes().to_vec());
        let after = resume(individual, &options, &kept).unwrap();
        assert_eq!(
            bits(&[before.times, after.times].concat()),
            bits(&whole.times)
        );
        assert_eq!(
            bits(&[before.values, after.values].concat()),
            bits(&whole.values),
            "stopped at {stop}"
        );
        assert_eq!(after.statistics, whole.statistics);
    }
}

#[test]
fn a_run_goes_on_from_a_checkpoint_with_the_same_bits() {
    // Before the first output, in the infusion, on the event that ends it, after it, at the end, beyond.
    same_in_pieces(&example(), &[-1.0, 0.0, 10.0, 30.0, 31.0, 100.0, 1e9]);
}

#[test]
fn events_that_replace_formulas_and_values_that_were_set_survive_a_checkpoint() {
    if crate::common::is_reference_absent() {
        return;
    }
    // Six events with assignments; a gallbladder that empties; tables in slope mode that restart the solver.
    for (file, stops) in [
        ("simmodel/POP_EHC_StartTime.xml", [120.0, 600.0]),
        ("simmodel/TableParametersViaDCI_Test01.xml", [122.0, 300.0]),
        ("pkml/pi_IR_model_doseResponse.pkml", [0.0, 5.0]),
    ] {
        same_in_pieces(&instance(load(file)), &stops);
    }
    let mut set = instance(load("pkml/pksim_simple_simulation.pkml"));
    let weight = pbpk::path::find_one(set.structure().model(), "Organism|Weight").unwrap();
    set.set(weight, 90.0).unwrap();
    same_in_pieces(&set, &[12.0, 700.0]);
}

#[test]
fn a_checkpoint_that_is_damaged_or_anothers_is_refused() {
    let individual = example();
    let options = RunOptions::default();
    let (_, checkpoint) = run_until(&individual, &options, 30.0).unwrap();
    let bytes = checkpoint.as_bytes();
    let refused = |individual: &Instance, options: &RunOptions<'_>, bytes: &[u8]| {
        resume(
            individual,
            options,
            &RunCheckpoint::from_bytes(bytes.to_vec()),
        )
        .unwrap_err()
    };
    for at in (0..bytes.len()).step_by(41) {
        let mut broken = bytes.to_vec();
        broken[at] ^= 1;
        assert_eq!(
            refused(&individual, &options, &broken),
            CheckpointError::Damaged
        );
        assert_eq!(
            refused(&individual, &options, &bytes[..at]),
            CheckpointError::Damaged
        );
    }
    let mut other = example();
    let weight = pbpk::path::find_one(other.structure().model(), "Organism|Weight").unwrap();
    other.set(weight, 71.0).unwrap();
    assert_eq!(refused(&other, &options, bytes), CheckpointError::OtherRun);
    let times = [0.0, 50.0];
    let grid = RunOptions {
        times: Some(&times),
        ..options
    };
    assert_eq!(
        refused(&individual, &grid, bytes),
        CheckpointError::OtherRun
    );
    let derived = RunOptions {
        sensitivity_to: &[weight],
        ..options
    };
    assert_eq!(
        refused(&individual, &derived, bytes),
        CheckpointError::Derivatives
    );
}

#[test]
fn a_sink_is_given_every_row_and_nothing_is_kept() {
    let individual = example();
    let whole = run(&individual, &RunOptions::default()).unwrap();
    let rows = Mutex::new((Vec::new(), Vec::new()));
    let sink = |time: f64, row: &[f64]| {
        let mut rows = rows.lock().unwrap();
        rows.0.push(time);
        rows.1.extend_from_slice(row);
    };
    let options = RunOptions {
        sink: Some(&sink),
        ..RunOptions::default()
    };
    let results = run(&individual, &options).unwrap();
    assert!(results.values.is_empty());
    let rows = rows.into_inner().unwrap();
    assert_eq!(
        (bits(&rows.0), bits(&rows.1)),
        (bits(&whole.times), bits(&whole.values))
    );
}
