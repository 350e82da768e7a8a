use super::*;
use gate::facts::{Fact, Facts, ResourceType};
use gate::paths::canonical::Meaning;
use gate::paths::{PathArgument, Role};

fn touches(tool: &str, place: &str) -> Touched {
    let argument = PathArgument {
        text: place.to_owned(),
        role: Role::Path,
        content: false,
        meaning: Meaning {
            places: vec![place.to_owned()],
            ..Meaning::default()
        },
    };
    let facts = Facts {
        backend_id: "files".into(),
        resource_type: Some(ResourceType::Tool),
        tool_name: Fact::Known(tool.to_owned()),
        paths: Fact::Known(vec![argument]),
        ..Facts::default()
    };
    Touched::of(&facts).unwrap()
}

/// An order, and one caller.
fn order() -> (Arc<Order>, Arc<str>) {
    (Arc::default(), "ada".into())
}

impl Order {
    /// A call that is read now.
    fn read(self: &Arc<Self>, tool: &str, place: &str, caller: &Arc<str>) -> (Turn, bool) {
        self.enter(touches(tool, place), caller, self.settled())
    }
}

#[tokio::test]
async fn a_call_goes_on_when_the_one_before_it_has_settled_and_is_read_again() {
    let (order, ada) = order();
    let (mut first, is_free) = order.read("write_file", "/a", &ada);
    assert!(is_free);
    first.sent();
    let (mut second, is_free) = order.read("read_file", "/a/b", &ada);
    assert!(!is_free);
    let mut read = 0;
    let settles = async {
        tokio::task::yield_now().await;
        first.settled();
    };
    let waits = second.wait(|| {
        read += 1;
        Some(touches("read_file", "/a/b"))
    });
    let (holds, ()) = tokio::join!(waits, settles);
    assert!(holds);
    assert_eq!(read, 1);
    drop(second);
    assert!(order.calls().unsettled.is_empty());
    assert_eq!(order.calls().writing, 0);
}

#[tokio::test]
async fn what_leads_elsewhere_when_it_is_read_again_waits_for_who_writes_there() {
    let (order, ada) = order();
    let (mut link, _) = order.read("write_file", "/a", &ada);
    link.sent();
    let (mut reads, _) = order.read("read_file", "/a/l", &ada);
    let (mut elsewhere, is_free) = order.read("write_file", "/b", &ada);
    assert!(is_free);
    elsewhere.sent();
    let mut read = Vec::new();
    let settles = async {
        tokio::task::yield_now().await;
        link.settled();
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        elsewhere.settled();
    };
    let waits = reads.wait(|| {
        read.push(order.settled());
        Some(touches("read_file", "/b/x"))
    });
    let (holds, ()) = tokio::join!(waits, settles);
    assert!(holds);
    // Read once when the link was there, and once more when what it leads to was written.
    assert_eq!(read, [1, 2]);
}

#[test]
fn what_was_read_before_a_writing_call_has_settled_is_read_again() {
    let (order, ada) = order();
    let seen = order.settled();
    let (mut writes, _) = order.read("write_file", "/a", &ada);
    writes.sent();
    writes.settled();
    let (_turn, is_free) = order.enter(touches("read_file", "/a"), &ada, seen);
    assert!(!is_free);
    let (_turn, is_free) = order.read("read_file", "/a", &ada);
    assert!(is_free);
}

#[test]
fn a_call_that_was_never_sent_or_only_read_leaves_at_once() {
    let (order, ada) = order();
    drop(order.read("write_file", "/a", &ada));
    let (mut reads, _) = order.read("read_file", "/a", &ada);
    reads.sent();
    drop(reads);
    assert!(order.calls().unsettled.is_empty());
    assert_eq!(order.settled(), 0);
    let (mut writes, _) = order.read("write_file", "/a", &ada);
    writes.sent();
    drop(writes);
    assert_eq!(order.calls().given_up, 1);
    assert!(!order.read("read_file", "/a", &ada).1);
}

#[test]
fn who_gives_up_writing_calls_again_and_again_waits_and_nobody_else() {
    let (order, ada) = order();
    for at in 0..GIVEN_UP_MAX {
        let (mut writes, is_free) = order.read("write_file", &format!("/a/{at}"), &ada);
        assert!(is_free);
        writes.sent();
    }
    assert_eq!(order.calls().given_up, GIVEN_UP_MAX);
    assert!(!order.read("write_file", "/b", &ada).1);
    assert!(order.read("read_file", "/b", &ada).1);
    assert!(order.read("write_file", "/b", &"eve".into()).1);
}

#[tokio::test]
async fn no_more_calls_wait_than_may() {
    let (order, ada) = order();
    let (mut writes, _) = order.read("write_file", "/a", &ada);
    writes.sent();
    order.waiting.store(WAITING_MAX, Ordering::Release);
    let (mut reads, _) = order.read("read_file", "/a", &ada);
    assert!(!reads.wait(|| None).await);
    assert_eq!(order.waiting.load(Ordering::Acquire), WAITING_MAX);
}
