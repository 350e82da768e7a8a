//! The types make the gate the only door: each attempt to go around it does not compile, for the
//! reason that is pinned beside it, and each stands beside a twin that does compile.

#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_admit_then_send.rs"]
mod twin_admit_then_send;
#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_control_passes.rs"]
mod twin_control_passes;
#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_identify.rs"]
mod twin_identify;
#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_inspect_then_judge.rs"]
mod twin_inspect_then_judge;
#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_send_what_was_spent.rs"]
mod twin_send_what_was_spent;
#[expect(dead_code, reason = "that it compiles is the proof")]
#[path = "../ui/twin_send_with_a_permit.rs"]
mod twin_send_with_a_permit;

#[test]
fn the_gate_is_the_only_door() {
    // The twins are modules here and no cases of `pass`, for which every dependency would be built again to its end.
    trybuild::TestCases::new().compile_fail("tests/ui/fail_*.rs");
}
