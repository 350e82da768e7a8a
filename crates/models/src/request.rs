//! A request to a model: what the gate judges and a provider sends.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use dialects::translate::{SignatureLookup, SignedThought};
use dialects::{
    Body, BodyFault, Endpoint, FormFault, MultipartForm, chooses_model, hides, is_form, leads_away,
    names_another,
};
use gate::approval::Shown;
use gate::inspect::Finding;
use gate::paths::reach::is_unseen;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use state::cache::CacheKey;

use crate::key::Key;
use crate::signatures::CallerSignatures;

/// Longest name of a model, in bytes.
pub const MODEL_BYTES_MAX: usize = 256;

/// Headers of a request that go on to the provider as they came.
const FORWARDED: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("openai-beta"),
];

/// Members by which a provider answers before it has done what it was asked for: OpenAI's and xAI's.
const LATER: [&str; 2] = ["background", "deferred"];

/// The header that names a request.
const ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request to a model.
#[derive(Debug)]
pub struct ModelRequest {
    endpoint: Endpoint,
    body: Body,
    /// The form that the body was read from, where it was one.
    form: Option<Box<MultipartForm>>,
    model: String,
    streams: bool,
    headers: HeaderMap,
    found: Option<Box<Finding>>,
    own_keys: Arc<[OwnKey]>,
    /// Key of its reply in the cache; `None` if the reply is not cached.
    cache_key: Option<Box<CacheKey>>,
    /// Signatures of thoughts that its caller was given.
    signatures: Option<CallerSignatures>,
}

/// A provider's key that the caller has brought.
#[derive(Debug)]
struct OwnKey {
    provider: String,
    key: Key,
    /// The provider does not take it now.
    is_refused: AtomicBool,
}

/// Why a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// Its body.
    Body(BodyFault),
    /// Its form.
    Form(FormFault),
    /// It is compressed.
    Encoded,
    /// It names no model, or one with a name that no model has.
    Model,
    /// It names further models in this member, one of which may answer.
    Choice(String),
    /// By this member it has a provider or a gateway ask elsewhere than for the model that was judged.
    Away(String),
    /// It has this member, which rules read, where no rule reads it.
    Hidden(String),
    /// `stream` is not true or false.
    Stream,
    /// A stream is asked for where there is none.
    NoStream,
    /// By this member the provider would go on after its reply.
    Later(&'static str),
    /// A rule of `inspect:` masks a field of a form, which cannot be written anew.
    Masked,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Body(fault) => write!(f, "the body cannot be taken: {fault}"),
            Self::Form(fault) => write!(f, "the form cannot be taken: {fault}"),
            Self::Encoded => f.write_str(
                "the body cannot be taken: it has a content-encoding; send it as it is, uncompressed",
            ),
            Self::Model => write!(
                f,
                "\"model\" has to name one model: a text of 1 to {MODEL_BYTES_MAX} bytes without commas, control characters, invisible characters, and blanks at an end of a part"
            ),
            Self::Choice(name) => write!(
                f,
                "\"{}\" leaves it to the provider which model answers, and no rule has judged that one: leave it out, and configure an alias with several targets",
                name.escape_debug()
            ),
            Self::Away(name) => write!(
                f,
                "\"{}\" has the provider, or a gateway behind it, use another deployment, adapter, address or account than the model's own, and no rule has judged that: leave it out, and configure it there",
                name.escape_debug()
            ),
            Self::Hidden(name) => write!(
                f,
                "\"{}\" stands within another member, where no rule reads it: write it beside \"model\"",
                name.escape_debug()
            ),
            Self::Later(name) => write!(
                f,
                "\"{name}\" has the provider go on after its reply, and what it uses and says then would be counted and looked at by nobody: leave it out"
            ),
            Self::Stream => f.write_str("\"stream\" has to be true or false"),
            Self::Masked => f.write_str(
                "a rule of inspect: masks a field of the form, and a form is sent as it came or not at all",
            ),
            Self::NoStream => f.write_str("replies of this endpoint are not streamed"),
        }
    }
}

impl Unreadable {
    /// The member of the body that it is about.
    pub(crate) fn param(&self) -> Option<&'static str> {
        match self {
            Self::Choice(_) => Some("model"),
            Self::Hidden(_) => Some("extra_body"),
            Self::Body(_) | Self::Form(_) | Self::Encoded | Self::Masked | Self::Away(_) => None,
            Self::Model => Some("model"),
            Self::Stream | Self::NoStream => Some("stream"),
            Self::Later(name) => Some(name),
        }
    }
}

impl ModelRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn read(endpoint: Endpoint, body: &[u8], headers: &HeaderMap) -> Result<Self, Unreadable> {
        let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
        if encodings.any(|own| !own.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(Unreadable::Encoded);
        }
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind.filter(|kind| endpoint.takes_form() && is_form(kind));
        let (form, body) = match kind {
            None => (None, Body::read(body, endpoint.known_members())),
            Some(kind) => {
                let (form, fields) = MultipartForm::read(kind, body).map_err(Unreadable::Form)?;
                let fields = Body::read(fields.as_bytes(), endpoint.known_members());
                (Some(Box::new(form)), fields)
            }
        };
        let body = body.map_err(Unreadable::Body)?;
        let is_streamed = body.text("stream_format").is_some_and(|own| own == "sse");
        if is_streamed && !endpoint.streams() {
            return Err(Unreadable::NoStream);
        }
        let model = body.text("model").unwrap_or_default().into_owned();
        // What some providers pass over, rules would not.
        let is_read_alike = |part: &str| part == part.trim() && !part.contains(is_unseen);
        let is_name = !model.is_empty()
            && model.len() <= MODEL_BYTES_MAX
            // LiteLLM asks each model of a list.
            && !model.contains(',')
            && !model.chars().any(char::is_control)
            && model.split(['/', ':']).all(is_read_alike);
        if !is_name {
            return Err(Unreadable::Model);
        }
        is_all_judged(endpoint, &body)?;
        let streams = match body.get("stream") {
            None | Some("false") => false,
            Some("true") if endpoint.streams() => true,
            Some("true") => return Err(Unreadable::NoStream),
            Some(_) => return Err(Unreadable::Stream),
        };
        let mut forwarded = HeaderMap::new();
        for name in FORWARDED {
            for value in headers.get_all(&name) {
                forwarded.append(name.clone(), value.clone());
            }
        }
        Ok(Self {
            endpoint,
            body,
            form,
            model,
            streams,
            headers: forwarded,
            found: None,
            own_keys: Arc::default(),
            cache_key: None,
            signatures: None,
        })
    }

    /// Sets where the signatures are that its caller was given.
    pub(crate) fn set_signatures(&mut self, signatures: CallerSignatures) {
        self.signatures = Some(signatures);
    }

    pub(crate) fn caller_signatures(&self) -> Option<&CallerSignatures> {
        self.signatures.as_ref()
    }

    /// Returns where the signatures of thoughts are found that come back without them.
    pub(crate) fn signatures(&self) -> Option<&dyn SignatureLookup> {
        let own = self.signatures.as_ref()?;
        Some(own)
    }

    /// Keeps the signatures of a reply for the turn in which its thoughts come back.
    pub(crate) fn keep_signatures(&self, thoughts: Vec<SignedThought>) {
        if let Some(own) = &self.signatures {
            own.store.keep(&own.caller, thoughts);
        }
    }

    /// Keys of providers that the caller has brought, by the provider's name.
    pub(crate) fn set_own_keys(&mut self, keys: Vec<(String, Key)>) {
        let own = |(provider, key)| OwnKey {
            provider,
            key,
            is_refused: AtomicBool::new(false),
        };
        self.own_keys = keys.into_iter().map(own).collect();
    }

    /// Whether the caller has brought any.
    pub(crate) fn has_own_keys(&self) -> bool {
        !self.own_keys.is_empty()
    }

    /// Sets the key of its reply in the cache.
    pub(crate) fn set_cache_key(&mut self, key: Option<CacheKey>) {
        self.cache_key = key.map(Box::new);
    }

    pub(crate) fn cache_key(&self) -> Option<&CacheKey> {
        self.cache_key.as_deref()
    }

    /// The headers that the caller has set for the provider.
    pub(crate) fn own_headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.headers
            .iter()
            .filter(|(name, _)| FORWARDED.contains(name))
    }

    /// The caller's own key of a provider, until the provider has refused it.
    pub(crate) fn own_key(&self, provider: &str) -> Option<&Key> {
        let mut own = self.own_keys.iter();
        let found = own.find(|own| own.provider == provider)?;
        (!found.is_refused.load(Ordering::Relaxed)).then_some(&found.key)
    }

    /// The provider does not take the caller's own key now: the rest of this call goes on with the provider's.
    pub(crate) fn refuse_own_key(&self, provider: &str) {
        for own in self.own_keys.iter().filter(|own| own.provider == provider) {
            own.is_refused.store(true, Ordering::Relaxed);
        }
    }

    /// What is asked of the model.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// The model's name as the caller wrote it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether the reply is to be streamed.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Notes what the inspection found in it; the body is what that left.
    pub(crate) fn set_finding(&mut self, finding: Finding) {
        self.found = Some(Box::new(finding));
    }

    /// What the inspection found in it.
    pub(crate) fn finding(&self) -> Option<&Finding> {
        self.found.as_deref()
    }

    /// The body as it came.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Headers that belong to the request and not to the connection.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The same for a provider of another dialect, which knows nothing of a dialect's own headers.
    pub(crate) fn common_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        for name in FORWARDED {
            headers.remove(name);
        }
        headers
    }

    /// The same with what is tried out of Anthropic's dialect.
    pub(crate) fn headers_with_betas(&self) -> HeaderMap {
        let mut headers = self.common_headers();
        for value in self.headers.get_all(&FORWARDED[0]) {
            headers.append(FORWARDED[0].clone(), value.clone());
        }
        headers
    }

    /// The same request with another body.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub(crate) fn with_body(&self, body: &[u8], headers: &HeaderMap) -> Result<Self, Unreadable> {
        let mut other = Self::read(self.endpoint, body, headers)?;
        if let Some(id) = self.headers.get(ID) {
            other.set_id(id.clone());
        }
        other.own_keys = Arc::clone(&self.own_keys);
        other.signatures.clone_from(&self.signatures);
        Ok(other)
    }

    /// Names the request for the provider.
    pub(crate) fn set_id(&mut self, id: HeaderValue) {
        self.headers.insert(ID, id);
    }

    /// Its id; empty where it has none.
    pub(crate) fn id(&self) -> &str {
        let id = self.headers.get(ID).and_then(|id| id.to_str().ok());
        id.unwrap_or_default()
    }

    /// Whether the caller wants to be told in the stream what was used.
    #[must_use]
    pub fn wants_usage(&self) -> bool {
        self.endpoint != Endpoint::Chat
            || self
                .stream_options()
                .is_some_and(|own| own.is_true("include_usage"))
    }

    fn stream_options(&self) -> Option<Body> {
        let raw = self.body.get("stream_options")?;
        Body::read(raw.as_bytes(), &["include_usage"]).ok()
    }

    /// Whether it is a form, which is sent as it came or not at all.
    pub(crate) fn is_form(&self) -> bool {
        self.form.is_some()
    }

    /// What its body is made of.
    #[must_use]
    pub fn kind(&self) -> &str {
        let form = self.form.as_ref();
        form.map_or("application/json", |form| form.kind())
    }

    /// The body for a provider that calls the model by this name: a stream of chat completions is asked to
    /// say what it used, and all else is as it came.
    #[must_use]
    pub fn body_for(&self, model: &str) -> Bytes {
        if let Some(form) = &self.form {
            // A name that cannot stand in it leaves the caller's, which the provider does not know.
            let own = form
                .with_model(model)
                .or_else(|| form.with_model(&self.model));
            return own.unwrap_or_default().into();
        }
        self.fields_for(model)
    }

    /// The same for a provider that tells what a stream used unasked, and refuses to be asked.
    pub(crate) fn body_unasked(&self, model: &str) -> Bytes {
        const ASKED: &str = "stream_options";
        if self.endpoint != Endpoint::Chat {
            return self.body_for(model);
        }
        let name = quoted(model);
        let edits = [("model", name.as_str())];
        match self.body.members().any(|(name, _)| name == ASKED) {
            true => self.body.without(&[ASKED], &edits).into(),
            false => self.body.with(&edits).into(),
        }
    }

    /// The body for a cloud that has parts of the request elsewhere than Anthropic has them.
    pub(crate) fn body_elsewhere(&self, model: &str, own: &Elsewhere) -> Bytes {
        let asked = self.headers.get_all(&FORWARDED[0]).iter();
        let asked = asked.filter_map(|value| value.to_str().ok());
        let names = asked.flat_map(|value| value.split(',')).map(str::trim);
        let mut betas = Vec::new();
        for name in names.filter(|name| own.betas_in_body && !name.is_empty()) {
            betas.push(if betas.is_empty() { b'[' } else { b',' });
            wire::text::push_string(&mut betas, name);
        }
        if !betas.is_empty() {
            betas.push(b']');
        }
        let betas = String::from_utf8(betas).ok();
        let betas = betas.filter(|text| !text.is_empty());
        own.body(&self.body, model, betas.as_deref())
    }

    /// The same as JSON, also where it came as a form.
    #[must_use]
    pub fn fields_for(&self, model: &str) -> Bytes {
        let name = quoted(model);
        let usage = (self.streams && !self.wants_usage()).then(|| {
            self.stream_options().map_or_else(
                || r#"{"include_usage":true}"#.to_owned(),
                |own| own.with(&[("include_usage", "true")]),
            )
        });
        let mut edits = vec![("model", name.as_str())];
        edits.extend(usage.as_deref().map(|usage| ("stream_options", usage)));
        self.body.with(&edits).into()
    }
}

/// Whether rules see all by which a provider goes: what it is asked, who answers, and what is used.
fn is_all_judged(endpoint: Endpoint, body: &Body) -> Result<(), Unreadable> {
    if let Some(name) = chooses_model(body).or_else(|| names_another(body)) {
        return Err(Unreadable::Choice(name));
    }
    if let Some(name) = leads_away(body) {
        return Err(Unreadable::Away(name));
    }
    if let Some(name) = hides(body, endpoint.known_members()) {
        return Err(Unreadable::Hidden(name));
    }
    let later = |name: &&str| body.get(name).is_some_and(|raw| raw != "false");
    if let Some(name) = LATER.into_iter().find(later) {
        return Err(Unreadable::Later(name));
    }
    Ok(())
}

/// A text as a string of JSON.
fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    wire::text::push_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// What of Anthropic's API a cloud has elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Elsewhere {
    /// The version of the API, which stands in the body.
    pub version: String,
    /// The model stands in the URL.
    pub model_in_url: bool,
    /// Whether to stream stands in the URL alone.
    pub stream_in_url: bool,
    /// What is tried out stands in the body, not in the head.
    pub betas_in_body: bool,
}

impl Elsewhere {
    /// A body of messages, or of a count of their tokens, as this cloud wants it.
    pub fn body(&self, body: &Body, model: &str, betas: Option<&str>) -> Bytes {
        let (version, model) = (quoted(&self.version), quoted(model));
        let mut added = vec![("anthropic_version", version.as_str())];
        added.extend(betas.map(|betas| ("anthropic_beta", betas)));
        let mut gone = Vec::new();
        if self.stream_in_url {
            gone.push("stream");
        }
        if self.model_in_url {
            gone.push("model");
        } else {
            added.push(("model", &model));
        }
        body.without(&gone, &added).into()
    }
}

impl Shown for ModelRequest {
    fn arguments(&self) -> Option<Cow<'_, str>> {
        Some(self.body.as_str().into())
    }

    fn weight(&self) -> usize {
        self.body.as_str().len() + self.form.as_ref().map_or(0, |form| form.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: Endpoint, text: &str) -> Result<ModelRequest, Unreadable> {
        ModelRequest::read(endpoint, text.as_bytes(), &HeaderMap::new())
    }

    #[test]
    fn no_provider_goes_on_after_its_reply() {
        for (endpoint, member, expect) in [
            (
                Endpoint::Responses,
                r#""background":true"#,
                Some("background"),
            ),
            (Endpoint::Chat, r#""deferred":true"#, Some("deferred")),
            (Endpoint::Responses, r#""background":false"#, None),
            (Endpoint::Responses, r#""background":null"#, None),
        ] {
            let found = read(endpoint, &format!(r#"{{"model":"m",{member}}}"#)).err();
            assert_eq!(found, expect.map(Unreadable::Later), "{member}");
        }
        let within = read(
            Endpoint::Responses,
            r#"{"model":"m","extra_body":{"background":true}}"#,
        );
        assert_eq!(
            within.err(),
            Some(Unreadable::Hidden("background".to_owned()))
        );
    }

    #[test]
    fn only_the_model_and_the_stream_options_are_written() {
        let cases = [
            (
                r#"{"model":"smart", "x" :1.0}"#,
                r#"{"model":"a/b", "x" :1.0}"#,
            ),
            (
                r#"{"model":"smart","stream":true}"#,
                r#"{"stream_options":{"include_usage":true},"model":"a/b","stream":true}"#,
            ),
            (
                r#"{"model":"smart","stream":true,"stream_options":{"include_obfuscation":false}}"#,
                r#"{"model":"a/b","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}"#,
            ),
            (
                r#"{"model":"smart","stream":true,"stream_options":{"include_usage":false}}"#,
                r#"{"model":"a/b","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"model":"smart","stream":true,"stream_options":{"include_usage":true}}"#,
                r#"{"model":"a/b","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
        ];
        for (text, expect) in cases {
            let request = read(Endpoint::Chat, text).unwrap();
            assert_eq!(request.body_for("a/b"), expect.as_bytes(), "{text}");
        }
        for (text, expect) in [
            (
                r#"{"model":"smart", "stream":true}"#,
                r#"{"model":"a/b", "stream":true}"#,
            ),
            (
                r#"{"n" :1,"model":"smart","stream_options":{"include_usage":true},"stream":true}"#,
                r#"{"model":"a/b","n":1,"stream":true}"#,
            ),
        ] {
            let request = read(Endpoint::Chat, text).unwrap();
            assert_eq!(request.body_unasked("a/b"), expect.as_bytes(), "{text}");
        }
        let messages = r#"{"model":"m","stream":true}"#;
        let request = read(Endpoint::Messages, messages).unwrap();
        assert_eq!(request.body_for("m"), messages.as_bytes());
    }

    #[test]
    fn what_names_no_model_or_streams_wrongly_is_refused() {
        let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(MODEL_BYTES_MAX + 1));
        for text in [
            "{}",
            r#"{"model":""}"#,
            r#"{"model":7}"#,
            r#"{"model":null}"#,
            r#"{"model":"a\n"}"#,
            r#"{"model":"p/ m"}"#,
            r#"{"model":"p/m "}"#,
            r#"{"model":"p/m\u3000"}"#,
            r#"{"model":"p/\u200bm"}"#,
            &long,
        ] {
            assert_eq!(
                read(Endpoint::Chat, text).unwrap_err(),
                Unreadable::Model,
                "{text}"
            );
        }
        let odd = r#"{"model":"m","stream":"true"}"#;
        assert_eq!(read(Endpoint::Chat, odd).unwrap_err(), Unreadable::Stream);
        let stream = r#"{"model":"m","stream":true}"#;
        assert_eq!(
            read(Endpoint::Embeddings, stream).unwrap_err(),
            Unreadable::NoStream
        );
        let mut headers = HeaderMap::new();
        let plain = r#"{"model":"m"}"#;
        for (encoding, taken) in [("identity", true), ("gzip", false), ("zstd", false)] {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
            let read = ModelRequest::read(Endpoint::Chat, plain.as_bytes(), &headers);
            assert_eq!(read.err(), (!taken).then_some(Unreadable::Encoded));
        }
        let twice = r#"{"model":"m","model":"n"}"#;
        assert!(matches!(
            read(Endpoint::Chat, twice),
            Err(Unreadable::Body(_))
        ));
    }
}
