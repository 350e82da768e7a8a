use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn task() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

fn counted(count: &Count) -> usize {
    count.0.load(Ordering::Relaxed)
}

#[test]
fn a_task_is_not_woken_by_what_it_does_itself_unless_it_is_asked_for() {
    let (count, waker) = task();
    let mut quiet = Quiet::default();
    let own = quiet.of(&Context::from_waker(&waker)).clone();
    let (told, woken) = quietly(|| {
        own.wake_by_ref();
        own.wake_by_ref();
        7
    });
    assert_eq!((told, counted(&count)), (7, 0));
    woken.unwrap().wake();
    assert_eq!(counted(&count), 1);
    own.wake_by_ref();
    assert_eq!(counted(&count), 2);
    assert!(quietly(|| ()).1.is_none());
}

#[test]
fn another_thread_and_another_task_are_heard_within_it() {
    let (count, waker) = task();
    let (mut quiet, mut other) = (Quiet::default(), Quiet::default());
    let own = quiet.of(&Context::from_waker(&waker)).clone();
    let (other_count, other_waker) = task();
    let other = other.of(&Context::from_waker(&other_waker)).clone();
    let (_, woken) = quietly(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| own.wake_by_ref());
        });
        own.wake_by_ref();
        other.wake_by_ref();
    });
    assert_eq!((counted(&count), counted(&other_count)), (1, 1));
    drop(woken);
    assert_eq!(counted(&count), 1);
}

#[test]
fn the_last_task_that_asked_is_woken() {
    let ((before, first), (after, second)) = (task(), task());
    let mut quiet = Quiet::default();
    let own = quiet.of(&Context::from_waker(&first)).clone();
    quiet.of(&Context::from_waker(&second));
    own.wake();
    assert_eq!((counted(&before), counted(&after)), (0, 1));
}

#[test]
fn a_panic_within_it_leaves_no_task_asleep() {
    let (count, waker) = task();
    let mut quiet = Quiet::default();
    let own = quiet.of(&Context::from_waker(&waker)).clone();
    let panicked = std::panic::catch_unwind(|| quietly(|| panic!("within")));
    assert!(panicked.is_err());
    own.wake();
    assert_eq!(counted(&count), 1);
}
