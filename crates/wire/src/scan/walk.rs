//! The walk itself: a loop over an explicit stack, never recursion.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::sink::Sink;
use super::tokens::{self, Fault, JsonString};
use super::{Bounds, NotedLeaf, NotedObject, Notes, Own, OwnPlaces, is_unique};
use crate::error::{WireError, WireErrorKind as K};
use crate::{fold, text};

/// What is asked of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// No name stands twice in any object.
    Request,
    /// No name stands twice in the message itself.
    Reply,
    /// No name stands twice in any object, but for what is deeper in a result or error than its
    /// members: that belongs to the server and its client. No member of the message is like one of
    /// JSON-RPC's without being it.
    Canonical,
}

/// Which part of a message a container is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// Around the message.
    Outside,
    Message,
    /// An element of a batch.
    Element,
    Params,
    Arguments,
    /// `result` or `error`.
    Reply,
    /// Below a member of those.
    Inside,
    Other,
}

impl Zone {
    /// The zone of a container that is the member `name` of an object in this one, or the message's `own`.
    fn below(self, own: Option<Own>, name: &str) -> Self {
        match (self, own) {
            (Self::Message, Some(Own::Params)) => Self::Params,
            (Self::Message, Some(Own::Result | Own::Error)) => Self::Reply,
            (Self::Element, Some(Own::Result | Own::Error)) => Self::Inside,
            (Self::Params, _) if name == "arguments" => Self::Arguments,
            _ => self.within(),
        }
    }

    /// Which of a message's members this is in an object of this zone.
    fn own(self, name: &str) -> Option<Own> {
        matches!(self, Self::Message | Self::Element).then(|| Own::of(name))?
    }

    /// The zone of a container in this one, whatever its name.
    fn within(self) -> Self {
        match self {
            Self::Arguments => Self::Arguments,
            Self::Reply | Self::Inside => Self::Inside,
            Self::Outside | Self::Message | Self::Element | Self::Params | Self::Other => {
                Self::Other
            }
        }
    }
}

/// How many levels are around `arguments`: what is outside, the message, its params.
const ARGUMENTS_DEPTH: usize = 3;

struct Level<N> {
    object: bool,
    zone: Zone,
    /// The zone of a container that begins here now.
    below: Zone,
    /// Where this object's names begin in `Walker::names`.
    names_from: usize,
    /// The member whose value is being read; for arrays, the nearest one above.
    key: N,
    /// Below `arguments`: the leaf that is `key`, and the innermost object.
    key_leaf: Option<u32>,
    inside: Option<u32>,
    /// Where it begins: in the frame as it came, and for the sink.
    start: usize,
    mark: usize,
}

/// What a walk noted, and its sink.
pub(crate) struct Walked<'a, S: Sink<'a>> {
    pub(crate) notes: Notes<S::Name, S::Part>,
    pub(crate) sink: S,
    /// Looked at by [`Rules::Canonical`] alone.
    pub(crate) own: OwnMembers,
}

/// Members of the message itself.
#[derive(Default)]
pub(crate) struct OwnMembers {
    /// Which of the noted members are JSON-RPC's own, in the order of [`super::MEMBERS`].
    pub(crate) at: OwnPlaces,
    /// There are others, too.
    pub(crate) has_unknown: bool,
}

/// Walks one frame and hands its tokens to a sink.
pub(crate) struct Walker<'a, S: Sink<'a>> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    bounds: Bounds,
    rules: Rules,
    /// The innermost container, and those around it.
    level: Level<S::Name>,
    around: SmallVec<[Level<S::Name>; 4]>,
    names: SmallVec<[Cow<'a, str>; 8]>,
    out: Notes<S::Name, S::Part>,
    sink: S,
    own: OwnMembers,
}

impl<'a, S: Sink<'a>> Walker<'a, S> {
    pub(crate) fn new(
        frame: &'a [u8],
        bounds: &Bounds,
        rules: Rules,
        sink: impl FnOnce(&'a str) -> S,
    ) -> Result<Self, WireError> {
        let text = std::str::from_utf8(frame)
            .map_err(|e| WireError::new(K::NotUtf8, e.valid_up_to(), "the frame is not utf-8"))?;
        Ok(Self {
            text,
            bytes: frame,
            pos: 0,
            bounds: *bounds,
            rules,
            level: Level {
                object: false,
                zone: Zone::Outside,
                below: Zone::Message,
                names_from: 0,
                key: S::Name::default(),
                key_leaf: None,
                inside: None,
                start: 0,
                mark: 0,
            },
            around: SmallVec::new(),
            names: SmallVec::new(),
            out: Notes::default(),
            sink: sink(text),
            own: OwnMembers::default(),
        })
    }

    /// Walks the whole frame.
    pub(crate) fn run(mut self) -> Result<Walked<'a, S>, WireError> {
        self.blank();
        if self.peek() == Some(b'[') {
            self.out.batch = Some(Vec::new());
        }
        self.value()?;
        while !self.around.is_empty() {
            let object = self.level.object;
            self.blank();
            match (self.peek(), object) {
                (Some(b','), _) => {
                    self.sign();
                    if object {
                        self.name()?;
                    }
                    self.value()?;
                }
                (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                _ => return Err(self.syntax("expected a comma or the end of an array or object")),
            }
        }
        self.blank();
        if self.pos < self.bytes.len() {
            return Err(self.syntax("there is more text after the message"));
        }
        Ok(Walked {
            notes: self.out,
            sink: self.sink,
            own: self.own,
        })
    }

    /// Reads a value, or opens containers until a scalar or an empty container has been read.
    fn value(&mut self) -> Result<(), WireError> {
        loop {
            let mark = self.sink.mark(self.pos);
            match self.peek() {
                Some(b'{') => {
                    self.open(true, mark)?;
                    if self.peek() == Some(b'}') {
                        return self.close();
                    }
                    self.name()?;
                }
                Some(b'[') => {
                    self.open(false, mark)?;
                    if self.peek() == Some(b']') {
                        return self.close();
                    }
                }
                Some(b'"') => {
                    let (_, part) = self.string()?;
                    if self.level.zone == Zone::Arguments {
                        self.leaf(part, None)?;
                    }
                    return self.done(mark);
                }
                Some(b'-' | b'0'..=b'9') => {
                    let end = tokens::number(self.bytes, self.pos).map_err(syntax)?;
                    return self.scalar(end, mark);
                }
                Some(b't') => return self.word("true", mark),
                Some(b'f') => return self.word("false", mark),
                Some(b'n') => return self.word("null", mark),
                Some(_) => return Err(self.syntax("expected a value")),
                None => return Err(self.syntax("the frame ends in the middle of a value")),
            }
        }
    }

    fn open(&mut self, object: bool, mark: usize) -> Result<(), WireError> {
        if self.around.len() >= self.bounds.depth_max {
            let message = "the frame nests too deeply";
            return Err(WireError::new(K::TooDeep, self.pos, message));
        }
        let parent = &self.level;
        let zone = parent.below;
        let mut level = Level {
            object,
            zone,
            below: match (zone, object) {
                (Zone::Message, false) => Zone::Element,
                _ => zone.within(),
            },
            names_from: self.names.len(),
            key: S::Name::default(),
            key_leaf: None,
            inside: None,
            start: self.pos,
            mark,
        };
        if !(zone == Zone::Arguments && parent.zone == Zone::Params) {
            level.key = parent.key.clone();
            (level.key_leaf, level.inside) = (parent.key_leaf, parent.inside);
        }
        if object && level.zone == Zone::Arguments {
            level.inside = u32::try_from(self.out.objects.len()).ok();
            let name = level.key_leaf;
            if self.out.objects.len() >= self.bounds.members_max {
                let message = "the arguments have too many objects";
                return Err(WireError::new(K::TooMany, self.pos, message));
            }
            self.out.objects.push(NotedObject { name });
        }
        self.around.push(std::mem::replace(&mut self.level, level));
        self.sign();
        Ok(())
    }

    fn close(&mut self) -> Result<(), WireError> {
        self.pos += 1;
        let Some(around) = self.around.pop() else {
            return Ok(());
        };
        let level = std::mem::replace(&mut self.level, around);
        if level.object {
            let names = self.names.get_mut(level.names_from..).unwrap_or_default();
            if !is_unique(names) {
                let message = "an object has the same member name twice";
                return Err(WireError::new(K::DuplicateKey, level.start, message));
            }
            self.names.truncate(level.names_from);
        }
        self.done(level.mark)
    }

    /// A value has ended at `pos`: note it where its place is one of those kept.
    fn done(&mut self, mark: usize) -> Result<(), WireError> {
        let parent = &self.level;
        let part = || self.sink.part(mark, self.pos);
        match (parent.zone, parent.object) {
            (Zone::Message, true) => self.out.members.push((parent.key.clone(), part())),
            (Zone::Params, true) => self.out.params.push((parent.key.clone(), part())),
            (Zone::Reply, true) => self.out.reply.push((parent.key.clone(), part())),
            (Zone::Message, false) => {
                let batch = self.out.batch.get_or_insert_default();
                if batch.len() >= self.bounds.members_max {
                    let message = "the batch has too many messages";
                    return Err(WireError::new(K::TooMany, self.pos, message));
                }
                batch.push(part());
            }
            _ => {}
        }
        Ok(())
    }

    fn name(&mut self) -> Result<(), WireError> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a member name"));
        }
        let at = self.pos;
        let (string, part) = self.string()?;
        let name = if string.is_escaped {
            let message = "a member name has a malformed escape";
            text::unescape(string.inner).ok_or_else(|| WireError::new(K::Syntax, at, message))?
        } else {
            Cow::Borrowed(string.inner)
        };
        let zone = self.level.zone;
        let own = zone.own(&name);
        if self.rules == Rules::Canonical && zone == Zone::Message {
            self.own_member(own, &name, at)?;
        }
        let noted = match zone {
            Zone::Message | Zone::Params | Zone::Arguments | Zone::Reply => {
                self.sink.name(&string, &name, &part)
            }
            // However many there are, they are not kept.
            Zone::Outside | Zone::Element | Zone::Inside | Zone::Other => S::Name::default(),
        };
        let key_leaf = match zone {
            Zone::Arguments => self.leaf(part, Some(noted.clone()))?,
            _ => None,
        };
        self.level.below = zone.below(own, &name);
        self.level.key = noted;
        self.level.key_leaf = key_leaf;
        let is_unique = match self.rules {
            Rules::Request => true,
            Rules::Reply => zone == Zone::Message,
            Rules::Canonical => zone != Zone::Inside,
        };
        if is_unique {
            if self.names.len() >= self.bounds.members_max {
                let message = "the frame has too many members";
                return Err(WireError::new(K::TooMany, at, message));
            }
            self.names.push(name);
        }
        self.blank();
        if self.peek() != Some(b':') {
            return Err(self.syntax("expected a colon after a member name"));
        }
        self.sign();
        Ok(())
    }

    /// Notes which member of the message it is whose name stands at `at`.
    fn own_member(&mut self, own: Option<Own>, name: &str, at: usize) -> Result<(), WireError> {
        if let Some(own) = own {
            if let Some(place) = self.own.at.get_mut(own as usize) {
                *place = Some(self.out.members.len());
            }
            return Ok(());
        }
        if let Some(known) = fold::mistaken_for(name, super::MEMBERS) {
            return Err(WireError::ambiguous_member(at, name, known));
        }
        self.own.has_unknown = true;
        Ok(())
    }

    /// Notes a string, which stands below `arguments`; `name` where it is a member's. Gives its index.
    fn leaf(&mut self, value: S::Part, name: Option<S::Name>) -> Result<Option<u32>, WireError> {
        if self.out.leaves.len() >= self.bounds.members_max {
            let message = "the arguments have too many strings";
            return Err(WireError::new(K::TooMany, self.pos, message));
        }
        let is_name = name.is_some();
        // Around `arguments` are the message and its params.
        let arguments = self.around.get(ARGUMENTS_DEPTH).unwrap_or(&self.level);
        self.out.leaves.push(NotedLeaf {
            key: if is_name {
                S::Name::default()
            } else {
                self.level.key.clone()
            },
            value,
            is_name,
            top: arguments.key.clone(),
            object: self.level.inside,
        });
        Ok(u32::try_from(self.out.leaves.len() - 1).ok())
    }

    /// Reads a string and hands it on; checks escapes and control characters.
    #[inline]
    fn string(&mut self) -> Result<(JsonString<'a>, S::Part), WireError> {
        let open = self.pos;
        let Some(plain) = tokens::plain(self.text, open) else {
            return self.uneven_string();
        };
        self.pos = open + plain.len() + 2;
        let part = self.sink.plain(plain, open, self.pos);
        Ok((JsonString::plain(plain), part))
    }

    fn uneven_string(&mut self) -> Result<(JsonString<'a>, S::Part), WireError> {
        let open = self.pos;
        let (string, end) = tokens::string(self.text, open).map_err(syntax)?;
        self.pos = end;
        let message = "a string has a malformed escape or a lone surrogate";
        let part = self.sink.string(&string, open, end);
        let part = part.ok_or_else(|| WireError::new(K::Syntax, open, message))?;
        Ok((string, part))
    }

    fn scalar(&mut self, end: usize, mark: usize) -> Result<(), WireError> {
        self.pos = end;
        self.done(mark)
    }

    fn word(&mut self, word: &str, mark: usize) -> Result<(), WireError> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.syntax("expected true, false or null"));
        }
        self.scalar(self.pos + word.len(), mark)
    }

    /// Steps over a sign and the white space behind it.
    fn sign(&mut self) {
        self.pos += 1;
        self.blank();
    }

    #[inline]
    fn blank(&mut self) {
        if self.peek().is_some_and(|byte| byte <= b' ') {
            self.blanks();
        }
    }

    #[cold]
    fn blanks(&mut self) {
        let from = self.pos;
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
        if self.pos > from {
            self.sink.blank(from, self.pos);
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn syntax(&self, message: &'static str) -> WireError {
        syntax((self.pos, message))
    }
}

fn syntax((at, message): Fault) -> WireError {
    WireError::new(K::Syntax, at, message)
}
