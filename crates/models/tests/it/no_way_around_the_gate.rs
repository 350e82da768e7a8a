//! Nothing is sent to a provider without a pass: each attempt does not compile, for the reason that is pinned
//! beside it, and stands beside a twin that does compile.

#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_send_what_was_spent.rs"]
mod twin_send_what_was_spent;

#[test]
fn the_gate_is_the_only_door() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail_*.rs");
}
