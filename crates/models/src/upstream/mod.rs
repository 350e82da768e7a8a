//! Providers over HTTP.

mod api;
mod frames;
mod keys;
mod replies;
mod sigv4;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gate::{PeerId, Spent};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use net::outbound::http::{
    HttpClient, HttpFault, HttpOptions, Lane, Method, Outgoing, Reply as HttpReply, Target,
    TargetFault, TlsFault, TlsOptions,
};
use tokio::time::Instant;
use toolkit::server::BoxFuture;
use wire::model::translate::{self, Format, Front};
use wire::model::{Body, Endpoint, is_error, message_of};

pub use api::Api;
pub use keys::KEYS_MAX;

pub use crate::key::Key;

use crate::provider::{Address, Fault, Offer, Provider, Remedy, Sent, Trouble};
use crate::request::{ModelRequest, without_model};
use keys::Keys;
use sigv4::{Asked, Scope};

/// Most connections to one provider.
const CONNECTIONS_MAX: usize = 4_096;

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
    /// The version of the API, where it stands in the URL.
    pub api_version: String,
    /// The region that requests are signed for, where they are.
    pub region: String,
    /// The most tokens of a reply where the caller names none, and the API wants a number.
    pub max_tokens: u64,
    /// Its keys; none where it wants none.
    pub keys: Vec<Key>,
    /// Its models; where the list is empty, any name is passed on.
    pub models: Vec<String>,
    /// Authorities that its certificate is checked against, as PEM; the system's where absent.
    pub authorities: Option<Vec<u8>>,
}

/// A request as it is sent.
struct Written {
    body: Bytes,
    /// Hints that the provider's dialect has no word for.
    left_out: Vec<&'static str>,
    /// The form of the reply, where that is not the caller's.
    format: Option<Format>,
}

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFault {
    /// Its URL.
    Url(TargetFault),
    /// Its certificates.
    Tls(TlsFault),
}

impl fmt::Display for ProviderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(fault) => fault.fmt(f),
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
    keys: Keys,
    api_version: String,
    region: String,
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
        let spoken = options.api.endpoints();
        let below = |endpoint: &Endpoint| {
            let client = client.below(&options.api.path(*endpoint)?)?;
            Some((*endpoint, client))
        };
        Ok(Self {
            peer: PeerId::server(options.name),
            clients: spoken.iter().filter_map(below).collect(),
            client,
            api_version: options.api_version,
            region: options.region,
            offer: Offer {
                models: options.models,
                examples: Vec::new(),
                translated: spoken
                    .iter()
                    .copied()
                    .filter(|endpoint| !options.api.has(*endpoint))
                    .collect(),
                endpoints: spoken,
            },
            api: options.api,
            max_tokens: options.max_tokens,
            keys: Keys::new(options.keys),
        })
    }

    fn headers(&self, request: &ModelRequest, key: Option<&Key>) -> HeaderMap {
        let is_own = self.api.has(request.endpoint()) && self.api.version_in_body().is_none();
        let mut headers = if is_own {
            request.headers().clone()
        } else {
            request.common_headers()
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
        self.api.sign(&mut headers, key);
        headers
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
            region: &self.region,
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
    fn client_for(&self, request: &ModelRequest, model: &str) -> Option<Cow<'_, HttpClient>> {
        let endpoint = request.endpoint();
        if let Some(client) = self.clients.get(&endpoint) {
            return Some(Cow::Borrowed(client));
        }
        if !self.offer.endpoints.contains(&endpoint) {
            return None;
        }
        let (api, version) = (self.api, &self.api_version);
        let path = api.path_of(endpoint, model, request.streams(), version);
        self.client.below(&path).map(Cow::Owned)
    }

    /// The request as it is sent.
    fn write(&self, request: &ModelRequest, model: &str) -> Result<Written, Fault> {
        if self.api.has(request.endpoint()) {
            let body = match self.api.version_in_body() {
                Some(version) => request.body_named_outside(version),
                None => request.body_for(model),
            };
            return Ok(Written {
                body,
                left_out: Vec::new(),
                format: None,
            });
        }
        let (Some(from), to) = (Front::of(request.endpoint()), self.api.format()) else {
            return Err(Fault::of(Trouble::NotSpoken, Remedy::NextTarget));
        };
        let manner = self.api.manner(model, self.max_tokens);
        match translate::request(from, to, request.body().as_str(), &manner) {
            Ok(said) => Ok(Written {
                body: match self.api.version_in_body() {
                    Some(version) => named_outside(&said.body, version)?,
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
        let Some(client) = self.client_for(request, to.model) else {
            return Sent::Unserved(spent, Fault::of(Trouble::NotSpoken, Remedy::NextTarget));
        };
        let written = match self.write(request, to.model) {
            Ok(written) => written,
            Err(fault) => return Sent::Unserved(spent, fault),
        };
        let own = request.own_key(self.peer.name());
        let (number, key) = match own {
            Some(own) => (None, Some(own)),
            None => match self.keys.take(to.model, Instant::now()) {
                Ok((number, key)) => (Some(number), key),
                Err(fault) => return Sent::Unserved(spent, fault),
            },
        };
        let left = to.until.saturating_duration_since(Instant::now());
        let mut outgoing = Outgoing {
            method: Method::POST,
            headers: self.headers(request, key),
            body: written.body,
            lane: Lane::Call,
            head_ms_max: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        };
        if self.signed(&client, key, &mut outgoing).is_none() {
            return Sent::Unserved(spent, Fault::of(Trouble::Credentials, Remedy::NextTarget));
        }
        let reply = match client.send(&outgoing).await {
            Ok(reply) => reply,
            Err(fault) => {
                tracing::debug!(provider = self.peer.name(), "{fault}");
                return Sent::Unserved(spent, replies::of_http(&fault));
            }
        };
        if reply.status().is_success() {
            return replies::success(
                spent,
                reply,
                self.streamed(),
                written.format,
                written.left_out,
            );
        }
        let mut fault = told(reply, to.until, key, written.format.is_some()).await;
        match number {
            Some(number) => self
                .keys
                .learn(number, to.model, &mut fault, Instant::now()),
            None if fault.is_about_key() => {
                request.refuse_own_key(self.peer.name());
                fault.remedy = Remedy::OtherKey;
            }
            None => {}
        }
        Sent::Unserved(spent, fault)
    }
}

/// What a reply says whose status is no success, and what of it the caller reads.
async fn told(reply: HttpReply, until: Instant, key: Option<&Key>, is_translated: bool) -> Fault {
    let until = until.min(Instant::now() + Duration::from_millis(replies::ERROR_WAIT_MS_MAX));
    let mut fault = replies::error(reply, until).await;
    let shows_key = |(_, body): &(StatusCode, Bytes)| key.is_some_and(|key| key.is_in(body));
    if fault.answer.as_ref().is_some_and(shows_key) {
        // Some say again what they were sent.
        fault.answer = None;
    }
    let is_worded = |(_, body): &(StatusCode, Bytes)| std::str::from_utf8(body).is_ok_and(is_error);
    if is_translated || !fault.answer.as_ref().is_some_and(is_worded) {
        // The provider's words are not the caller's, so only its sentence goes on.
        let told = fault.answer.take();
        fault.told = told.map(|(status, body)| {
            let said = std::str::from_utf8(&body).ok().and_then(message_of);
            (
                status,
                said.unwrap_or_else(|| fault.trouble.sentence().to_owned()),
            )
        });
    }
    fault
}

/// A body of messages whose model stands in the URL.
fn named_outside(body: &[u8], version: &str) -> Result<Bytes, Fault> {
    let read = Body::read(body, &[]);
    let read = read.map_err(|_| Fault::of(Trouble::Inexpressible, Remedy::NextTarget))?;
    Ok(without_model(&read, version, None))
}

impl Provider for HttpProvider {
    fn peer(&self) -> &PeerId {
        &self.peer
    }

    fn offer(&self) -> &Offer {
        &self.offer
    }

    fn send<'a>(&'a self, spent: Spent<ModelRequest>, to: Address<'a>) -> BoxFuture<'a, Sent> {
        Box::pin(self.sent(spent, to))
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
