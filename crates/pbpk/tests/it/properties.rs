//! Properties: folding equals recomputation, set and reset is exact, code equals formulas, parsers never panic.

use std::sync::{Arc, OnceLock};

use crate::common;
use pbpk::compile::{Instance, Structure};
use pbpk::formula::FormulaBody;
use pbpk::model::{Model, QuantityKind};
use pbpk::run::RunOptions;
use proptest::prelude::*;

fn shared(file: &'static str, cell: &'static OnceLock<Arc<Structure>>) -> &'static Arc<Structure> {
    cell.get_or_init(|| {
        let model = common::load(file);
        let outputs = model.outputs();
        Structure::new(Arc::new(model), outputs).unwrap()
    })
}

fn whole_body() -> &'static Arc<Structure> {
    static CELL: OnceLock<Arc<Structure>> = OnceLock::new();
    shared("pkml/pksim_simple_simulation.pkml", &CELL)
}

fn insulin() -> &'static Arc<Structure> {
    static CELL: OnceLock<Arc<Structure>> = OnceLock::new();
    shared("pkml/pi_IR_model_doseResponse.pkml", &CELL)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn settable(model: &Model) -> Vec<usize> {
    (0..model.quantities.len())
        .filter(|q| model.quantities[*q].kind != QuantityKind::Observer)
        .collect()
}

/// Text that is nearly a formula.
fn formula_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "Time", "1", "2.5", "1e-3", "1E5", ",5", "+", "-", "*", "/", "^", "(", ")", ";",
        "<", ">=", "=", "<>", "!=", "!", "?", ":", " AND ", " or ", " NOT ", "MIN(", "max(",
        "exp(", "LN(", "POW(", "PI", "E", "nan", "Inf", "&", "|", " ", "\u{b5}", "a b", "\u{ac}",
        "==", "**", ".",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn aliases() -> Vec<String> {
    ["a", "b", "Time"].map(str::to_owned).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn folding_what_a_change_touches_equals_folding_everything(picks in prop::collection::vec((any::<prop::sample::Index>(), 0.5..2.0_f64, any::<bool>()), 1..8)) {
        if common::is_reference_absent() {
            return Ok(());
        }
        let mut instance = Instance::new(whole_body());
        let choices = settable(instance.structure().model());
        for (pick, factor, reset) in picks {
            let q = *pick.get(&choices);
            let value = instance.value(q).unwrap();
            let wanted = if value.is_finite() && value != 0.0 { value * factor } else { factor };
            // A value outside the file's bounds is refused and changes nothing.
            let before = bits(instance.values());
            if instance.set(q, wanted).is_err() {
                prop_assert_eq!(&before, &bits(instance.values()));
            }
            if reset {
                instance.reset(q);
            }
            let mut again = instance.clone();
            again.fold_all();
            prop_assert_eq!(bits(instance.values()), bits(again.values()));
        }
    }

    #[test]
    fn set_and_reset_is_bit_identical(picks in prop::collection::vec((any::<prop::sample::Index>(), 0.1..10.0_f64), 1..12)) {
        if common::is_reference_absent() {
            return Ok(());
        }
        let fresh = Instance::new(whole_body());
        let mut instance = fresh.clone();
        let choices = settable(instance.structure().model());
        let mut changed = Vec::new();
        for (pick, value) in picks {
            let q = *pick.get(&choices);
            if instance.set(q, value).is_ok() {
                changed.push(q);
            }
        }
        for q in changed {
            instance.reset(q);
        }
        prop_assert_eq!(bits(fresh.values()), bits(instance.values()));
    }

    #[test]
    fn runs_are_bit_identical_and_unmoved_by_other_runs(pick in any::<prop::sample::Index>(), factor in 0.5..2.0_f64) {
        if common::is_reference_absent() {
            return Ok(());
        }
        let fresh = Instance::new(insulin());
        let first = common::run(&fresh, &RunOptions::default());
        let mut changed = fresh.clone();
        let choices = settable(fresh.structure().model());
        let q = *pick.get(&choices);
        let value = fresh.value(q).unwrap();
        if changed.set(q, value * factor).is_ok() {
            // The other run may end in an error; it must leave nothing behind.
            let _ = pbpk::run::run(&changed, &RunOptions::default());
            changed.reset(q);
        }
        let again = common::run(&changed, &RunOptions::default());
        prop_assert_eq!(bits(&first.values), bits(&again.values));
    }

    #[test]
    fn formulas_parse_or_say_why(text in formula_text()) {
        let names = aliases();
        if let Ok(body) = FormulaBody::parse(&text, &names) {
            let value = body.evaluate(&mut Vec::new(), |i| [1.5, -2.0, 3.0][i]);
            // What is printed means the same.
            let printed = body.to_string();
            let again = FormulaBody::parse(&printed, &names).map_err(|e| TestCaseError::fail(format!("{printed}: {e}")))?;
            let other = again.evaluate(&mut Vec::new(), |i| [1.5, -2.0, 3.0][i]);
            prop_assert!(value.to_bits() == other.to_bits() || (value.is_nan() && other.is_nan()), "{} became {}: {} {}", text, printed, value, other);
        }
    }

    #[test]
    fn any_text_is_a_formula_or_not(text in ".{0,60}") {
        let _ = FormulaBody::parse(&text, &aliases());
    }

    #[test]
    fn damaged_files_are_refused_or_read(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        if common::is_reference_absent() {
            return Ok(());
        }
        for file in ["simmodel/TestSimultanEvents.xml", "pkml/core_EventsAppKeywordReplacement.pkml"] {
            let mut bytes = std::fs::read(common::data(file)).unwrap();
            let i = at.index(bytes.len());
            bytes[i] = byte;
            if cut {
                bytes.truncate(i);
            }
            if let Ok(model) = pbpk::read::bytes(&bytes, &Default::default()) {
                let outputs = model.outputs();
                if let Ok(structure) = Structure::new(Arc::new(model), outputs) {
                    let _ = pbpk::run::run(&Instance::new(&structure), &RunOptions { max_steps: Some(200), ..RunOptions::default() });
                }
            }
        }
    }
}

/// The compiled rates against the formulas evaluated one by one, at the start and elsewhere; and the symbolic Jacobian
/// against differences of the rates.
#[test]
fn code_equals_formulas_and_its_jacobian_their_slopes() {
    if crate::common::is_reference_absent() {
        return;
    }
    for file in [
        "pkml/pksim_simple_simulation.pkml",
        "pkml/pksim_S1_concentrBased.pkml",
        "pkml/pi_IR_model_doseResponse.pkml",
        "simmodel/pH_Solubility_Table.xml",
    ] {
        let instance = common::instance(common::load(file));
        let (mut engine, y0) = pbpk::run::engine(&instance).unwrap();
        let n = y0.len();
        let pattern = engine.pattern().clone();
        let y: Vec<f64> = y0
            .iter()
            .enumerate()
            .map(|(i, y)| y + 0.01 + 0.001 * (i % 7) as f64)
            .collect();
        let t = 3.25;
        let mut jacobian = vec![0.0; pattern.nnz()];
        engine.jacobian(t, &y, &mut jacobian);
        let mut rates = |y: &[f64]| {
            let mut dy = vec![0.0; n];
            engine.rhs(t, y, &mut dy);
            dy
        };
        let at = rates(&y);
        for column in 0..n {
            let h = 1e-6 * y[column].abs().max(1e-3);
            let shifted = |sign: f64| {
                let mut z = y.clone();
                z[column] += sign * h;
                z
            };
            let (up, down) = (rates(&shifted(1.0)), rates(&shifted(-1.0)));
            for row in 0..n {
                let slope = (up[row] - down[row]) / (2.0 * h);
                let entries = pattern.col_ptr[column]..pattern.col_ptr[column + 1];
                let entry = entries
                    .clone()
                    .find(|k| pattern.row_idx[*k] == row)
                    .map_or(0.0, |k| jacobian[k]);
                // Rounding of the difference, and the part that is not linear.
                let noise = 1e-4 * entry.abs() + 1e-9 * at[row].abs() / h + 1e-10;
                assert!(
                    (slope - entry).abs() <= noise,
                    "{file}: d{row}/d{column}: {entry} but the slope is {slope}"
                );
            }
        }
    }
}
