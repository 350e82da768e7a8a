//! The types make the gate the only door: each attempt to go around it does not compile, for the
//! reason that is pinned beside it, and each stands beside a twin that does compile.

#[test]
fn the_gate_is_the_only_door() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/twin_*.rs");
    cases.compile_fail("tests/ui/fail_*.rs");
}
