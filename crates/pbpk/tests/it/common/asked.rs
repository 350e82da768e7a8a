//! A question whether to go on that counts how often it is asked: how soon work stops, in parts of the work and not in
//! time.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pbpk::watch::{Interrupt, Question};

/// Units of work between two looks.
pub const UNITS: usize = 64;

/// Says stop from the given number of looks on.
pub struct Asked {
    times: AtomicUsize,
    allowed: usize,
}

impl Asked {
    pub fn always() -> Self {
        Self::until(usize::MAX)
    }

    pub fn until(allowed: usize) -> Self {
        let times = AtomicUsize::new(0);
        Self { times, allowed }
    }

    pub fn ask(&self) -> Option<Interrupt> {
        (self.times.fetch_add(1, Relaxed) >= self.allowed).then_some(Interrupt::Cancelled)
    }

    pub fn count(&self) -> usize {
        self.times.load(Relaxed)
    }

    pub fn forget(&self) {
        self.times.store(0, Relaxed);
    }
}

/// Does work that looks at least so often when it is let go on; then again with a stop before it, in its middle and at
/// its last look: each time it ends with the cancel error, and at the very look that says so.
pub fn ends_where_it_is_told<T, E: Display>(
    least: usize,
    mut work: impl FnMut(Question<'_>) -> Result<T, E>,
) -> T {
    // What is kept for the next time is made at the first.
    let _ = work(&|| None);
    let whole = Asked::always();
    let Ok(done) = work(&|| whole.ask()) else {
        panic!("the work fails by itself");
    };
    let count = whole.count();
    assert!(count >= least.max(1), "{count} looks are less than {least}");
    for allowed in [0, count / 3, count / 2, count - 1] {
        let asked = Asked::until(allowed);
        let ended = work(&|| asked.ask());
        let Err(error) = ended else {
            panic!("not ended at look {allowed} of {count}");
        };
        let told = error.to_string();
        assert!(told.starts_with("cancelled"), "look {allowed}: {told}");
        assert_eq!(
            asked.count(),
            allowed + 1,
            "of {count}: it went on after it was told"
        );
    }
    done
}
