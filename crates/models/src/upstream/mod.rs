//! Providers over HTTP.

mod api;
mod frames;
mod google;
mod keys;
mod publisher;
mod replies;
mod sigv4;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dialects::translate::{self, CallerForm, ProviderForm, RequestOptions, embeddings};
use dialects::{Body, Dialect, Endpoint};
use gate::{PeerId, Spent};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use net::outbound::http::{
    HttpClient, HttpFault, HttpOptions, Lane, Method, Outgoing, Reply as HttpReply, Target,
    TargetFault, TlsFault, TlsOptions,
};
use tokio::time::Instant;
use toolkit::server::BoxFuture;

pub use api::{Api, OpenAiVariant, Site};
pub use google::{CREDENTIAL_BYTES_MAX, CredentialFault, GoogleCredential};
pub use keys::KEYS_MAX;
pub use publisher::Publisher;

pub use crate::key::Key;
pub use dialects::translate::UnsupportedMembers;

use crate::provider::{Address, Fault, Offer, Provider, Remedy, RestingKey, Sent, Trouble};
use crate::request::{Elsewhere, ModelRequest};
use google::{Refused, Tokens};
use keys::Keys;
use sigv4::{Asked, Scope};

/// Most connections to one provider.
const CONNECTIONS_MAX: usize = 4_096;
/// The header that names the project that Google counts a call for.
const QUOTA_PROJECT: HeaderName = HeaderName::from_static("x-goog-user-project");

/// A provider over HTTP.
#[derive(Debug)]
pub struct HttpProviderOptions {
    /// Its name.
    pub name: String,
    /// Where its API is: the part of the URL before `/chat/completions` or `/messages`.
    pub base_url: String,
    /// Whether that may be `http` on another machine.
    pub insecure: bool,
    /// Whose API it speaks.
    pub api: Api,
    /// Where it is, in a cloud.
    pub site: Site,
    /// The most tokens of a reply where the caller names none, and the API wants a number.
    pub max_tokens: u64,
    /// What becomes of members that its dialect has no word for.
    pub unsupported: UnsupportedMembers,
    /// Its keys; none where it wants none.
    pub keys: Vec<Key>,
    /// What its access tokens are got with, where it is shown such.
    pub google: Option<GoogleCredential>,
    /// Its models; where the list is empty, any name is passed on.
    pub models: Vec<String>,
    /// Authorities that its certificate is checked against, as PEM; the system's where absent.
    pub authorities: Option<Vec<u8>>,
}

/// A request as it is sent.
struct Written {
    body: Bytes,
    /// Hints that the provider's dialect has no word for.
    left_out: Vec<Cow<'static, str>>,
    /// The form of the reply, where that is not the caller's.
    format: Option<ProviderForm>,
}

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFault {
    /// Its URL.
    Url(TargetFault),
    /// The URL that access tokens come from.
    Tokens(TargetFault),
    /// Its certificates.
    Tls(TlsFault),
}

impl fmt::Display for ProviderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(fault) => fault.fmt(f),
            Self::Tokens(fault) => write!(f, "where its access tokens come from: {fault}"),
            Self::Tls(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for ProviderFault {}

/// A provider over HTTP.
pub struct HttpProvider {
    peer: PeerId,
    offer: Offer,
    api: Api,
    max_tokens: u64,
    unsupported: UnsupportedMembers,
    keys: Keys,
    tokens: Option<Tokens>,
    site: Site,
    /// To the base. It and those of the endpoints share connections.
    client: HttpClient,
    /// One for each endpoint whose path is always the same.
    clients: HashMap<Endpoint, HttpClient>,
}

impl HttpProvider {
    /// Makes it ready; connects to nothing yet.
    ///
    /// # Errors
    /// Where its URL or the certificates cannot be used.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ProviderFault> {
        let http = HttpOptions {
            connections_max: CONNECTIONS_MAX,
            tls: TlsOptions {
                authorities: options.authorities,
                ..TlsOptions::default()
            },
            ..HttpOptions::default()
        };
        let base = Target::parse(&options.base_url, options.insecure);
        let base = base.map_err(ProviderFault::Url)?;
        let client = HttpClient::new(base, &http).map_err(ProviderFault::Tls)?;
        let below = |endpoint: Endpoint| {
            let client = client.below(&options.api.path(endpoint)?)?;
            Some((endpoint, client))
        };
        let spoken = options.api.endpoints();
        let tokens = options.google.map(|own| Tokens::new(own, options.insecure));
        Ok(Self {
            peer: PeerId::server(options.name),
            clients: spoken.into_iter().filter_map(below).collect(),
            client,
            site: options.site,
            offer: Offer {
                models: options.models,
                ..options.api.offer()
            },
            api: options.api,
            max_tokens: options.max_tokens,
            unsupported: options.unsupported,
            keys: Keys::new(options.keys),
            tokens: tokens.transpose()?,
        })
    }

    fn headers(&self, api: Api, request: &ModelRequest, key: Option<&Key>) -> HeaderMap {
        let is_own = api.has(request.endpoint());
        let mut headers = match self.elsewhere(api, request) {
            None if is_own => request.headers().clone(),
            Some(own) if is_own && !own.betas_in_body => request.headers_with_betas(),
            Some(_) | None => request.common_headers(),
        };
        let kind = HeaderValue::try_from(request.kind());
        let kind = kind.unwrap_or(HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, kind);
        let accept = if request.endpoint().is_passed_through() {
            "*/*"
        } else if request.streams() {
            self.streamed()
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        api.sign(&mut headers, key);
        let counted = self.tokens.as_ref().and_then(Tokens::quota_project);
        if let Some(project) = counted {
            headers.insert(QUOTA_PROJECT, project.clone());
        }
        headers
    }

    /// What of the request stands elsewhere than Anthropic has it.
    fn elsewhere(&self, api: Api, request: &ModelRequest) -> Option<Elsewhere> {
        api.elsewhere(request.endpoint(), request.headers())
    }

    /// The kind of its streams.
    fn streamed(&self) -> &'static str {
        match self.api {
            Api::Bedrock => frames::KIND,
            _ => "text/event-stream",
        }
    }

    /// Signs a request, where the key is one to sign with.
    fn signed(
        &self,
        client: &HttpClient,
        key: Option<&Key>,
        outgoing: &mut Outgoing,
    ) -> Option<()> {
        let Some(key) = key.and_then(Key::signing) else {
            return Some(());
        };
        let scope = Scope {
            region: &self.site.region,
            service: self.api.signed_service()?,
        };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_ms = i64::try_from(since.ok()?.as_millis()).ok()?;
        let (path, query) = client.path();
        let asked = Asked {
            method: outgoing.method.as_str(),
            host: client.target().authority(),
            path,
            query,
            body: &outgoing.body,
        };
        sigv4::sign(key, scope, asked, now_ms, &mut outgoing.headers)
    }

    /// The client for a request; `None` where the provider does not serve its endpoint.
    fn client_for(
        &self,
        api: Api,
        request: &ModelRequest,
        model: &str,
    ) -> Option<Cow<'_, HttpClient>> {
        let endpoint = request.endpoint();
        if let Some(client) = self.clients.get(&endpoint) {
            return Some(Cow::Borrowed(client));
        }
        if !api.serves(endpoint) {
            return None;
        }
        let asked = publisher::Asked {
            streams: request.streams(),
            method: Publisher::method_of(model, request.body()),
        };
        let path = api.path_of(endpoint, model, asked, &self.site);
        self.client.below(&path).map(Cow::Owned)
    }

    /// The request as it is sent.
    fn write(&self, api: Api, request: &ModelRequest, model: &str) -> Result<Written, Fault> {
        let elsewhere = self.elsewhere(api, request);
        let model = api.name(model);
        if api.has(request.endpoint()) {
            let body = match &elsewhere {
                Some(own) => request.body_elsewhere(model, own),
                None if !api.is_asked_for_usage() => request.body_unasked(model),
                None => request.body_for(model),
            };
            return Ok(Written {
                body,
                left_out: Vec::new(),
                format: None,
            });
        }
        let (text, to) = (request.body().as_str(), api.format());
        let said = match CallerForm::of(request.endpoint()) {
            Some(from) => {
                let options = RequestOptions {
                    signatures: request.signatures(),
                    ..api.request_options(model, (self.max_tokens, self.unsupported))
                };
                translate::request(from, to, text, &options)
            }
            None if api == Api::Vertex(Publisher::Embedder) => {
                embeddings::request(Publisher::method_of(model, request.body()), text)
            }
            None => return Err(Fault::of(Trouble::NotSpoken, Remedy::NextTarget)),
        };
        match said {
            Ok(said) => Ok(Written {
                body: match &elsewhere {
                    Some(own) => moved(&said.body, model, own)?,
                    None => said.body.into(),
                },
                left_out: said.left_out,
                format: Some(to),
            }),
            Err(fault) => Err(Fault {
                told: Some((StatusCode::BAD_REQUEST, fault.to_string())),
                ..Fault::of(Trouble::Inexpressible, Remedy::NextTarget)
            }),
        }
    }

    async fn sent(&self, spent: Spent<ModelRequest>, to: Address<'_>) -> Sent {
        let request = spent.request();
        let api = self.api.of(to.model);
        let Some(client) = self.client_for(api, request, to.model) else {
            return Sent::Unserved(spent, Fault::of(Trouble::NotSpoken, Remedy::NextTarget));
        };
        let written = match self.write(api, request, to.model) {
            Ok(written) => written,
            Err(fault) => return Sent::Unserved(spent, fault),
        };
        let (number, key) = match self.key_for(request, to).await {
            Ok(found) => found,
            Err(fault) => return Sent::Unserved(spent, fault),
        };
        let key = key.as_deref();
        let left = to.until.saturating_duration_since(Instant::now());
        let head_ms_max = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let mut outgoing = client.outgoing(Method::POST, Lane::Call, head_ms_max);
        outgoing.headers.extend(self.headers(api, request, key));
        outgoing.body = written.body.clone();
        if self.signed(&client, key, &mut outgoing).is_none() {
            return Sent::Unserved(spent, Fault::of(Trouble::Credentials, Remedy::NextTarget));
        }
        let reply = match client.send(outgoing).await {
            Ok(reply) => reply,
            Err(fault) => {
                tracing::debug!(provider = self.peer.name(), "{fault}");
                return Sent::Unserved(spent, replies::of_http(&fault));
            }
        };
        let status = reply.status();
        if let (Some(tokens), Some(_), Some(token)) = (&self.tokens, number, key)
            && status != StatusCode::UNAUTHORIZED
        {
            tokens.taken(token);
        }
        if status.is_success() {
            if let Some(number) = number {
                self.keys.served(number);
            }
            let shown = key.cloned();
            return replies::success(spent, reply, self.streamed(), written, shown);
        }
        let words = written
            .format
            .is_none()
            .then(|| request.endpoint().dialect());
        let mut fault = told(reply, to.until, key, words).await;
        if self.tokens.is_some() && status == StatusCode::FORBIDDEN {
            // It names the project and the permissions behind the credential, which are the owner's to know.
            (fault.answer, fault.told) = (None, None);
        }
        match number {
            Some(number) => self.learn((number, key), to.model, status, &mut fault),
            None if fault.is_about_key() => {
                request.refuse_own_key(self.peer.name());
                fault.remedy = Remedy::OtherKey;
            }
            None => {}
        }
        Sent::Unserved(spent, fault)
    }

    /// The key for a request, with its number where it is the provider's own.
    async fn key_for<'k>(
        &'k self,
        request: &'k ModelRequest,
        to: Address<'_>,
    ) -> Result<(Option<usize>, Option<Cow<'k, Key>>), Fault> {
        if let Some(own) = request.own_key(self.peer.name()) {
            return Ok((None, Some(Cow::Borrowed(own))));
        }
        let (number, key) = self.keys.take(to.model, Instant::now())?;
        let (None, Some(tokens)) = (key, &self.tokens) else {
            return Ok((Some(number), key.map(Cow::Borrowed)));
        };
        match tokens.token(to.until).await {
            Ok(token) => Ok((Some(number), Some(Cow::Owned(token)))),
            Err(mut fault) => {
                if !tokens.may_come_later() {
                    self.keys
                        .learn(number, to.model, &mut fault, Instant::now());
                }
                Err(fault)
            }
        }
    }

    /// What a fault says about the key that was shown.
    fn learn(
        &self,
        (number, key): (usize, Option<&Key>),
        model: &str,
        status: StatusCode,
        fault: &mut Fault,
    ) {
        if let (Some(tokens), Some(token), StatusCode::UNAUTHORIZED) = (&self.tokens, key, status) {
            match tokens.refused(token) {
                Refused::TakeAnother => {
                    fault.remedy = Remedy::OtherKey;
                    return;
                }
                Refused::Wait => return,
                Refused::Retire => {}
            }
        }
        self.keys.learn(number, model, fault, Instant::now());
    }
}

/// What a reply says whose status is no success, and what of it the caller reads.
/// `words` is the dialect of the caller, where the provider speaks the same.
async fn told(
    reply: HttpReply,
    until: Instant,
    key: Option<&Key>,
    words: Option<Dialect>,
) -> Fault {
    let until = until.min(Instant::now() + Duration::from_millis(replies::ERROR_WAIT_MS_MAX));
    replies::error(reply, until).await.for_caller(key, words)
}

/// A body of messages for a cloud that has parts of it elsewhere.
fn moved(body: &[u8], model: &str, own: &Elsewhere) -> Result<Bytes, Fault> {
    let read = Body::read(body, &[]);
    let read = read.map_err(|_| Fault::of(Trouble::Inexpressible, Remedy::NextTarget))?;
    Ok(own.body(&read, model, None))
}

impl Provider for HttpProvider {
    fn peer(&self) -> &PeerId {
        &self.peer
    }

    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn other_names(&self, model: &str) -> Vec<String> {
        self.api.other_names(model)
    }

    fn offer_of(&self, model: &str) -> Offer {
        self.api.of(model).offer()
    }

    fn send<'a>(&'a self, spent: Spent<ModelRequest>, to: Address<'a>) -> BoxFuture<'a, Sent> {
        Box::pin(self.sent(spent, to))
    }

    fn resting_keys(&self) -> Vec<RestingKey> {
        self.keys.resting(Instant::now())
    }

    fn tick(&self) {
        // Connections are shared, so one client stands for all.
        self.client.reap();
    }
}

impl From<&HttpFault> for Trouble {
    fn from(fault: &HttpFault) -> Self {
        match fault {
            HttpFault::Unreachable(_) | HttpFault::ConnectTimeout | HttpFault::Tls(_) => {
                Self::Unreachable
            }
            HttpFault::Busy => Self::Busy,
            HttpFault::HeadTimeout => Self::TooSlow,
            HttpFault::HeadTooLong | HttpFault::Malformed => Self::Malformed,
            HttpFault::BodyTooLong => Self::TooLong,
            HttpFault::NotSent | HttpFault::Broken => Self::Cut,
        }
    }
}
