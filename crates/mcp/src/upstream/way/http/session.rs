//! One session with a server: what has to be said with every message of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gate::{Gate, PeerId};
use net::outbound::http::{
    HeaderMap, HeaderName, HeaderValue, HttpFault, Lane, Method, Reply, header,
};
use tokio::sync::watch;
use wire::Era;

use super::outline::Outline;
use super::tools::Tools;
use super::{ASIDE_MS_MAX, Exchange, HttpUpstream, RECONNECT_MS_MAX};
use crate::message::announced::Announced;
use crate::upstream::Frame;
use crate::upstream::kept::Heard;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Longest session id that is taken, in bytes.
const SESSION_ID_BYTES_MAX: usize = 1_024;

/// One session with a server. Legacy: the one that `initialize` opened. Modern has none; there it
/// stands for what belongs to one caller.
#[derive(Debug)]
pub struct HttpSession {
    id: PeerId,
    pub(super) upstream: Arc<HttpUpstream>,
    pub(super) gate: Arc<Gate>,
    state: Mutex<State>,
    /// Counts how often the server has opened the session.
    opened: watch::Sender<u64>,
    /// While the server may not have been told that its client is ready: messages that overtook that
    /// one would be refused.
    held_back: watch::Sender<bool>,
    /// Held by whoever opens the session again.
    pub(super) renewing: tokio::sync::Mutex<()>,
    /// How long the head of a call's reply may take, in milliseconds.
    pub(super) call_ms_max: u64,
    /// How long a server that cannot be connected to is tried again, in milliseconds.
    pub(super) reconnect_ms_max: u64,
}

#[derive(Debug, Default)]
struct State {
    era: Option<Era>,
    session_id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    initialize: Option<Bytes>,
    initialized: Option<Bytes>,
    /// How often the session had been opened when the stream was that is open now.
    heard_in: Option<u64>,
    /// How many such streams there were.
    streams: u64,
    /// What the server announces since it opened the session again.
    announced_again: Option<Announced>,
}

impl HttpSession {
    /// A session with the server `id`, of which nothing is known yet. `gate` gives the passes for
    /// opening it again.
    #[must_use]
    pub fn new(id: PeerId, upstream: Arc<HttpUpstream>, gate: Arc<Gate>) -> Self {
        Self {
            id,
            call_ms_max: upstream.call_ms_max,
            reconnect_ms_max: RECONNECT_MS_MAX,
            upstream,
            gate,
            state: Mutex::default(),
            opened: watch::Sender::new(0),
            held_back: watch::Sender::new(false),
            renewing: tokio::sync::Mutex::new(()),
        }
    }

    /// The name that passes for its server are made out to.
    #[must_use]
    pub fn id(&self) -> &PeerId {
        &self.id
    }

    /// Sends what a pass held; what comes back is read from the exchange, and nothing happens while
    /// nobody reads.
    pub(super) fn carry(self: &Arc<Self>, frame: Frame) -> Exchange {
        self.carry_with(frame, None, None)
    }

    /// [`Session::carry`] with headers of the client: `mirrored` repeat arguments (Modern; where they are not given they are
    /// found out), `trace` name its run.
    pub(super) fn carry_with(
        self: &Arc<Self>,
        frame: Frame,
        mirrored: Option<HeaderMap>,
        trace: Option<Box<HeaderMap>>,
    ) -> Exchange {
        let mut outline = Outline::of(&frame.bytes);
        outline.mirrored = mirrored;
        outline.trace = trace;
        self.outlined(outline, frame)
    }

    /// Sends the call of a tool of which the gate's side has read what the transport has to know.
    pub(super) fn carry_call(
        self: &Arc<Self>,
        frame: Frame,
        (number, tool): (&str, &str),
        trace: Option<Box<HeaderMap>>,
    ) -> Exchange {
        let mut outline = Outline::of_call(number, tool);
        outline.trace = trace;
        self.outlined(outline, frame)
    }

    /// While requests are held back, exchanges that begin wait until they no longer are.
    pub(super) fn hold_back(&self, held: bool) {
        self.held_back.send_replace(held);
    }

    /// Tells when requests are no longer held back; none where they are not.
    pub(super) fn held_back(&self) -> Option<watch::Receiver<bool>> {
        let held = *self.held_back.borrow();
        held.then(|| self.held_back.subscribe())
    }

    pub(super) fn outlined(self: &Arc<Self>, outline: Outline, frame: Frame) -> Exchange {
        let body = Bytes::from(frame.bytes);
        {
            let mut state = self.state();
            match outline.method.as_ref() {
                "initialize" => {
                    state.era = Some(Era::Legacy);
                    state.initialize = Some(body.clone());
                }
                "notifications/initialized" => state.initialized = Some(body.clone()),
                _ => {}
            }
            if let Some(version) = &outline.version {
                state.era = Some(Era::Modern);
                state.version = HeaderValue::from_str(version).ok();
            }
        }
        Exchange::new(Arc::clone(self), outline, body)
    }

    /// The era that the client speaks, once that is known.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.state().era
    }

    /// Whether the server knows us by a session.
    pub(super) fn has_session(&self) -> bool {
        self.state().session_id.is_some()
    }

    /// How often the server has opened the session.
    #[must_use]
    pub fn generation(&self) -> u64 {
        *self.opened.borrow()
    }

    /// The stream of what belongs to no call is open, in the session opened so many times; or it no longer is.
    pub(super) fn listens(&self, in_session: Option<u64>) {
        let mut state = self.state();
        state.heard_in = in_session;
        state.streams += 1;
    }

    /// Since when that stream has been open without a gap; none where it is not, or is that of a session before.
    pub(super) fn heard(&self) -> Option<Heard> {
        let opened = self.generation();
        let state = self.state();
        state.heard_in.filter(|heard_in| *heard_in == opened)?;
        Some((opened, state.streams))
    }

    /// The server has opened the session again, with this answer.
    pub(super) fn announces(&self, announced: Announced) {
        self.state().announced_again = Some(announced);
    }

    /// What the server announces since it opened the session again.
    pub(super) fn announced_again(&self) -> Option<Announced> {
        self.state().announced_again
    }

    /// Tells when the server opens the session again.
    pub(super) fn openings(&self) -> watch::Receiver<u64> {
        self.opened.subscribe()
    }

    /// The client's own opening messages.
    pub(super) fn opening_frames(&self) -> (Option<Bytes>, Option<Bytes>) {
        let state = self.state();
        (state.initialize.clone(), state.initialized.clone())
    }

    /// The answer to `initialize` has settled on a revision.
    pub(super) fn has_version(&self, version: &str) {
        self.state().version = HeaderValue::from_str(version).ok();
    }

    /// The server has opened the session. Whoever waits for that hears of it by [`Self::has_opened`].
    pub(super) fn is_open(&self, session_id: Option<HeaderValue>, version: Option<&str>) {
        let mut state = self.state();
        state.session_id = session_id;
        if let Some(version) = version.and_then(|v| HeaderValue::from_str(v).ok()) {
            state.version = Some(version);
        }
    }

    /// The session can be used: what is sent from now on overtakes nothing.
    pub(super) fn has_opened(&self) {
        self.opened.send_modify(|count| *count += 1);
    }

    pub(super) async fn post(&self, outline: &Outline, body: &Bytes) -> Result<Reply, HttpFault> {
        let (lane, head_ms_max) = match (outline.is_request(), outline.method.as_ref()) {
            // It lasts as long as its client stays, and no call is to wait for that.
            (true, "subscriptions/listen") => (Lane::Own, self.call_ms_max),
            (true, _) => (Lane::Call, self.call_ms_max),
            (false, _) => (Lane::Aside, ASIDE_MS_MAX),
        };
        let client = &self.upstream.client;
        let mut outgoing = client.outgoing(Method::POST, lane, head_ms_max);
        let headers = &mut outgoing.headers;
        if outline.method != "initialize" {
            self.name_session(headers);
        }
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if let Some(version) = &outline.version {
            if let Ok(version) = HeaderValue::from_str(version) {
                headers.insert(PROTOCOL_VERSION, version);
            }
            self.mirror(outline, headers);
        }
        if let Some(trace) = &outline.trace {
            headers.extend(
                trace
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        outgoing.body = body.clone();
        client.send(outgoing).await
    }

    /// Asks for a stream of messages, from after an event if one is given.
    pub(super) async fn get(&self, last_event_id: Option<&str>) -> Result<Reply, HttpFault> {
        let client = &self.upstream.client;
        let mut outgoing = client.outgoing(Method::GET, Lane::Own, ASIDE_MS_MAX);
        let headers = &mut outgoing.headers;
        self.name_session(headers);
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        );
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        client.send(outgoing).await
    }

    /// Ends the session at the server, where there is one.
    pub async fn close(&self) {
        /// How long the server may take to end a session, in milliseconds.
        const CLOSE_MS_MAX: u64 = 2_000;
        if !self.has_session() {
            return;
        }
        let client = &self.upstream.client;
        let mut outgoing = client.outgoing(Method::DELETE, Lane::Own, CLOSE_MS_MAX);
        self.name_session(&mut outgoing.headers);
        // Servers may refuse to end sessions on demand; then they end by themselves.
        drop(client.send(outgoing).await);
    }

    /// What every message of the session carries but its first.
    fn name_session(&self, headers: &mut HeaderMap) {
        let state = self.state();
        if let Some(id) = &state.session_id
            && state.era != Some(Era::Modern)
        {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(version) = &state.version {
            headers.insert(PROTOCOL_VERSION, version.clone());
        }
    }

    /// Headers that repeat what the body says (2026-07-28).
    fn mirror(&self, outline: &Outline, headers: &mut HeaderMap) {
        let value = |text: &str| HeaderValue::from_str(&wire::header::encode(text)).ok();
        if let Some(method) = value(&outline.method) {
            headers.insert(MCP_METHOD, method);
        }
        if let Some(name) = outline.name.as_deref().and_then(value) {
            headers.insert(MCP_NAME, name);
        }
        if let Some(mirrored) = &outline.mirrored {
            for (name, value) in mirrored {
                headers.append(name, value.clone());
            }
        } else if let (Some(tool), Some(arguments)) = (&outline.name, &outline.arguments) {
            for (name, text) in self.tools().mirrored(tool, arguments) {
                if let (Ok(name), Some(value)) = (HeaderName::try_from(name.as_str()), value(&text))
                {
                    headers.insert(name, value);
                }
            }
        }
    }

    pub(super) fn tools(&self) -> MutexGuard<'_, Tools> {
        self.upstream
            .tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session id that a reply gives. `Err` where it may not stand in a header of ours.
pub(super) fn session_id_of(reply: &Reply) -> Result<Option<HeaderValue>, ()> {
    let id = reply.header(&SESSION_ID).map_err(|_| ())?;
    let Some(id) = id else {
        return Ok(None);
    };
    let fits = !id.is_empty()
        && id.len() <= SESSION_ID_BYTES_MAX
        && id.bytes().all(|b| (0x21..=0x7e).contains(&b));
    if !fits {
        return Err(());
    }
    let mut value = HeaderValue::from_str(id).map_err(|_| ())?;
    // Whoever knows it can speak in the session's name.
    value.set_sensitive(true);
    Ok(Some(value))
}
