//! Authentication over HTTP: from the `Authorization` header to a caller.

use std::sync::Arc;

use ::identity::{Issuers, ResourceServer};
use gate::identity::TokenFault;
use gate::identity::{
    Authenticate, Credential, Entry, IdentityFault, KeyHolders, KeyRing, LocalUser,
    RefusedCredential,
};
use gate::journal::{Auth, AuthEvent, Record, Status};
use gate::{Caller, Clock as _, Gate};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use models::Accounts;
use models::accounts::TOKEN_PREFIX;
use net::http::server::{Peer, Request, single};

use crate::failure::Failure;
use crate::local::{self, SystemClock};
use crate::places::Places;

/// Header of keys that are not sent as bearer tokens.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Authenticates requests.
pub struct Authentication {
    holders: KeyHolders,
    /// Verifiers of access tokens, if `identity:` names issuers.
    issuers: Option<Arc<Issuers>>,
    clock: SystemClock,
}

impl Authentication {
    /// Reads the keys.
    pub fn open(places: &Places, required: bool) -> Result<Self, Failure> {
        let mut broken = None;
        let mut random = |bytes: &mut [u8]| {
            if let Err(error) = local::random(bytes) {
                broken = Some(error);
            }
        };
        let ring =
            KeyRing::open(&places.keys(), &mut random).map_err(|error| Failure::of_keys(&error))?;
        if let Some(error) = broken {
            return Err(Failure::other(format!("no randomness: {error}")));
        }
        let local = LocalUser {
            caller: Caller::local(&places.user),
            user: rustix::process::geteuid().as_raw(),
        };
        Ok(Self {
            holders: KeyHolders::new(ring, local, required, local::now_ms()),
            issuers: None,
            clock: SystemClock::new(),
        })
    }

    /// The same with people who have signed in at issuers.
    pub fn with_issuers(self, issuers: Option<&Arc<Issuers>>) -> Self {
        let Some(issuers) = issuers else {
            return self;
        };
        let tokens = Arc::clone(issuers) as Arc<dyn Authenticate>;
        Self {
            holders: self.holders.with_tokens(tokens),
            issuers: Some(Arc::clone(issuers)),
            ..self
        }
    }

    /// Returns what clients are shown of the protected resources, if people sign in here.
    pub fn resource(&self) -> Option<&ResourceServer> {
        self.issuers.as_ref().map(|issuers| issuers.resource())
    }

    /// The same with the holders of accounts.
    pub fn with_accounts(self, accounts: Option<&Arc<Accounts>>) -> Self {
        let Some(accounts) = accounts else {
            return self;
        };
        let accounts = Arc::clone(accounts) as Arc<dyn Authenticate>;
        Self {
            holders: self.holders.with_accounts(TOKEN_PREFIX, accounts),
            ..self
        }
    }

    /// Returns whether every request needs a key.
    pub fn need_keys(&self) -> bool {
        self.holders.need_keys()
    }

    /// Returns the caller of this request, which is for the server of this name if it has one.
    pub async fn caller(
        &self,
        request: &Request,
        server: Option<&str>,
    ) -> Result<Caller, IdentityFault> {
        let began_ns = self.clock.mono_ns();
        let user = match self.need_keys() {
            true => None,
            false => request.user().await,
        };
        let shown = shown(&request.head.headers).for_server(server);
        let from = match request.peer() {
            Peer::Address(address) => Some(address.ip().to_canonical()),
            _ => None,
        };
        let path = request.head.uri.path();
        let shown = shown.from_user(user).sent_from(from).at_path(Some(path));
        let now_ms = local::about_ms();
        let found = match &self.issuers {
            Some(issuers) => self.identify_person(issuers, request, &shown, now_ms).await,
            None => self.holders.identify_unnoted(&shown, now_ms),
        };
        let mut caller =
            found.inspect_err(|fault| self.holders.note_refusal(*fault, &shown, now_ms))?;
        caller.identity_ns = self.clock.mono_ns().saturating_sub(began_ns);
        Ok(caller)
    }

    /// Identifies a caller where people sign in; fetches keys of the issuer that are not known yet.
    async fn identify_person(
        &self,
        issuers: &Arc<Issuers>,
        request: &Request,
        shown: &Credential<'_>,
        now_ms: i64,
    ) -> Result<Caller, IdentityFault> {
        let query = request.head.uri.query().unwrap_or_default();
        if query
            .split('&')
            .any(|pair| pair.starts_with("access_token="))
        {
            return Err(IdentityFault::Token(TokenFault::InQuery));
        }
        issuers.refresh_if_due(now_ms);
        let found = self.holders.identify_unnoted(shown, now_ms);
        let lacks_keys = matches!(
            found,
            Err(IdentityFault::Token(
                TokenFault::KeyUnknown | TokenFault::IssuerUnreachable
            ))
        );
        match shown.text() {
            Some(text) if lacks_keys && issuers.fetch_for(text, now_ms).await => {
                self.holders.identify_unnoted(shown, now_ms)
            }
            _ => found,
        }
    }

    /// Revokes and returns the callers of accounts that a change has ended.
    pub fn take_revoked(&self) -> Vec<Arc<str>> {
        self.holders.take_revoked(local::now_ms())
    }

    /// Reads changed keys again and records refusals. Revokes and returns the callers of keys that have ended.
    pub fn tick(&self, gate: &Gate) -> Vec<Arc<str>> {
        let looked = self.holders.look(local::now_ms());
        match looked.read {
            Some(Ok(())) => tracing::info!("the keys were read again"),
            Some(Err(error)) => tracing::error!("the keys that were known stay: {error}"),
            None => {}
        }
        for key in &looked.ended {
            recorded(gate, AuthEvent::KeyEnded, key, None);
        }
        for key in &looked.begun {
            recorded(gate, AuthEvent::KeyBegun, key, Some(&rights(key)));
        }
        for (turned, count) in self.holders.take_refused() {
            let user = turned.user.map(|user| format!("uid:{user}"));
            let message = circumstances(&turned);
            let record = Auth {
                status: Some(Status::Failure),
                subject_id: user.as_deref().or(turned.subject.as_deref()),
                reason: Some(turned.fault.into()),
                message: message.as_deref(),
                coalesced: Some(count),
                ..Auth::of(event(turned.fault))
            };
            // A journal that fails here fails the gate as well.
            drop(gate.record(&Record::Auth(&record)));
        }
        looked.revoked
    }
}

/// Records that a key has begun or ended.
fn recorded(gate: &Gate, event: AuthEvent, key: &Entry, message: Option<&str>) {
    let record = Auth {
        status: Some(Status::Success),
        subject_id: Some(&key.subject()),
        message,
        ..Auth::of(event)
    };
    // A journal that fails here fails the gate as well.
    drop(gate.record(&Record::Auth(&record)));
}

/// Returns the servers and groups of a key as text.
fn rights(key: &Entry) -> String {
    let servers = match key.servers.as_slice() {
        [] => "all servers".to_owned(),
        names => format!("servers {}", names.join(", ")),
    };
    match key.groups.as_slice() {
        [] => format!("good for {servers}"),
        names => format!("good for {servers}, in groups {}", names.join(", ")),
    }
}

/// Returns the server that a credential was refused for, and the address of its client.
fn circumstances(turned: &RefusedCredential) -> Option<String> {
    let server = turned.server.as_deref();
    let server = server.map(|name| format!("for the server \"{}\"", name.escape_debug()));
    let from = turned.from.map(|from| format!("from {from}"));
    let parts: Vec<String> = server.into_iter().chain(from).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the event of a refusal.
fn event(fault: IdentityFault) -> AuthEvent {
    match fault {
        IdentityFault::OtherUser | IdentityFault::UserUnknown => AuthEvent::UserRefused,
        IdentityFault::Missing
        | IdentityFault::Unknown
        | IdentityFault::Expired
        | IdentityFault::Revoked
        | IdentityFault::Ambiguous
        | IdentityFault::OutOfScope => AuthEvent::KeyRefused,
        IdentityFault::Token(_) => AuthEvent::TokenRefused,
    }
}

/// What the headers show: nothing, a bearer's text, or something that is neither.
fn shown(headers: &HeaderMap) -> Credential<'_> {
    match single(headers, &AUTHORIZATION) {
        // Clients of Anthropic's API show their key here.
        Ok(None) => match single(headers, &API_KEY) {
            Ok(None) => Credential::none(),
            Ok(Some(text)) => Credential::bearer(text.trim()),
            Err(_) => Credential::unfit(),
        },
        Ok(Some(value)) => match value.split_once(' ') {
            Some((scheme, text)) if scheme.eq_ignore_ascii_case("bearer") => {
                Credential::bearer(text.trim())
            }
            Some(_) | None => Credential::other(),
        },
        Err(_) => Credential::unfit(),
    }
}
