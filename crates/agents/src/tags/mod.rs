//! Reader of ReAct tags: one for the loop and for the stream.
//!
//! Text may be split at any byte. A reader holds at most a tag of [`TAG_BYTES_MAX`] and the body of one action of
//! [`ACTION_BYTES_MAX`]; everything else is passed on as soon as it cannot be part of a tag. Each byte is read once.
//!
//! Grammar: `THOUGHT`, `think`, `thinking`, `DRAFT`, `ACTION`, `FINAL_ANSWER` and `OBSERVATION`, in any case, with
//! attributes. Inside an element only its own closing tag counts, so markup that a thought or an answer quotes is
//! text. In an action, a closing tag inside a JSON string is part of the string. The first action or answer ends a
//! reply; what follows is dropped, and so is an observation that the model wrote.

mod body;
mod utf8;

use body::BodyScanner;
use utf8::Utf8Joiner;

/// Most bytes of one action's body.
pub const ACTION_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of a tag's attributes.
pub const ATTRIBUTE_BYTES_MAX: usize = 256;
/// Most bytes of a tag: brackets, slash, longest name, attributes.
pub const TAG_BYTES_MAX: usize = 3 + NAME_BYTES_MAX + ATTRIBUTE_BYTES_MAX;

const NAME_BYTES_MAX: usize = 12;

/// Name of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagName {
    Thought,
    Think,
    Thinking,
    Draft,
    Action,
    FinalAnswer,
    Observation,
}

const NAMES: [(&str, TagName); 7] = [
    ("THOUGHT", TagName::Thought),
    ("THINK", TagName::Think),
    ("THINKING", TagName::Thinking),
    ("DRAFT", TagName::Draft),
    ("ACTION", TagName::Action),
    ("FINAL_ANSWER", TagName::FinalAnswer),
    ("OBSERVATION", TagName::Observation),
];

impl TagName {
    fn parse(name: &str) -> Option<Self> {
        let found = NAMES
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(name));
        found.map(|(_, tag)| *tag)
    }

    fn is_prefix(text: &str) -> bool {
        NAMES.iter().any(|(word, _)| {
            word.get(..text.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(text))
        })
    }
}

/// A part of a reply, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagEvent {
    /// Begin of a thought, with its `title`.
    ThoughtBegin(Option<String>),
    /// Text of a thought, or text outside of all elements.
    Thought(String),
    /// Text of a draft.
    Draft(String),
    /// Text of the answer.
    Answer(String),
    /// The answer is complete.
    AnswerEnd,
    /// Body of the one action, as the model wrote it.
    Action(ActionBody),
    /// Something was left out: an observation of the model, or text after the action or the answer.
    Dropped,
}

/// Body of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionBody {
    /// Text up to the closing tag.
    Closed(String),
    /// Text up to the end of the reply.
    Unclosed(String),
    /// More than [`ACTION_BYTES_MAX`].
    TooLong,
}

/// Zone of the next text.
#[derive(Debug)]
enum Zone {
    Outside,
    Thought {
        tag: TagName,
        depth: u32,
    },
    Draft,
    Answer,
    Action(BodyScanner),
    Observation,
    /// After the action or the answer.
    End,
}

/// Incremental reader of one reply.
#[derive(Debug)]
pub struct TagReader {
    zone: Zone,
    /// Bytes that may be a tag, from its `<`.
    held: String,
    /// Quote that is open inside of `held`.
    quote: Option<char>,
    has_dropped: bool,
    joiner: Utf8Joiner,
}

impl Default for TagReader {
    fn default() -> Self {
        Self::new()
    }
}

impl TagReader {
    /// Creates a reader at the begin of a reply.
    #[must_use]
    pub fn new() -> Self {
        Self {
            zone: Zone::Outside,
            held: String::new(),
            quote: None,
            has_dropped: false,
            joiner: Utf8Joiner::default(),
        }
    }

    /// Returns whether the rest of the reply cannot matter, so that its stream can be cut.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.zone, Zone::End)
    }

    /// Returns how many bytes the reader holds back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let body = match &self.zone {
            Zone::Action(body) => body.len(),
            _ => 0,
        };
        self.held.len() + body
    }

    /// Reads further bytes of the reply and appends what they are.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<TagEvent>) {
        let text = self.joiner.join(bytes);
        self.read(&text, events);
    }

    /// Reads the end of the reply.
    pub fn finish(&mut self, events: &mut Vec<TagEvent>) {
        let rest = self.joiner.finish();
        self.read(rest, events);
        let held = std::mem::take(&mut self.held);
        self.quote = None;
        self.pass(&held, events);
        if let Zone::Action(body) = std::mem::replace(&mut self.zone, Zone::End) {
            events.push(TagEvent::Action(body.into_unclosed()));
        }
    }

    fn read(&mut self, text: &str, events: &mut Vec<TagEvent>) {
        let mut run = 0;
        for (at, c) in text.char_indices() {
            if !self.held.is_empty() {
                if self.extend_held(c, events) {
                    run = at + c.len_utf8();
                    continue;
                }
                // Not a tag: it is text, and `c` is read as if it came first.
                run = at;
            }
            if c == '<' && self.may_open_tag() {
                self.pass(text.get(run..at).unwrap_or_default(), events);
                self.held.push(c);
                run = at + 1;
            } else if let Zone::Action(body) = &mut self.zone {
                body.push(c);
                run = at + c.len_utf8();
            }
        }
        self.pass(text.get(run..).unwrap_or_default(), events);
    }

    /// Returns whether a `<` can begin a tag here.
    fn may_open_tag(&self) -> bool {
        match &self.zone {
            Zone::End => false,
            Zone::Action(body) => !body.in_string(),
            _ => true,
        }
    }

    /// Adds a character to what may be a tag. Returns false, with the held bytes passed on as text, if it is none.
    fn extend_held(&mut self, c: char, events: &mut Vec<TagEvent>) -> bool {
        match self.quote {
            Some(quote) if c == quote => self.quote = None,
            Some(_) => {}
            None if c == '>' => {
                self.held.push(c);
                let held = std::mem::take(&mut self.held);
                self.read_tag(&held, events);
                return true;
            }
            None => {
                if matches!(c, '"' | '\'') && self.held.contains(char::is_whitespace) {
                    self.quote = Some(c);
                }
            }
        }
        if c != '<' && self.held.len() + c.len_utf8() < TAG_BYTES_MAX && self.can_continue(c) {
            self.held.push(c);
            return true;
        }
        let held = std::mem::take(&mut self.held);
        self.quote = None;
        self.pass(&held, events);
        false
    }

    /// Returns whether the held text followed by `c` may still be a tag that counts here.
    fn can_continue(&self, c: char) -> bool {
        let inner = self.held.get(1..).unwrap_or_default();
        let (closing, name) = match inner.strip_prefix('/') {
            Some(name) => (true, name),
            None => (false, inner),
        };
        if let Some(end) = name.find(|c: char| c.is_whitespace() || c == '/') {
            let known = name.get(..end).and_then(TagName::parse);
            return known.is_some_and(|tag| self.counts(tag, closing))
                && (!closing || c.is_whitespace());
        }
        if c.is_whitespace() || (c == '/' && !name.is_empty()) {
            return TagName::parse(name).is_some_and(|tag| self.counts(tag, closing));
        }
        if c == '/' {
            return !closing;
        }
        let mut longer = name.to_owned();
        longer.push(c);
        TagName::is_prefix(&longer)
    }

    /// Returns whether a tag is markup in this zone, rather than quoted text.
    fn counts(&self, tag: TagName, closing: bool) -> bool {
        match &self.zone {
            Zone::Outside => true,
            Zone::Thought { tag: open, .. } => tag == *open,
            Zone::Draft => closing && tag == TagName::Draft,
            Zone::Answer => closing && tag == TagName::FinalAnswer,
            Zone::Action(_) => closing && tag == TagName::Action,
            Zone::Observation => closing && tag == TagName::Observation,
            Zone::End => false,
        }
    }

    /// Reads a whole bracket, `<` to `>`.
    fn read_tag(&mut self, held: &str, events: &mut Vec<TagEvent>) {
        let inner = held
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'))
            .unwrap_or_default();
        let (closing, rest) = match inner.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, inner),
        };
        let end = rest
            .find(|c: char| c.is_whitespace() || c == '/')
            .unwrap_or(rest.len());
        let (name, attributes) = rest.split_at_checked(end).unwrap_or((rest, ""));
        match TagName::parse(name) {
            Some(tag) if self.counts(tag, closing) => {
                if closing {
                    self.close(tag, events);
                } else {
                    self.open(tag, attributes, events);
                }
            }
            _ => self.pass(held, events),
        }
    }

    fn open(&mut self, tag: TagName, attributes: &str, events: &mut Vec<TagEvent>) {
        let is_empty = attributes.trim_end().ends_with('/');
        if let Zone::Thought { depth, .. } = &mut self.zone {
            *depth = depth.saturating_add(u32::from(!is_empty));
            return;
        }
        match tag {
            TagName::Thought | TagName::Think | TagName::Thinking => {
                events.push(TagEvent::ThoughtBegin(title_of(attributes)));
                self.zone = Zone::Thought { tag, depth: 0 };
            }
            TagName::Draft => self.zone = Zone::Draft,
            TagName::FinalAnswer => self.zone = Zone::Answer,
            TagName::Action => self.zone = Zone::Action(BodyScanner::default()),
            TagName::Observation => {
                self.drop_text(events);
                self.zone = Zone::Observation;
            }
        }
        if is_empty {
            self.close(tag, events);
        }
    }

    fn close(&mut self, tag: TagName, events: &mut Vec<TagEvent>) {
        if let Zone::Thought { depth, .. } = &mut self.zone
            && *depth > 0
        {
            *depth -= 1;
            return;
        }
        // A closing tag without its opening tag is dropped.
        self.zone = match std::mem::replace(&mut self.zone, Zone::Outside) {
            Zone::Action(body) => {
                events.push(TagEvent::Action(body.into_closed()));
                Zone::End
            }
            Zone::Answer => {
                events.push(TagEvent::AnswerEnd);
                Zone::End
            }
            _ if tag == TagName::Action => {
                self.drop_text(events);
                Zone::Outside
            }
            _ => Zone::Outside,
        };
    }

    /// Passes text on to its zone.
    fn pass(&mut self, text: &str, events: &mut Vec<TagEvent>) {
        if text.is_empty() {
            return;
        }
        match &mut self.zone {
            Zone::Outside | Zone::Thought { .. } => {
                append(events, text, TagEvent::Thought, |event| match event {
                    TagEvent::Thought(so_far) => Some(so_far),
                    _ => None,
                });
            }
            Zone::Draft => append(events, text, TagEvent::Draft, |event| match event {
                TagEvent::Draft(so_far) => Some(so_far),
                _ => None,
            }),
            Zone::Answer => append(events, text, TagEvent::Answer, |event| match event {
                TagEvent::Answer(so_far) => Some(so_far),
                _ => None,
            }),
            Zone::Action(body) => text.chars().for_each(|c| body.push(c)),
            Zone::Observation => {}
            Zone::End => {
                if !text.trim().is_empty() {
                    self.drop_text(events);
                }
            }
        }
    }

    fn drop_text(&mut self, events: &mut Vec<TagEvent>) {
        if !std::mem::replace(&mut self.has_dropped, true) {
            events.push(TagEvent::Dropped);
        }
    }
}

/// Appends to the last event if it has the same kind.
fn append(
    events: &mut Vec<TagEvent>,
    text: &str,
    event: fn(String) -> TagEvent,
    same: fn(&mut TagEvent) -> Option<&mut String>,
) {
    match events.last_mut().and_then(same) {
        Some(so_far) => so_far.push_str(text),
        None => events.push(event(text.to_owned())),
    }
}

/// Returns the quoted value of `title`.
fn title_of(attributes: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        let equals = rest.find('=')?;
        let name = rest.get(..equals)?.trim();
        let value = rest.get(equals + 1..)?.trim_start();
        let quote = value.chars().next()?;
        if !matches!(quote, '"' | '\'') {
            rest = value;
            continue;
        }
        let inner = value.get(1..)?;
        let end = inner.find(quote)?;
        if name.eq_ignore_ascii_case("title") {
            return Some(inner.get(..end)?.to_owned());
        }
        rest = inner.get(end + 1..)?;
    }
}

/// A whole reply, as its events say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagReply {
    /// Title of the first thought that has one.
    pub title: Option<String>,
    /// Text of thoughts and outside of elements.
    pub thought: String,
    /// Text of drafts.
    pub draft: String,
    /// Text of the answer.
    pub answer: Option<String>,
    /// The answer has its closing tag.
    pub is_answer_closed: bool,
    /// The one action.
    pub action: Option<ActionBody>,
    /// Something was left out.
    pub has_dropped: bool,
}

impl TagReply {
    /// Reads a whole reply.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut reader = TagReader::new();
        let mut events = Vec::new();
        reader.push(bytes, &mut events);
        reader.finish(&mut events);
        let mut reply = Self::default();
        for event in events {
            reply.add(event);
        }
        reply
    }

    /// Adds an event.
    pub fn add(&mut self, event: TagEvent) {
        match event {
            TagEvent::ThoughtBegin(title) => {
                if self.title.is_none() {
                    self.title = title;
                }
            }
            TagEvent::Thought(text) => self.thought.push_str(&text),
            TagEvent::Draft(text) => self.draft.push_str(&text),
            TagEvent::Answer(text) => self.answer.get_or_insert_with(String::new).push_str(&text),
            TagEvent::AnswerEnd => {
                self.answer.get_or_insert_with(String::new);
                self.is_answer_closed = true;
            }
            TagEvent::Action(body) => self.action = Some(body),
            TagEvent::Dropped => self.has_dropped = true,
        }
    }
}
