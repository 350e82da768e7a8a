use gate::admit::Origin;
use gate::facts::{Fact, Facts};
use gate::{Reason, RunId};

use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";

fn origin(run: Option<RunId>) -> Origin {
    Origin {
        run,
        session_id: "a-session-nobody-may-read".into(),
        request_id: "7".into(),
        ..Origin::default()
    }
}

fn refused<'a>(facts: &'a Facts, origin: &'a Origin) -> Observed<'a> {
    Observed {
        op: OpId(0x0000_0198_0000_0000_0000_0001_0000_0007),
        facts,
        origin,
        rule: "no-etc",
        approval: Micros::from_nanos(2_000_000),
        duration: Micros::from_nanos(5_000),
        end: End::Refused(Reason::DenyRule),
    }
}

#[test]
fn the_caller_decides_whether_its_trace_is_kept() {
    let facts = Facts::default();
    for (flags, kept) in [("01", true), ("00", false)] {
        let origin = origin(RunId::of_trace(&format!("{PARENT}{flags}")));
        let ids = Ids::of(&refused(&facts, &origin));
        assert_eq!(ids.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(ids.parent.map(|p| p.span), Some(0x00f0_67aa_0ba9_02b7));
        assert_eq!((ids.is_sampled(0.0), ids.is_sampled(1.0)), (kept, kept));
    }
}

#[test]
fn calls_of_one_run_share_a_trace_and_others_have_their_own() {
    let facts = Facts::default();
    let ids = |run: Option<&str>, op: u128| {
        let origin = origin(run.and_then(RunId::named));
        let mut call = refused(&facts, &origin);
        call.op = OpId(op);
        Ids::of(&call)
    };
    let (one, two) = (ids(Some("nightly"), 1), ids(Some("nightly"), 2));
    assert_eq!(one.trace, two.trace);
    assert_ne!(one.span, two.span);
    assert_ne!(ids(None, 1).trace, ids(None, 2).trace);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    assert_eq!(format!("{:032x}", ids(Some(trace), 1).trace), trace);
    // A call without a name is not lost.
    assert!(ids(None, 0).span != 0);
    let half = (0..1_000)
        .filter(|op| ids(None, *op).is_sampled(0.5))
        .count();
    assert!((400..600).contains(&half), "{half}");
    let none = (0..1_000)
        .filter(|op| ids(None, *op).is_sampled(0.0))
        .count();
    assert_eq!(none, 0);
}

#[test]
fn a_refused_call_says_why_and_no_more() {
    let facts = Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known("x".repeat(TEXT_BYTES_MAX - 1) + "é"),
        backend_id: "files".into(),
        ..Facts::default()
    };
    let origin = origin(None);
    let call = refused(&facts, &origin);
    let span = of(&call, Ids::of(&call), 10_000);
    assert_eq!((span.start_ns, span.end_ns), (5_000, 10_000));
    assert_eq!(span.status, SpanStatus::Error("denied_by_rule".into()));
    let shown = format!("{span:?}");
    for there in ["no-etc", "Refused", "files", "durward.approval_us"] {
        assert!(shown.contains(there), "{there}: {shown}");
    }
    for secret in ["a-session-nobody-may-read", "é"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
