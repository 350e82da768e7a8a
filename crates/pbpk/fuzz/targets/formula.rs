//! Any text is a formula or a clear error; what is printed reads back to the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pbpk::formula::FormulaBody;

fuzz_target!(|text: &str| {
    let aliases: Vec<String> = ["a", "b", "Time", "K_m"].map(str::to_owned).to_vec();
    let Ok(body) = FormulaBody::parse(text, &aliases) else {
        return;
    };
    let at = |i: usize| [1.5, -2.0, 3.0, 0.25][i];
    let value = body.evaluate(&mut Vec::new(), at);
    let printed = body.to_string();
    // Brackets that the printer adds may cross the bound on nesting.
    let Ok(again) = FormulaBody::parse(&printed, &aliases) else {
        assert!(
            matches!(
                FormulaBody::parse(&printed, &aliases),
                Err(pbpk::formula::FormulaError::TooLarge { .. })
            ),
            "{printed}"
        );
        return;
    };
    let other = again.evaluate(&mut Vec::new(), at);
    assert!(
        value.to_bits() == other.to_bits() || (value.is_nan() && other.is_nan()),
        "{text} became {printed}"
    );
});
