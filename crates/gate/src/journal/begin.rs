//! How a segment is begun: named in the head first, then made, then what it takes over is dropped from the head.
//!
//! A crash between any two steps leaves a head that names too much and never too little.

use std::path::Path;

use super::abandoned::{self, ADOPTED_MAX, Found};
use super::chain::SegmentId;
use super::head::{End, Head, Keeper, State, Step};
use super::segment::{Opening, Segment};
use super::{JournalError, JournalOptions, Keys, retention, segment_files};

/// What every segment of one running journal is begun with. The caller holds the directory's lock.
pub(super) struct Begin<'a> {
    pub(super) directory: &'a Path,
    pub(super) keys: &'a Keys,
    pub(super) options: JournalOptions,
    pub(super) instance: [u8; 16],
    pub(super) keeper: Option<&'a Keeper>,
    pub(super) now_ms: i64,
    /// The first segment continues nothing.
    pub(super) is_new_chain: bool,
}

/// A segment that was begun, and the head that names it as it was written.
pub(super) struct Begun {
    pub(super) segment: Segment,
    pub(super) line: Option<Vec<u8>>,
}

/// Ends that change in the head because of a new segment.
#[derive(Default)]
struct Taken {
    gone: Vec<SegmentId>,
    closed: Vec<End>,
}

impl Begin<'_> {
    /// The first segment of a running journal: continues the newest closed one that nobody continues, and names those whose
    /// writers are gone.
    pub(super) fn first(&self, id: SegmentId) -> Result<Begun, JournalError> {
        let mut opening = self.opening(id);
        let head = self.announce(&mut opening, !self.is_new_chain)?;
        let segment = self.create(&opening)?;
        let mut taken = Taken::default();
        taken
            .gone
            .extend(opening.continues.map(|before| before.segment));
        if let Some(head) = head {
            self.adopt(&segment, &head, &mut taken)?;
        }
        self.finish(segment, taken)
    }

    /// The segment that takes the place of `current`, which is closed.
    pub(super) fn after(&self, current: &Segment, id: SegmentId) -> Result<Begun, JournalError> {
        let mut opening = self.opening(id);
        opening.after_ms = Some(current.named_ms);
        self.announce(&mut opening, false)?;
        opening.continues = Some(current.close(self.keys, self.now_ms, "rotated")?);
        current.log.close()?;
        self.step(Step::Closed);
        let segment = self.create(&opening)?;
        let gone = vec![current.id];
        self.finish(
            segment,
            Taken {
                gone,
                ..Taken::default()
            },
        )
    }

    fn opening(&self, id: SegmentId) -> Opening {
        Opening {
            id,
            instance: self.instance,
            continues: None,
            after_ms: None,
            head: None,
        }
    }

    fn step(&self, step: Step) {
        if let Some(keeper) = self.keeper {
            keeper.step(step);
        }
    }

    /// Names the coming segment in the head, having looked for one to continue where `look` is asked for.
    fn announce(&self, opening: &mut Opening, look: bool) -> Result<Option<Head>, JournalError> {
        let pick = |opening: &mut Opening, head: Option<&Head>| {
            if look {
                let found = segment_files::continuable(self.directory, self.keys.public(), head)?;
                opening.continues = found.map(|(continues, _)| continues);
                opening.after_ms = found.and_then(|(_, named_ms)| named_ms);
            }
            Ok::<_, JournalError>(())
        };
        let Some(keeper) = self.keeper else {
            pick(opening, None)?;
            return Ok(None);
        };
        let kept = keeper.change(self.now_ms, true, &mut |head| {
            pick(opening, Some(head))?;
            head.put(End {
                segment: opening.id,
                named_ms: opening.named_ms(self.now_ms),
                state: State::Opening,
                sequence: None,
                hash: None,
                end_bytes: 0,
                time_ms: self.now_ms,
            });
            Ok(())
        })?;
        keeper.step(Step::Announced);
        Ok(kept.map(|kept| {
            opening.head = Some(kept.head.serial);
            kept.head
        }))
    }

    fn create(&self, opening: &Opening) -> Result<Segment, JournalError> {
        let segment = Segment::create(
            self.directory,
            self.keys,
            self.options,
            opening,
            self.now_ms,
        )?;
        self.step(Step::Begun);
        Ok(segment)
    }

    /// Names segments whose writers are gone in the journal itself, so that the head need not.
    fn adopt(&self, segment: &Segment, head: &Head, taken: &mut Taken) -> Result<(), JournalError> {
        let failed = |error| JournalError::Read {
            path: self.directory.to_path_buf(),
            error,
        };
        let files = abandoned::by_segment(self.directory).map_err(failed)?;
        let mut adopted = 0;
        for end in &head.ends {
            let own = end.segment == segment.id || taken.gone.contains(&end.segment);
            if own || end.state == State::Closed || adopted == ADOPTED_MAX {
                continue;
            }
            let path = files.get(&end.segment).map(std::path::PathBuf::as_path);
            match abandoned::look(path, end, self.keys.public()).map_err(failed)? {
                Found::Left => {}
                Found::Nothing => taken.gone.push(end.segment),
                Found::Closed(last, end_bytes) => taken.closed.push(End {
                    state: State::Closed,
                    sequence: Some(last.sequence),
                    hash: Some(last.hash),
                    end_bytes,
                    time_ms: self.now_ms,
                    ..*end
                }),
                Found::Abandoned(found) => {
                    adopted += 1;
                    segment
                        .append_own(self.keys, self.now_ms, &found.record())
                        .map_err(retention::refused)?;
                    taken.gone.push(found.segment());
                }
            }
        }
        if adopted > 0 {
            segment
                .checkpoint(self.keys, self.now_ms, true)
                .map_err(retention::refused)?;
            self.step(Step::Adopted);
        }
        Ok(())
    }

    /// Lets old segments go where that is asked for, and has the head name the new segment in the place of those that it took
    /// over.
    fn finish(&self, segment: Segment, taken: Taken) -> Result<Begun, JournalError> {
        if let Some(retain_bytes_max) = self.options.retain_bytes_max {
            retention::retire(
                self.directory,
                self.keys,
                &segment,
                retain_bytes_max,
                self.now_ms,
                self.keeper,
            )?;
        }
        let Some(keeper) = self.keeper else {
            return Ok(Begun {
                segment,
                line: None,
            });
        };
        let end = segment.end(self.now_ms);
        segment.is_kept(end.end_bytes)?;
        let kept = keeper.change(self.now_ms, true, &mut |head| {
            head.drop_ends(&taken.gone);
            for end in &taken.closed {
                // What retention has let go of just now is not named again.
                if head.end(end.segment).is_some() {
                    head.put(*end);
                }
            }
            head.put(end);
            Ok(())
        })?;
        let line = kept.map(|kept| {
            segment.headed(&kept.head);
            kept.line
        });
        Ok(Begun { segment, line })
    }
}
