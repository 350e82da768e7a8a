use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn thirty_in_a_minute_and_each_leaves_on_time() {
    let mut window = CallWindow::default();
    for call in 0..30 {
        let (taken, _) = window.take(call * SECOND, 30, 60 * SECOND);
        assert_eq!(taken, Ok(()));
    }
    assert_eq!(
        window.take(30 * SECOND, 30, 60 * SECOND).0,
        Err(30 * SECOND)
    );
    assert_eq!(window.take(60 * SECOND - 1, 30, 60 * SECOND).0, Err(1));
    assert_eq!(window.take(60 * SECOND, 30, 60 * SECOND).0, Ok(()));
    assert!(window.take(60 * SECOND, 30, 60 * SECOND).0.is_err());
    // A smaller number after a reload: so many have to leave first.
    assert_eq!(
        window.take(60 * SECOND, 10, 60 * SECOND).0,
        Err(21 * SECOND)
    );
}

#[test]
fn memory_is_bounded_however_many_calls_come() {
    let mut window = CallWindow::default();
    let mut marks = 0;
    for call in 0..1_000_000_u64 {
        let (taken, change) = window.take(call * 50_000, u32::MAX, 60 * SECOND);
        assert_eq!(taken, Ok(()));
        marks = marks + change.added - change.dropped;
        assert_eq!(marks, window.marks());
        assert!(window.marks() <= 2 * EXACT_MAX + 1, "{}", window.marks());
    }
}

proptest! {
    #[test]
    fn exactly_as_many_as_the_definition_says(
        calls_max in 1_u32..40,
        window in 1_u64..1_000,
        steps in prop::collection::vec(0_u64..100, 1..300),
    ) {
        let (mut tested, mut taken, mut now) = (CallWindow::default(), Vec::<u64>::new(), 0);
        for step in steps {
            now += step;
            let within = taken.iter().filter(|at| now - **at < window).count();
            let (may, _) = tested.take(now, calls_max, window);
            prop_assert_eq!(may.is_ok(), within < calls_max as usize);
            match may {
                Ok(()) => taken.push(now),
                Err(wait) => {
                    let then = now + wait;
                    let left = |at: u64| taken.iter().filter(|t| at - **t < window).count();
                    prop_assert!(left(then) < calls_max as usize);
                    prop_assert!(left(then - 1) >= calls_max as usize);
                }
            }
        }
    }

    #[test]
    fn grouped_calls_are_never_too_many(
        calls_max in 1_100_u32..3_000,
        steps in prop::collection::vec(0_u64..2_000, 4_000..6_000),
    ) {
        let window = 1_024 * 1_000;
        let (mut tested, mut taken, mut now) = (CallWindow::default(), VecDeque::<u64>::new(), 0);
        for step in steps {
            now += step / 3;
            while taken.front().is_some_and(|at| now - at >= window) {
                taken.pop_front();
            }
            if tested.take(now, calls_max, window).0.is_ok() {
                taken.push_back(now);
            }
            prop_assert!(taken.len() <= calls_max as usize);
        }
    }
}
