//! Frames that two readers may read in two ways.
//!
//! Each frame is made of a harmless call and, hidden in it, of what a gate must not let pass: a second
//! tool, a second path, a second message. Some readers see the one, some the other. About half of
//! the frames hide nothing and are only spelled in unusual ways: they must go through.
//!
//! The same seed gives the same frames, so that a difference can be looked at again.

mod dress;
mod forms;
mod random;

pub use forms::Call;
use forms::FORMS;
use random::Random;

/// One frame: a line without its newline.
#[derive(Debug, Clone)]
pub struct Ambiguous {
    /// Its number; the id of its call, and part of its paths.
    pub number: u64,
    /// The name of its form.
    pub form: &'static str,
    /// The frame. It may hold any byte, a newline too.
    pub bytes: Vec<u8>,
}

/// An endless stream of frames.
#[derive(Debug)]
pub struct Frames {
    random: Random,
    number: u64,
}

impl Frames {
    /// The stream of this seed; ids begin at 1000.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            number: 1000,
        }
    }

    /// How many forms there are.
    #[must_use]
    pub fn forms() -> usize {
        FORMS.len()
    }
}

impl Iterator for Frames {
    type Item = Ambiguous;

    fn next(&mut self) -> Option<Ambiguous> {
        let number = self.number;
        self.number += 1;
        // Every form comes once before any comes again.
        let turn = usize::try_from(number).ok()? % FORMS.len();
        let (form, make) = FORMS.get(turn)?;
        let call = Call::new(number);
        let mut bytes = make(&call, &mut self.random);
        if self.random.below(3) == 0
            && let Ok(text) = std::str::from_utf8(&bytes)
        {
            bytes = dress::dress(text, &mut self.random).into_bytes();
        }
        Some(Ambiguous {
            number,
            form,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_frames_again_and_another_gives_others() {
        let take =
            |seed| -> Vec<Vec<u8>> { Frames::new(seed).take(300).map(|f| f.bytes).collect() };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn a_fair_part_of_the_frames_is_a_call_and_a_fair_part_is_refused() {
        let bounds = wire::Bounds::default();
        let count = 600;
        let good = Frames::new(1)
            .take(count)
            .filter(|frame| wire::Canonical::of(&frame.bytes, &bounds).is_ok())
            .count();
        assert!(good > count * 4 / 10 && good < count * 8 / 10, "{good}");
    }
}
