//! A stream on its way to a caller: the texts of its events are looked at across their borders.
//!
//! An event is held back until all text in it is settled ([`gate::inspect::Pieces`]); events go on in the order in
//! which they came. How much is held back has a bound: beyond it the stream ends.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use dialects::Endpoint;
use gate::facts::Facts;
use gate::inspect::{About, Finding, Inspection, Pieces, Way};
use gate::{Gate, InFlight};
use serde_json::Value;
use wire::SseParser;
use wire::sse::push_named_event;

use super::leaves::{self, Ended};
use crate::provider::Trouble;

/// Most bytes of events that are held back: enough for a match as long as a key file, and for texts that
/// are streamed beside each other.
const EVENTS_BYTES_MAX: usize = 1024 * 1024;
/// The same where checkers look at the whole stream.
const CHECKED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most texts of one stream.
const LANES_MAX: usize = 1_024;

/// An event that is held back.
#[derive(Debug)]
struct Event {
    name: Vec<u8>,
    data: Vec<u8>,
    /// What its data says, where it is a JSON value with parts of texts or something that was masked.
    value: Option<Value>,
    is_changed: bool,
    /// The parts of texts in it: the lane, the place in that text, and where it stands in the value.
    parts: Vec<(String, Range<usize>, String)>,
}

/// Whose stream it is.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    pub caller: String,
    pub method: String,
    pub model: String,
}

impl Whose {
    /// Of the call that is under way.
    pub fn of(flight: &InFlight) -> Self {
        let facts = flight.about().map(|(facts, _)| facts);
        let of =
            |text: fn(&Facts) -> Option<&str>| facts.and_then(text).unwrap_or_default().to_owned();
        Self {
            caller: of(|facts| Some(&facts.subject_id)),
            method: of(|facts| Some(&facts.method)),
            model: of(|facts| facts.tool_name.known().map(String::as_str)),
        }
    }
}

/// What checkers have said about a stream.
pub(crate) type Answers = (Inspection, Option<Finding>);

/// What is looked for in one stream, and what of it is held back.
pub(crate) struct Held {
    inspection: Arc<Inspection>,
    provider: String,
    /// Whom checkers still have to be asked for: then nothing goes on before the stream has ended.
    asker: Option<Whose>,
    endpoint: Endpoint,
    parser: SseParser,
    lanes: BTreeMap<String, Pieces>,
    events: VecDeque<Event>,
    bytes: usize,
    finding: Option<Finding>,
}

impl Held {
    /// What is looked for in a reply of this provider; none where that is nothing.
    pub fn of(
        gate: &Gate,
        provider: &str,
        (endpoint, event_bytes_max): (Endpoint, usize),
        whose: Whose,
    ) -> Option<Self> {
        let inspection = gate.inspection()?;
        let asks = inspection.asks(Way::Result, provider);
        inspection.looks_at(Way::Result, provider).then(|| Self {
            asker: asks.then_some(whose),
            inspection,
            provider: provider.to_owned(),
            endpoint,
            // What a translation writes of an event may be a little longer than that was.
            parser: SseParser::new(event_bytes_max.saturating_mul(2)),
            lanes: BTreeMap::new(),
            events: VecDeque::new(),
            bytes: 0,
            finding: None,
        })
    }

    /// A sentence that the provider has said outside of its events, as the rules leave it; none where they do not let
    /// it pass.
    pub fn sentence(&mut self, text: &str) -> Option<String> {
        // No checker has seen it.
        if self.inspection.asks(Way::Result, &self.provider) {
            return None;
        }
        super::sentence(&self.inspection, &self.provider, text, &mut self.finding)
    }

    /// Whether anything is held back.
    pub fn is_waiting(&self) -> bool {
        !self.events.is_empty()
    }

    /// What was found so far.
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Takes events as they would go to the caller, and makes ready what goes.
    ///
    /// # Errors
    /// The stream may not go on.
    pub fn pass(&mut self, events: &[u8], ready: &mut Vec<u8>) -> Result<(), Trouble> {
        self.parser.push(events);
        loop {
            let event = match self.parser.next() {
                Ok(Some(event)) => (event.name.to_vec(), event.data.to_vec()),
                Ok(None) => break,
                Err(_) => return Err(Trouble::TooLong),
            };
            self.take(event.0, event.1)?;
        }
        self.release(ready)
    }

    /// What the checkers say of the whole stream, where they have to be asked before anything of it goes on.
    pub fn check(&self) -> Option<impl Future<Output = Answers> + Send + use<>> {
        let whose = self.asker.clone()?;
        let texts = self.lanes.values().map(|lane| Value::from(lane.whole()));
        let others = self.events.iter().filter(|event| event.parts.is_empty());
        let others = others.filter_map(|event| event.value.clone());
        let content = Value::Array(texts.chain(others).collect()).to_string();
        let (inspection, provider) = (Arc::clone(&self.inspection), self.provider.clone());
        Some(async move {
            let about = About {
                way: Way::Result,
                server: &provider,
                caller: &whose.caller,
                method: &whose.method,
                name: Some(&whose.model),
            };
            inspection.with_answers(about, &content).await
        })
    }

    /// Takes what the checkers have said.
    ///
    /// # Errors
    /// What they want masked cannot be.
    pub fn checked(&mut self, (inspection, found): Answers) -> Result<(), Trouble> {
        self.asker = None;
        if let Some(found) = found {
            self.finding.get_or_insert_default().join(&found);
        }
        let of_checkers = inspection.only_texts();
        self.inspection = Arc::new(inspection);
        let mut events = std::mem::take(&mut self.events);
        for event in &mut events {
            if let Some(value) = &mut event.value {
                event.is_changed |= self.look_at_rest(&of_checkers, value)?;
            }
        }
        self.events = events;
        Ok(())
    }

    /// Nothing more comes: what is held back goes.
    ///
    /// # Errors
    /// It may not go.
    pub fn end(&mut self, ready: &mut Vec<u8>) -> Result<(), Trouble> {
        self.settle(&Ended::All);
        self.release(ready)
    }

    fn take(&mut self, name: Vec<u8>, data: Vec<u8>) -> Result<(), Trouble> {
        self.bytes = self.bytes.saturating_add(name.len() + data.len());
        let text = std::str::from_utf8(&data).map_err(|_| Trouble::Malformed)?;
        // The name of an event cannot be masked: it says what the event is.
        let named = std::str::from_utf8(&name).map_err(|_| Trouble::Malformed)?;
        let found = self.inspection.text(Way::Result, &self.provider, named).1;
        if found.is_some() {
            self.finding = found;
            return Err(Trouble::Withheld);
        }
        let mut event = Event {
            value: serde_json::from_str(text).ok().filter(Value::is_object),
            is_changed: false,
            parts: Vec::new(),
            name,
            data: Vec::new(),
        };
        match &mut event.value {
            Some(value) => {
                let ended = leaves::ended(self.endpoint, value);
                for leaf in leaves::of(self.endpoint, value) {
                    if let Some(part) = value.pointer_mut(&leaf.at) {
                        *part = Value::String(String::new());
                    }
                    if self.lanes.len() >= LANES_MAX && !self.lanes.contains_key(&leaf.lane) {
                        return Err(Trouble::Withheld);
                    }
                    let lane = self.lanes.entry(leaf.lane.clone()).or_default();
                    event
                        .parts
                        .push((leaf.lane, lane.push(&leaf.text), leaf.at));
                }
                let inspection = Arc::clone(&self.inspection);
                event.is_changed = self.look_at_rest(&inspection, value)?;
                let settled = event.parts.iter().filter(|_| self.asker.is_none());
                for (lane, ..) in settled {
                    let end = self.lanes.get_mut(lane);
                    let from = (Way::Result, self.provider.as_str());
                    if let Some(lane) = end {
                        lane.settle(&self.inspection, from, false, &mut self.finding);
                    }
                }
                self.settle(&ended);
            }
            // The end mark of a dialect, or nothing that a caller could read.
            None => self.settle(&Ended::All),
        }
        event.data = data;
        self.events.push_back(event);
        Ok(())
    }

    /// Looks at an event without its parts of texts; whether something was masked.
    fn look_at_rest(
        &mut self,
        inspection: &Inspection,
        value: &mut Value,
    ) -> Result<bool, Trouble> {
        let rest = value.to_string();
        let (masked, found) = inspection.value(Way::Result, &self.provider, &rest, &[]);
        let Some(found) = found else {
            return Ok(false);
        };
        let is_masked = found.masked() > 0;
        match &mut self.finding {
            Some(finding) => finding.join(&found),
            None => self.finding = Some(found),
        }
        if is_masked {
            *value = serde_json::from_str(&masked).map_err(|_| Trouble::Withheld)?;
        }
        Ok(is_masked)
    }

    /// Settles the texts that have ended.
    fn settle(&mut self, ended: &Ended) {
        if self.asker.is_some() {
            return;
        }
        for (name, lane) in &mut self.lanes {
            let is_last = match ended {
                Ended::None => false,
                Ended::Groups(groups) => groups.iter().any(|group| name.starts_with(group)),
                Ended::All => true,
            };
            if is_last && lane.held() > 0 {
                let from = (Way::Result, self.provider.as_str());
                lane.settle(&self.inspection, from, true, &mut self.finding);
            }
        }
    }

    /// Makes ready the events whose texts are settled.
    fn release(&mut self, ready: &mut Vec<u8>) -> Result<(), Trouble> {
        let denies = |found: &Finding| found.denied_by().or(found.asked_by()).is_some();
        if self.finding.as_ref().is_some_and(denies) {
            return Err(Trouble::Withheld);
        }
        let bytes_max = match self.asker {
            Some(_) => CHECKED_BYTES_MAX,
            None => EVENTS_BYTES_MAX,
        };
        while let Some(event) = self.events.front().filter(|_| self.asker.is_none()) {
            let settled = |(lane, place, _): &(String, Range<usize>, String)| {
                let lane = self.lanes.get(lane);
                lane.is_none_or(|lane| place.end <= lane.settled())
            };
            if !event.parts.iter().all(settled) {
                break;
            }
            if let Some(event) = self.events.pop_front() {
                self.write(event, ready);
            }
        }
        if self.bytes > bytes_max {
            return Err(Trouble::Withheld);
        }
        Ok(())
    }

    fn write(&mut self, mut event: Event, ready: &mut Vec<u8>) {
        let size = event.name.len() + event.data.len();
        self.bytes = self.bytes.saturating_sub(size);
        let original: Option<Value> = serde_json::from_slice(&event.data).ok();
        if let (Some(value), Some(original)) = (&mut event.value, original) {
            for (lane, place, at) in &event.parts {
                let lane = self.lanes.get_mut(lane);
                let text = lane.map(|lane| lane.take(place)).unwrap_or_default();
                event.is_changed |= original.pointer(at).and_then(Value::as_str) != Some(&text);
                if let Some(part) = value.pointer_mut(at) {
                    *part = Value::String(text);
                }
            }
            if event.is_changed {
                leaves::drop_tokens(value);
                event.data = value.to_string().into_bytes();
            }
        }
        push_named_event(ready, &event.name, &event.data);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({} events)", self.events.len())
    }
}
