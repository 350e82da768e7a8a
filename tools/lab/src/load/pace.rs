//! When calls are due.

use crate::stats::SeededRandom;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The model of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// So many workers, each calling again when it was answered.
    Closed { workers: u32 },
    /// So many calls a second.
    Open { rate: f64 },
}

/// The schedule of one phase, shared by its workers. Times count from the beginning of the phase.
#[derive(Debug)]
pub(crate) struct PhaseSchedule {
    pace: Pace,
    length: Duration,
    next: AtomicU64,
}

impl PhaseSchedule {
    pub(crate) fn new(pace: Pace, length: Duration) -> Self {
        Self {
            pace,
            length,
            next: AtomicU64::new(0),
        }
    }

    /// Returns whether calls are due at a rate.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    /// When the phase is over for those who lost their target.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Returns the number of calls that were due by `now` and never left.
    pub(crate) fn untaken(&self, now: Duration) -> u64 {
        let Pace::Open { rate } = self.pace else {
            return 0;
        };
        // Call n is due at n / rate: as many as fit before then.
        let due = (now.min(self.length).as_secs_f64() * rate - 1e-9).ceil();
        (due.max(0.0) as u64).saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// When the next call of `worker` is due; nothing when the phase has no more for it. `now` is when the
    /// worker is free to make it.
    pub(crate) fn due(&self, worker: u32, now: Duration) -> Option<Duration> {
        match self.pace {
            Pace::Closed { workers } => (worker < workers && now < self.length).then_some(now),
            Pace::Open { rate } => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let due = Duration::from_secs_f64(number as f64 / rate);
                (due < self.length).then_some(due)
            }
        }
    }
}

/// Returns a pause of `think` on average, up to `spread` (of 1) longer or shorter: with equal pauses workers would end
/// up calling together.
pub(crate) fn pause(think: Duration, spread: f64, random: &mut SeededRandom) -> Duration {
    think.mul_f64(1.0 + spread * (2.0 * random.unit() - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SortedSamples;

    #[test]
    fn pauses_are_spread_evenly_around_what_is_asked_for_and_the_same_for_a_seed() {
        let ms = Duration::from_millis;
        let drawn = |seed| {
            let mut random = SeededRandom::new(seed);
            std::iter::repeat_with(move || pause(ms(10), 0.5, &mut random))
        };
        let many: Vec<Duration> = drawn(1).take(10_000).collect();
        assert!(many.iter().all(|one| (ms(5)..ms(15)).contains(one)));
        assert!(many.iter().any(|one| *one < ms(6)) && many.iter().any(|one| *one > ms(14)));
        let mean = many.iter().sum::<Duration>() / 10_000;
        assert!(
            mean.abs_diff(ms(10)) < Duration::from_micros(200),
            "{mean:?}"
        );
        assert!(drawn(1).take(100).eq(many.iter().copied().take(100)));
        assert!(!drawn(2).take(100).eq(many.iter().copied().take(100)));
        assert_eq!(pause(ms(10), 0.0, &mut SeededRandom::new(1)), ms(10));
    }
    /// Returns service and response times, in ms, of one worker before a server that answers in 1 ms but stalls for the
    /// first second of every ten. All times are simulated.
    fn simulate(pace: Pace) -> (SortedSamples, SortedSamples) {
        let ms = Duration::from_millis;
        let schedule = PhaseSchedule::new(pace, ms(100_000));
        let (mut now, mut service, mut response) = (Duration::ZERO, Vec::new(), Vec::new());
        while let Some(due) = schedule.due(0, now) {
            let begun = now.max(due);
            let into = ms(u64::try_from(begun.as_millis() % 10_000).unwrap());
            let end = begun + ms(1) + ms(1_000).saturating_sub(into);
            service.push((end - begun).as_secs_f64() * 1e3);
            response.push((end - due).as_secs_f64() * 1e3);
            now = end;
        }
        (SortedSamples::new(service), SortedSamples::new(response))
    }

    #[test]
    fn a_stall_of_one_second_in_ten_shows_in_response_times() {
        let (service, response) = simulate(Pace::Open { rate: 100.0 });
        // One call in a thousand waits for the server itself...
        assert!(service.at(0.99).unwrap() < 2.0);
        // ...but a tenth of all calls were due while it stood still.
        assert!(response.at(0.99).unwrap() > 800.0);
        assert!(response.at(0.95).unwrap() > 400.0);
        assert!(response.at(0.5).unwrap() < 2.0);
    }

    #[test]
    fn a_closed_loop_hides_the_same_stall() {
        let (service, response) = simulate(Pace::Closed { workers: 1 });
        assert!(service.at(0.99).unwrap() < 2.0 && response.at(0.99).unwrap() < 2.0);
    }

    #[test]
    fn what_was_due_and_never_taken_is_counted() {
        let second = Duration::from_secs(1);
        let schedule = PhaseSchedule::new(Pace::Open { rate: 10.0 }, second);
        for taken in 0..3 {
            assert_eq!(schedule.untaken(second), 10 - taken);
            schedule.due(0, second);
        }
        // Those at 0, 0.1 and 0.2 s were taken; those at 0.3 and 0.4 s were not.
        assert_eq!(schedule.untaken(second / 2), 2);
        assert_eq!(schedule.untaken(second / 4), 0);
        while schedule.due(0, second).is_some() {}
        assert_eq!(schedule.untaken(10 * second), 0);
        let closed = PhaseSchedule::new(Pace::Closed { workers: 2 }, second);
        assert_eq!(closed.untaken(second), 0);
    }

    #[test]
    fn calls_are_due_at_multiples_of_the_interval() {
        let second = Duration::from_secs(1);
        let schedule = PhaseSchedule::new(Pace::Open { rate: 4.0 }, second);
        let due: Vec<u128> = std::iter::from_fn(|| schedule.due(9, second))
            .map(|due| due.as_millis())
            .collect();
        assert_eq!(due, [0, 250, 500, 750]);
        let closed = PhaseSchedule::new(Pace::Closed { workers: 2 }, second);
        assert_eq!(closed.due(1, second / 2), Some(second / 2));
        assert_eq!(closed.due(2, second / 2), None);
        assert_eq!(closed.due(0, second), None);
    }
}
