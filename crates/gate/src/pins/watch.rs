//! One session's look at its server's pins.

use std::collections::{HashMap, HashSet};

use ahash::AHashMap;
use std::path::PathBuf;

use super::file::Stamp;
use super::{Book, PinError, PinFault, PinFile, PinMode, Quarantine, Standing, TOOLS_MAX};

/// Where pins are kept, and how strictly they are held.
#[derive(Debug, Clone, Default)]
pub struct PinOptions {
    /// How strictly.
    pub mode: PinMode,
    /// The directory; unused where pins are off.
    pub directory: PathBuf,
}

/// Where a page stands in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// It was asked for without a cursor.
    pub first: bool,
    /// It names no further page.
    pub last: bool,
}

/// What a list showed that is worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// A tool's definition is not the approved one.
    Changed {
        /// The tool.
        tool: String,
        /// Digest of the approved definition.
        approved: String,
        /// Digest of the one that the server lists.
        listed: String,
    },
    /// A tool that the known server did not have.
    New {
        /// The tool.
        tool: String,
        /// Digest of its definition.
        listed: String,
    },
    /// One list has two definitions of the same name.
    Twice {
        /// The tool.
        tool: String,
    },
    /// There is no room for this many definitions.
    Full {
        /// How many were not kept.
        left_out: usize,
    },
    /// The pins cannot be read or kept.
    Failed {
        /// Which of the closed set it is.
        fault: PinFault,
        /// In words.
        message: String,
    },
}

/// The digest that no definition has: of a name that stood twice in a list.
const TWICE: &str = "twice";

/// The pins of one server, as one session sees them.
#[derive(Debug)]
pub struct Pins {
    mode: PinMode,
    file: Result<PinFile, PinError>,
    book: Result<Book, PinError>,
    stamp: Option<Stamp>,
    /// What this session was shown last, by tool.
    shown: AHashMap<String, String>,
    /// A first list has begun and not ended.
    in_first_list: bool,
    /// The page that was taken in last agreed with the book, and the book was not read since.
    agreed: bool,
}

impl Pins {
    /// Reads the pins of a server. What is wrong with them shows when they are asked.
    #[must_use]
    pub fn open(options: &PinOptions, server: &str) -> Self {
        let mut pins = Self {
            mode: options.mode,
            file: PinFile::new(&options.directory, server),
            book: Ok(Book::default()),
            stamp: None,
            shown: AHashMap::new(),
            in_first_list: false,
            agreed: false,
        };
        if pins.mode != PinMode::Off {
            pins.read();
        }
        pins
    }

    /// What is wrong with the pins, if anything.
    #[must_use]
    pub fn fault(&self) -> Option<&PinError> {
        if self.mode == PinMode::Off {
            return None;
        }
        self.file.as_ref().err().or(self.book.as_ref().err())
    }

    /// Returns whether a person approved the definition that this session was shown of a tool. A server's first list
    /// is pinned without one.
    #[must_use]
    pub fn is_approved_by_person(&self, tool: &str) -> bool {
        self.mode != PinMode::Off
            && matches!((&self.book, self.shown.get(tool)),
                (Ok(book), Some(digest)) if book.is_approved_by_person(tool, digest))
    }

    /// Whether a tool may not be shown or called now.
    ///
    /// A tool that this session was not shown counts by what is written: its caller knows the
    /// definition that was approved, unless another session has seen it change.
    #[must_use]
    pub fn quarantine(&self, tool: &str) -> Option<Quarantine> {
        if self.mode != PinMode::Enforce {
            return None;
        }
        let (Ok(_), Ok(book)) = (&self.file, &self.book) else {
            return Some(Quarantine::Unreadable);
        };
        let approved = match self.shown.get(tool) {
            Some(digest) => book.standing(tool, digest) == Standing::Approved,
            None => book
                .tools
                .get(tool)
                .is_some_and(|tool| tool.approved.is_some() && tool.waiting.is_none()),
        };
        (!approved).then_some(Quarantine::Changed)
    }

    /// Reads the file again where it is another one than before; gives whether it was.
    pub fn refresh(&mut self) -> bool {
        let Ok(file) = &self.file else {
            return false;
        };
        if self.mode == PinMode::Off || (file.stamp() == self.stamp && self.book.is_ok()) {
            return false;
        }
        self.read();
        true
    }

    /// Whether taking in the last page once more would change nothing: it agreed with the pins, and they are those
    /// that are written now.
    #[must_use]
    pub fn would_agree(&self) -> bool {
        self.mode == PinMode::Off
            || matches!((&self.file, &self.book), (Ok(file), Ok(_))
                if self.agreed && self.stamp.is_some() && file.stamp() == self.stamp)
    }

    fn read(&mut self) {
        self.agreed = false;
        if let Ok(file) = &self.file {
            // The stamp first: what is written in between is read again.
            self.stamp = file.stamp();
            self.book = file.read().map(Option::unwrap_or_default);
        }
    }

    /// Takes in one page of a list: each tool's name, digest and text.
    pub fn observe(
        &mut self,
        listed: &[(&str, &str, &str)],
        page: Page,
        now_ms: i64,
    ) -> Vec<Observation> {
        if self.mode == PinMode::Off {
            return Vec::new();
        }
        self.refresh();
        self.agreed = false;
        let mut out = Vec::new();
        let single = self.note_shown(listed, &mut out);
        let left_out = match self.keep(&single, page, now_ms) {
            Ok(left_out) => left_out,
            Err(error) => {
                out.push(Observation::Failed {
                    fault: error.fault(),
                    message: error.to_string(),
                });
                // What cannot be kept cannot be held to: closed under `enforce` until it can.
                if self.book.is_ok() {
                    self.book = Err(error);
                }
                return out;
            }
        };
        if left_out > 0 {
            out.push(Observation::Full { left_out });
        }
        if let Ok(book) = &self.book {
            for (tool, digest, _) in &single {
                let (tool, listed) = ((*tool).to_owned(), (*digest).to_owned());
                match book.standing(&tool, digest) {
                    Standing::Approved => {}
                    Standing::Changed { approved } => out.push(Observation::Changed {
                        tool,
                        approved,
                        listed,
                    }),
                    Standing::New => out.push(Observation::New { tool, listed }),
                }
            }
        }
        out
    }

    /// Remembers what was shown, and leaves out the names that stand twice.
    fn note_shown<'l>(
        &mut self,
        listed: &[(&'l str, &'l str, &'l str)],
        out: &mut Vec<Observation>,
    ) -> Vec<(&'l str, &'l str, &'l str)> {
        let mut digests: HashMap<&str, &str> = HashMap::new();
        let mut twice: HashSet<&str> = HashSet::new();
        for (name, digest, _) in listed {
            if digests
                .insert(name, digest)
                .is_some_and(|other| other != *digest)
                && twice.insert(name)
            {
                out.push(Observation::Twice {
                    tool: (*name).to_owned(),
                });
            }
        }
        for (name, digest) in digests {
            if self.shown.len() < TOOLS_MAX || self.shown.contains_key(name) {
                let digest = if twice.contains(name) { TWICE } else { digest };
                self.shown.insert(name.to_owned(), digest.to_owned());
            }
        }
        let single = listed.iter().filter(|(name, ..)| !twice.contains(name));
        single.copied().collect()
    }

    fn keep(
        &mut self,
        listed: &[(&str, &str, &str)],
        page: Page,
        now_ms: i64,
    ) -> Result<usize, PinError> {
        let file = match &self.file {
            Ok(file) => file,
            Err(PinError::Name { server }) => {
                return Err(PinError::Name {
                    server: server.clone(),
                });
            }
            Err(_) => return Ok(0),
        };
        if matches!(
            &self.book,
            Err(PinError::Read { .. } | PinError::Corrupt { .. })
        ) {
            // Read again, so that the error can be told again.
            file.read()?;
        }
        // A list that begins anew ends a first one that never did: a server cannot keep its trial
        // going by always naming one more page.
        let restarts = page.first && self.in_first_list;
        let agrees = matches!(&self.book, Ok(book) if book.agrees(listed, page.last || restarts));
        self.in_first_list = !page.last && !matches!(&self.book, Ok(book) if book.complete);
        if agrees && self.stamp.is_some() {
            self.agreed = true;
            return Ok(0);
        }
        let (book, stamp, left_out) = file.change_stamped(|book| {
            book.complete |= restarts && !book.tools.is_empty();
            book.take(listed, page.last, now_ms)
        })?;
        self.stamp = stamp;
        self.book = Ok(book);
        Ok(left_out)
    }

    /// The session ends: a first list that it began and did not end is closed as it is.
    pub fn close(&mut self) {
        if self.in_first_list
            && let Ok(file) = &self.file
        {
            // What cannot be written now shows at the next start.
            drop(file.change(|book| book.complete |= !book.tools.is_empty()));
            self.in_first_list = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const WHOLE: Page = Page {
        first: true,
        last: true,
    };
    const BEGINS: Page = Page {
        first: true,
        last: false,
    };
    const ENDS: Page = Page {
        first: false,
        last: true,
    };

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("gate-pins-{name}-{}", std::process::id());
            let place = Self(std::env::temp_dir().join(name));
            drop(std::fs::remove_dir_all(&place.0));
            place
        }

        fn session(&self, mode: PinMode) -> Pins {
            let options = PinOptions {
                mode,
                directory: self.0.clone(),
            };
            Pins::open(&options, "s")
        }

        fn file(&self) -> PinFile {
            PinFile::new(&self.0, "s").unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn list(pins: &mut Pins, tools: &[(&str, &str)], page: Page) -> Vec<Observation> {
        let digests: Vec<String> = tools
            .iter()
            .map(|(_, text)| crate::pins::digest(text))
            .collect();
        let rows: Vec<(&str, &str, &str)> = tools
            .iter()
            .zip(&digests)
            .map(|((name, text), digest)| (*name, digest.as_str(), *text))
            .collect();
        pins.observe(&rows, page, 7)
    }

    #[test]
    fn several_pages_are_one_list() {
        let place = Place::new("pages");
        let mut pins = place.session(PinMode::Enforce);
        assert_eq!(list(&mut pins, &[("a", "1")], BEGINS), []);
        assert_eq!(list(&mut pins, &[("b", "1")], ENDS), []);
        assert_eq!((pins.quarantine("a"), pins.quarantine("b")), (None, None));
        assert!(matches!(
            list(&mut pins, &[("c", "1")], ENDS)[..],
            [Observation::New { .. }]
        ));
        assert_eq!(pins.quarantine("c"), Some(Quarantine::Changed));
    }

    #[test]
    fn a_first_list_that_never_ends_is_closed_by_the_next_or_by_the_end() {
        let place = Place::new("endless");
        let mut pins = place.session(PinMode::Enforce);
        list(&mut pins, &[("a", "1")], BEGINS);
        list(&mut pins, &[("a", "1"), ("b", "1")], BEGINS);
        assert_eq!(pins.quarantine("b"), Some(Quarantine::Changed));

        let place = Place::new("unfinished");
        let mut pins = place.session(PinMode::Enforce);
        list(&mut pins, &[("a", "1")], BEGINS);
        pins.close();
        let mut pins = place.session(PinMode::Enforce);
        list(&mut pins, &[("a", "1"), ("b", "1")], BEGINS);
        assert_eq!(
            (pins.quarantine("a"), pins.quarantine("b")),
            (None, Some(Quarantine::Changed))
        );
    }

    #[test]
    fn a_name_that_stands_twice_with_two_definitions_is_not_trusted() {
        let place = Place::new("twice");
        let mut pins = place.session(PinMode::Enforce);
        let told = list(&mut pins, &[("a", "1"), ("b", "1"), ("a", "2")], WHOLE);
        assert_eq!(told, [Observation::Twice { tool: "a".into() }]);
        assert_eq!(
            (pins.quarantine("a"), pins.quarantine("b")),
            (Some(Quarantine::Changed), None)
        );
        // The same definition twice is one definition.
        let place = Place::new("same");
        let mut pins = place.session(PinMode::Enforce);
        assert_eq!(list(&mut pins, &[("a", "1"), ("a", "1")], WHOLE), []);
        assert_eq!(pins.quarantine("a"), None);
    }

    #[test]
    fn sessions_share_a_file_and_see_each_others_approvals() {
        let place = Place::new("shared");
        let (mut one, mut two) = (
            place.session(PinMode::Enforce),
            place.session(PinMode::Enforce),
        );
        list(&mut one, &[("a", "1")], WHOLE);
        list(&mut two, &[("a", "1"), ("b", "1")], WHOLE);
        assert_eq!(two.quarantine("b"), Some(Quarantine::Changed));
        list(&mut one, &[("a", "2")], WHOLE);
        let book = place.file().read().unwrap().unwrap();
        let waiting: Vec<&str> = book.waiting().map(|(name, _)| name).collect();
        assert_eq!(waiting, ["a", "b"]);
        // What this session was shown counts before what another one saw.
        assert_eq!(
            (one.quarantine("a"), two.quarantine("a")),
            (Some(Quarantine::Changed), None)
        );
        place
            .file()
            .change(|book| book.approve("b", None, 9))
            .unwrap();
        assert!(two.refresh() && !two.refresh());
        assert_eq!(two.quarantine("b"), None);
    }

    #[test]
    fn a_page_would_agree_while_the_pins_are_those_that_it_agreed_with() {
        let place = Place::new("agree");
        let (mut one, mut two) = (place.session(PinMode::Warn), place.session(PinMode::Warn));
        assert!(!one.would_agree(), "nothing was taken in");
        list(&mut one, &[("a", "1")], WHOLE);
        assert!(!one.would_agree(), "it was pinned by this");
        list(&mut one, &[("a", "1")], WHOLE);
        assert!(one.would_agree());
        // Another session sees another definition: what is written is no longer what it was.
        list(&mut two, &[("a", "2")], WHOLE);
        assert!(!one.would_agree());
        assert!(one.refresh() && !one.would_agree(), "it was read again");
        list(&mut one, &[("a", "1")], WHOLE);
        assert!(!one.would_agree(), "what waited is gone");
        list(&mut one, &[("a", "1")], WHOLE);
        assert!(one.would_agree());
        std::fs::remove_dir_all(&place.0).unwrap();
        assert!(!one.would_agree(), "the file is gone");
        let mut off = place.session(PinMode::Off);
        assert!(off.would_agree() && list(&mut off, &[("a", "1")], WHOLE).is_empty());
        assert!(off.would_agree());
    }

    #[test]
    fn many_writers_lose_nothing() {
        let place = Place::new("many");
        let names: Vec<String> = (0..16).map(|n| format!("tool-{n}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                let place = &place;
                scope.spawn(move || {
                    let mut pins = place.session(PinMode::Warn);
                    list(&mut pins, &[(name, "1")], BEGINS);
                });
            }
        });
        let book = place.file().read().unwrap().unwrap();
        assert_eq!(book.tools.len(), names.len());
    }

    #[test]
    fn what_is_shown_beyond_the_bound_goes_by_what_is_written() {
        let place = Place::new("bound");
        let mut pins = place.session(PinMode::Enforce);
        let names: Vec<String> = (0..=TOOLS_MAX).map(|n| format!("{n:05}")).collect();
        let tools: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "1")).collect();
        let told = list(&mut pins, &tools, WHOLE);
        assert!(
            told.contains(&Observation::Full { left_out: 1 }),
            "{}",
            told.len()
        );
        let last = names.last().unwrap();
        assert_eq!(
            (pins.quarantine("00000"), pins.quarantine(last)),
            (None, Some(Quarantine::Changed))
        );
        assert_eq!(pins.shown.len(), TOOLS_MAX);
    }

    #[test]
    fn a_name_that_is_none_for_a_file_is_closed() {
        for name in ["", "../x", "a/b", "a\0", "é", &"x".repeat(201)] {
            assert!(PinFile::new(Path::new("/tmp"), name).is_err(), "{name}");
            let options = PinOptions {
                mode: PinMode::Enforce,
                directory: PathBuf::from("/nonexistent"),
            };
            let mut pins = Pins::open(&options, name);
            assert_eq!(pins.quarantine("a"), Some(Quarantine::Unreadable));
            assert!(matches!(
                list(&mut pins, &[("a", "1")], WHOLE)[..],
                [Observation::Failed { .. }]
            ));
            assert!(!pins.refresh());
        }
    }
}
