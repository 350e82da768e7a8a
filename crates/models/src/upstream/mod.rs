//! Providers over HTTP.

mod keys;
mod replies;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use gate::{PeerId, Spent};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use net::outbound::http::{
    HttpClient, HttpFault, HttpOptions, Lane, Method, Outgoing, Target, TargetFault, TlsFault,
    TlsOptions,
};
use tokio::time::Instant;
use toolkit::server::BoxFuture;
use wire::model::{Dialect, Endpoint};

pub use keys::{KEYS_MAX, Key};

use crate::provider::{Address, Fault, Offer, Provider, Remedy, Sent, Trouble};
use crate::request::ModelRequest;
use keys::Keys;

/// Most connections to one provider.
const CONNECTIONS_MAX: usize = 4_096;
/// The version of Anthropic's API that is named where the caller names none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// A provider over HTTP.
#[derive(Debug)]
pub struct HttpProviderOptions {
    /// Its name.
    pub name: String,
    /// Where its API is: what stands in front of `/chat/completions` or `/messages`.
    pub base_url: String,
    /// Whether that may be `http` on another machine.
    pub insecure: bool,
    /// Whose words it speaks.
    pub dialect: Dialect,
    /// Its keys; none where it wants none.
    pub keys: Vec<Key>,
    /// Its models; where the list is empty, any name is passed on.
    pub models: Vec<String>,
    /// Authorities that its certificate is checked against, as PEM; the system's where absent.
    pub authorities: Option<Vec<u8>>,
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
    dialect: Dialect,
    keys: Keys,
    /// One client for each endpoint; they share connections.
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
        let spoken = Endpoint::ALL.into_iter();
        let spoken: Vec<Endpoint> = spoken
            .filter(|endpoint| endpoint.dialect() == options.dialect)
            .collect();
        let below = |endpoint: &Endpoint| {
            let client = client.below(&format!("/{}", endpoint.path()))?;
            Some((*endpoint, client))
        };
        Ok(Self {
            peer: PeerId::server(options.name),
            clients: spoken.iter().filter_map(below).collect(),
            offer: Offer {
                models: options.models,
                endpoints: spoken,
            },
            dialect: options.dialect,
            keys: Keys::new(options.keys),
        })
    }

    fn headers(&self, request: &ModelRequest, key: Option<&Key>) -> HeaderMap {
        let mut headers = request.headers().clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if request.streams() {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if self.dialect == Dialect::Anthropic {
            let version = HeaderName::from_static("anthropic-version");
            headers.entry(version).or_insert(ANTHROPIC_VERSION);
        }
        if let Some(key) = key {
            let name = match self.dialect {
                Dialect::OpenAi => AUTHORIZATION,
                Dialect::Anthropic => HeaderName::from_static("x-api-key"),
            };
            headers.insert(name, key.header(self.dialect));
        }
        headers
    }

    async fn sent(&self, spent: Spent<ModelRequest>, to: Address<'_>) -> Sent {
        let request = spent.request();
        let Some(client) = self.clients.get(&request.endpoint()) else {
            return Sent::Unserved(spent, Fault::of(Trouble::NotSpoken, Remedy::NextTarget));
        };
        let (number, key) = match self.keys.take(to.model, Instant::now()) {
            Ok(taken) => taken,
            Err(fault) => return Sent::Unserved(spent, fault),
        };
        let left = to.until.saturating_duration_since(Instant::now());
        let outgoing = Outgoing {
            method: Method::POST,
            headers: self.headers(request, key),
            body: request.body_for(to.model),
            lane: Lane::Call,
            head_ms_max: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        };
        let reply = match client.send(&outgoing).await {
            Ok(reply) => reply,
            Err(fault) => {
                tracing::debug!(provider = self.peer.name(), "{fault}");
                return Sent::Unserved(spent, replies::of_http(&fault));
            }
        };
        if reply.status().is_success() {
            return replies::success(spent, reply);
        }
        let until = to
            .until
            .min(Instant::now() + Duration::from_millis(replies::ERROR_WAIT_MS_MAX));
        let mut fault = replies::error(reply, until).await;
        self.keys
            .learn(number, to.model, &mut fault, Instant::now());
        Sent::Unserved(spent, fault)
    }
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
        if let Some(client) = self.clients.values().next() {
            client.reap();
        }
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
