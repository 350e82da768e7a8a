//! This program as a client of an issuer: sign-in of a person by the device flow (RFC 8628) with PKCE, refresh, revocation.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::metadata::IssuerMetadata;
use crate::options::{IssuerOptions, check_url};
use crate::upstream::{self, FetchFault};

/// Shortest wait between two polls, and what `slow_down` adds to it.
const POLL_STEP: Duration = Duration::from_secs(5);
/// Longest wait between two polls.
const POLL_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest time that a person may take.
const SIGN_IN_MAX: Duration = Duration::from_secs(600);
/// Failures of the connection in a row that end the polling.
const POLL_FAILURES_MAX: u32 = 5;
/// Longest token, code or message of an issuer that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Longest lifetime of a token that is believed, in seconds.
const LIFETIME_S_MAX: u64 = 7 * 86_400;
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A public client of one issuer.
#[derive(Debug)]
pub struct OidcClient {
    options: IssuerOptions,
    client_id: String,
    scopes: Vec<String>,
    metadata: IssuerMetadata,
}

/// A sign-in that has begun and that a person completes in a browser.
pub struct DeviceCode {
    /// Code that the person compares or types.
    pub user_code: String,
    /// Page for the person.
    pub verification_uri: String,
    /// The same page with the code filled in, if the issuer has it.
    pub verification_uri_complete: Option<String>,
    code: Zeroizing<String>,
    verifier: Zeroizing<String>,
    interval: Duration,
    until: Instant,
}

/// Tokens that an issuer has issued. Cannot be printed.
pub struct TokenSet {
    /// Access token.
    pub access: Zeroizing<String>,
    /// Refresh token, if there is one.
    pub refresh: Option<Zeroizing<String>>,
    /// Lifetime of the access token, in milliseconds.
    pub expires_in_ms: u64,
}

impl fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSet(hidden)")
    }
}

impl fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceCode(hidden)")
    }
}

/// Why a sign-in, a refresh or a revocation failed.
#[derive(Debug)]
pub enum LoginFault {
    /// The issuer was not reached, or its documents are unusable.
    Fetch(FetchFault),
    /// The issuer does not have what is needed.
    Unsupported(&'static str),
    /// The person has refused.
    Denied,
    /// The person has taken too long.
    TooLate,
    /// The issuer refuses: `error` and `error_description`.
    Refused(String),
    /// An answer of the issuer is not what the standards say.
    Malformed(&'static str),
}

impl LoginFault {
    /// Returns whether the issuer cannot be reached, which may pass.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Fetch(fault) if !fault.is_lasting())
    }
}

impl fmt::Display for LoginFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(fault) => write!(f, "the issuer cannot be used: {fault}"),
            Self::Unsupported(what) => write!(f, "the issuer's metadata has no {what}"),
            Self::Denied => f.write_str("the sign-in was refused in the browser"),
            Self::TooLate => f.write_str("the code has expired; run durward login again"),
            Self::Refused(why) => write!(f, "the issuer refuses: {why}"),
            Self::Malformed(what) => write!(f, "the issuer's answer has no usable {what}"),
        }
    }
}

impl From<FetchFault> for LoginFault {
    fn from(fault: FetchFault) -> Self {
        Self::Fetch(fault)
    }
}

impl OidcClient {
    /// Fetches the metadata of the issuer.
    ///
    /// # Errors
    /// [`LoginFault::Fetch`].
    pub async fn discover(
        options: IssuerOptions,
        client_id: String,
        scopes: Vec<String>,
    ) -> Result<Self, LoginFault> {
        let authorities = options.authorities.as_ref();
        let metadata = upstream::metadata(&options.issuer, authorities).await?;
        Ok(Self {
            options,
            client_id,
            scopes,
            metadata,
        })
    }

    /// Begins a sign-in. `random` is the secret of PKCE.
    ///
    /// # Errors
    /// [`LoginFault`].
    pub async fn begin(&self, random: &[u8; 32]) -> Result<DeviceCode, LoginFault> {
        let endpoint = self.metadata.device_authorization.as_deref();
        let endpoint = endpoint.ok_or(LoginFault::Unsupported("device_authorization_endpoint"))?;
        let verifier = Zeroizing::new(URL_SAFE_NO_PAD.encode(random));
        let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        let challenge = URL_SAFE_NO_PAD.encode(digest);
        let scopes = self.scopes.join(" ");
        let fields = [
            ("client_id", self.client_id.as_str()),
            ("scope", &scopes),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let answer = self.post(endpoint, &fields).await?;
        let answer = answer.map_err(|refused| LoginFault::Refused(refused.shown()))?;
        let until = number(&answer, "expires_in").map_or(SIGN_IN_MAX, Duration::from_secs);
        let interval = number(&answer, "interval").map_or(POLL_STEP, Duration::from_secs);
        let page = |name: &'static str| {
            let url = text(&answer, name)?;
            // A query is usual here; the rest of the URL is checked as any other.
            let plain = url.split('?').next().unwrap_or_default();
            let is_shown = !url.contains(|c: char| c.is_control() || c.is_whitespace());
            (check_url(plain).is_ok() && is_shown && url.len() <= 2_048).then(|| url.to_owned())
        };
        let user_code = text(&answer, "user_code")
            .filter(|code| code.len() <= 64 && !code.contains(|c: char| !c.is_ascii_graphic()));
        Ok(DeviceCode {
            user_code: user_code
                .ok_or(LoginFault::Malformed("user_code"))?
                .to_owned(),
            verification_uri: page("verification_uri")
                .ok_or(LoginFault::Malformed("verification_uri"))?,
            verification_uri_complete: page("verification_uri_complete"),
            code: secret(&answer, "device_code").ok_or(LoginFault::Malformed("device_code"))?,
            verifier,
            interval: interval.clamp(Duration::from_secs(1), POLL_WAIT_MAX),
            until: Instant::now() + until.min(SIGN_IN_MAX),
        })
    }

    /// Polls until the person has signed in, has refused or has taken too long.
    ///
    /// # Errors
    /// [`LoginFault`].
    pub async fn wait(&self, begun: &DeviceCode) -> Result<TokenSet, LoginFault> {
        let (mut interval, mut failures) = (begun.interval, 0);
        loop {
            if Instant::now() + interval >= begun.until {
                return Err(LoginFault::TooLate);
            }
            tokio::time::sleep(interval).await;
            let fields = [
                ("grant_type", DEVICE_GRANT),
                ("device_code", begun.code.as_str()),
                ("client_id", &self.client_id),
                ("code_verifier", begun.verifier.as_str()),
            ];
            let answer = self.post(self.token_endpoint()?, &fields).await;
            match answer {
                Ok(Ok(answer)) => return tokens(&answer),
                Ok(Err(refused)) => {
                    failures = 0;
                    match refused.error.as_str() {
                        "authorization_pending" => {}
                        "slow_down" => interval = (interval + POLL_STEP).min(POLL_WAIT_MAX),
                        "access_denied" => return Err(LoginFault::Denied),
                        "expired_token" => return Err(LoginFault::TooLate),
                        _ => return Err(LoginFault::Refused(refused.shown())),
                    }
                }
                Err(fault) => {
                    failures += 1;
                    if failures >= POLL_FAILURES_MAX {
                        return Err(fault.into());
                    }
                    interval = (interval * 2).min(POLL_WAIT_MAX);
                }
            }
        }
    }

    /// Refreshes tokens. An answer without a refresh token leaves the old one valid.
    ///
    /// # Errors
    /// [`LoginFault`]; [`LoginFault::Refused`] if the session has ended.
    pub async fn refresh(&self, token: &str) -> Result<TokenSet, LoginFault> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("client_id", self.client_id.as_str()),
        ];
        let answer = self.post(self.token_endpoint()?, &fields).await?;
        tokens(&answer.map_err(|refused| LoginFault::Refused(refused.shown()))?)
    }

    /// Revokes a refresh token, which ends the session of this client at the issuer; returns `false` if the issuer has no
    /// endpoint for it.
    ///
    /// # Errors
    /// [`LoginFault`].
    pub async fn revoke(&self, token: &str) -> Result<bool, LoginFault> {
        let Some(endpoint) = &self.metadata.revocation else {
            return Ok(false);
        };
        let fields = [
            ("token", token),
            ("token_type_hint", "refresh_token"),
            ("client_id", self.client_id.as_str()),
        ];
        let answer = self.post(endpoint, &fields).await?;
        answer.map_err(|refused| LoginFault::Refused(refused.shown()))?;
        Ok(true)
    }

    /// Returns the page at which a browser ends the person's session at the issuer.
    #[must_use]
    pub fn end_session_url(&self) -> Option<String> {
        let page = self.metadata.end_session.as_deref()?;
        Some(format!(
            "{page}?{}",
            upstream::encode_form(&[("client_id", &self.client_id)])
        ))
    }

    fn token_endpoint(&self) -> Result<&str, LoginFault> {
        let endpoint = self.metadata.token.as_deref();
        endpoint.ok_or(LoginFault::Unsupported("token_endpoint"))
    }

    async fn post(
        &self,
        url: &str,
        fields: &[(&str, &str)],
    ) -> Result<Result<Map<String, Value>, OauthError>, FetchFault> {
        let authorities = self.options.authorities.as_ref();
        let (status, answer) = upstream::post(url, authorities, fields).await?;
        if status == 200 {
            return Ok(Ok(answer));
        }
        let word = |name| {
            let word = text(&answer, name).unwrap_or_default();
            word.chars().take(200).collect::<String>()
        };
        let error = word("error");
        if status >= 500 || error.is_empty() {
            return Err(FetchFault::Status(status));
        }
        Ok(Err(OauthError {
            error,
            description: word("error_description"),
        }))
    }
}

/// Error of RFC 6749.
struct OauthError {
    error: String,
    description: String,
}

impl OauthError {
    fn shown(&self) -> String {
        let error = self.error.escape_debug();
        match self.description.as_str() {
            "" => error.to_string(),
            description => format!("{error} ({})", description.escape_debug()),
        }
    }
}

fn tokens(answer: &Map<String, Value>) -> Result<TokenSet, LoginFault> {
    let kind = text(answer, "token_type").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(LoginFault::Malformed("token_type: it is not Bearer"));
    }
    let lifetime_s = number(answer, "expires_in").unwrap_or(300);
    Ok(TokenSet {
        access: secret(answer, "access_token").ok_or(LoginFault::Malformed("access_token"))?,
        refresh: secret(answer, "refresh_token"),
        expires_in_ms: lifetime_s.min(LIFETIME_S_MAX) * 1_000,
    })
}

fn text<'a>(answer: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    answer.get(name).and_then(Value::as_str)
}

fn secret(answer: &Map<String, Value>, name: &str) -> Option<Zeroizing<String>> {
    let secret = text(answer, name)?;
    let is_fit = (1..=TEXT_BYTES_MAX).contains(&secret.len())
        && !secret.contains(|c: char| !c.is_ascii_graphic());
    is_fit.then(|| Zeroizing::new(secret.to_owned()))
}

/// Reads a number, which some issuers write as a text.
fn number(answer: &Map<String, Value>, name: &str) -> Option<u64> {
    match answer.get(name)? {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    }
}
