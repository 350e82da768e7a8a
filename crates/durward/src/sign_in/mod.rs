//! A person who is signed in on this machine: `durward login`, `logout`, `whoami`, and the caller of other commands.

mod commands;
mod store;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use ::identity::{Issuers, LoginFault, OidcClient, TokenSet};
use gate::Caller;
use gate::caller::{Proof, SignIn};
use gate::identity::{Authenticate as _, Credential, IdentityFault};
use state::DirectoryLock;

use crate::config::Settings;
use crate::config::identity::Issuer;
use crate::failure::{EXIT_IDENTITY_CHANGED, EXIT_ISSUER_UNREACHABLE, EXIT_NOT_SIGNED_IN, Failure};
use crate::local;
use crate::places::Places;

pub use commands::{
    LOGIN_HELP, LOGOUT_HELP, LoginArgs, LogoutArgs, WHOAMI_HELP, WhoamiArgs, login, logout, whoami,
};
use store::{SignInStore, StoredSignIn};

/// How long before its end an access token is refreshed, in milliseconds; half of its lifetime if that is shorter.
const REFRESH_BEFORE_MS_MAX: i64 = 5 * 60_000;
/// How long after a failed refresh the issuer is tried again, in milliseconds.
const REFRESH_AGAIN_MS: i64 = 30_000;
/// How long a sign-in lasts, in milliseconds.
const SESSION_MS: i64 = 8 * 3_600_000;
/// How long before its end a person is warned, in milliseconds.
const WARN_BEFORE_MS: i64 = 15 * 60_000;
/// How often a running session looks whether its person is still signed in.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// The person in whose name a command acts.
pub struct SignedIn {
    /// Caller of its calls.
    pub caller: Caller,
    settings: Settings,
    places: Places,
}

impl Failure {
    fn of_login(fault: &LoginFault) -> Self {
        let code = match fault.is_unreachable() {
            true => EXIT_ISSUER_UNREACHABLE,
            false => EXIT_NOT_SIGNED_IN,
        };
        Self {
            code,
            message: fault.to_string(),
        }
    }

    fn not_signed_in(why: &str) -> Self {
        Self {
            code: EXIT_NOT_SIGNED_IN,
            message: format!("{why}\n  hint: durward login"),
        }
    }
}

/// Returns the caller of commands that act for the user of this machine: who is signed in, else the local user. Refreshes the
/// access token if it ends soon.
///
/// # Errors
/// With exit code 13 if `identity.required` is set without a sign-in, or the sign-in has ended, with 12 if the issuer
/// cannot be reached and the access token has ended.
pub fn caller(
    settings: &Settings,
    places: &Places,
    err: &mut dyn Write,
) -> Result<Option<SignedIn>, Failure> {
    if !settings.identity.is_on() {
        return Ok(None);
    }
    let is_required = settings.identity.required.value;
    let store = SignInStore::of(places);
    let Some(stored) = store.read()? else {
        return match is_required {
            true => Err(Failure::not_signed_in(
                "nobody is signed in, and identity.required is set",
            )),
            false => Ok(None),
        };
    };
    let stored = refresh_if_due(&store, settings, stored)?;
    let now_ms = local::now_ms();
    let left_ms = stored.session_end_ms() - now_ms;
    if left_ms < WARN_BEFORE_MS {
        let minutes = left_ms / 60_000;
        // Without standard error the command works on.
        let _ = writeln!(
            err,
            "durward: the sign-in ends in {minutes} minutes; run durward login"
        );
    }
    Ok(Some(SignedIn {
        caller: stored.caller(),
        settings: settings.clone(),
        places: places.clone(),
    }))
}

/// Returns the sign-in, with its tokens refreshed if they are due.
fn refresh_if_due(
    store: &SignInStore,
    settings: &Settings,
    stored: StoredSignIn,
) -> Result<StoredSignIn, Failure> {
    let issuer = issuer_of(settings, &stored)?;
    let now_ms = local::now_ms();
    if now_ms >= stored.session_end_ms() {
        return Err(Failure::not_signed_in(
            "the sign-in has ended after 8 hours",
        ));
    }
    match now_ms < stored.refresh_ms {
        true => Ok(stored),
        false => refresh_tokens(store, issuer, settings),
    }
}

impl SignedIn {
    /// Resolves when the person is no longer signed in, with the failure that the session ends with: another person has signed in
    /// (15), or the sign-in has ended (13). Refreshes tokens that are due.
    async fn end(&self) -> Failure {
        loop {
            tokio::time::sleep(WATCH_EVERY).await;
            let (settings, places) = (self.settings.clone(), self.places.clone());
            // Files, and requests to the issuer when a refresh is due.
            let read = tokio::task::spawn_blocking(move || {
                let store = SignInStore::of(&places);
                let stored = store.read()?;
                stored
                    .map(|own| refresh_if_due(&store, &settings, own))
                    .transpose()
            });
            match read.await {
                Ok(Ok(Some(stored))) if *stored.subject == *self.caller.subject => {}
                Ok(Ok(Some(stored))) => {
                    return Failure {
                        code: EXIT_IDENTITY_CHANGED,
                        message: format!(
                            "{} has signed in, and this session belongs to {}\n  hint: start it again",
                            stored.subject, self.caller.subject
                        ),
                    };
                }
                Ok(Ok(None)) => return Failure::not_signed_in("the person has signed out"),
                Ok(Err(failure)) => return failure,
                Err(error) => return Failure::other(error.to_string()),
            }
        }
    }
}

/// Resolves as [`SignedIn::end`] does; never without a sign-in.
pub async fn end_of(signed_in: Option<&SignedIn>) -> Failure {
    match signed_in {
        Some(signed_in) => signed_in.end().await,
        None => std::future::pending().await,
    }
}

fn issuer_of<'s>(settings: &'s Settings, stored: &StoredSignIn) -> Result<&'s Issuer, Failure> {
    let mut issuers = settings.identity.issuers.iter();
    let found = issuers.find(|own| own.options.issuer == stored.issuer);
    found.ok_or_else(|| {
        Failure::not_signed_in(&format!(
            "the sign-in is at {}, which identity.issuers no longer names",
            stored.issuer
        ))
    })
}

/// Refreshes the tokens of a sign-in. One process does it, others wait and read the result: an issuer that rotates refresh tokens
/// ends the session of a token that is used twice.
fn refresh_tokens(
    store: &SignInStore,
    issuer: &Issuer,
    settings: &Settings,
) -> Result<StoredSignIn, Failure> {
    let lock = DirectoryLock::acquire(store.directory()).map_err(Failure::journal)?;
    let now_ms = local::now_ms();
    let Some(stored) = store.read()? else {
        return Err(Failure::not_signed_in("the person has signed out"));
    };
    if now_ms < stored.refresh_ms || stored.issuer != issuer.options.issuer {
        return Ok(stored);
    }
    let is_over = stored.expires_ms <= now_ms;
    let Some(refresh) = stored.refresh.clone() else {
        return match is_over {
            true => Err(Failure::not_signed_in(
                "the access token has expired, and the issuer gave no refresh token",
            )),
            false => Ok(stored),
        };
    };
    let tokens = on_runtime(async {
        let client = client_of(issuer).await?;
        client.refresh(&refresh).await
    })?;
    match tokens {
        Ok(tokens) => {
            let verified = on_runtime(verify_tokens(settings, &tokens))??;
            let renewed =
                StoredSignIn::of(issuer, &verified, &tokens, now_ms).in_session_of(&stored);
            if renewed.subject != stored.subject {
                return Err(Failure {
                    code: EXIT_IDENTITY_CHANGED,
                    message: "the issuer has refreshed the sign-in as another person".into(),
                });
            }
            store.write(&renewed)?;
            drop(lock);
            Ok(renewed)
        }
        // The access token counts until its end; the issuer is tried again later.
        Err(fault) if fault.is_unreachable() && !is_over => {
            let stored = StoredSignIn {
                refresh_ms: now_ms.saturating_add(REFRESH_AGAIN_MS),
                ..stored
            };
            store.write(&stored)?;
            Ok(stored)
        }
        Err(LoginFault::Refused(why)) => Err(Failure::not_signed_in(&format!(
            "the session has ended at the issuer: {why}"
        ))),
        Err(fault) => Err(Failure::of_login(&fault)),
    }
}

async fn client_of(issuer: &Issuer) -> Result<OidcClient, LoginFault> {
    let client_id = issuer.options.client_id.clone();
    let client_id = client_id.ok_or(LoginFault::Unsupported(
        "client: identity.issuers.NAME.client_id is not set",
    ))?;
    OidcClient::discover(issuer.options.clone(), client_id, issuer.scopes.clone()).await
}

/// Verifies an access token as `durward serve` does, and returns its caller.
async fn verify_tokens(settings: &Settings, tokens: &TokenSet) -> Result<Caller, Failure> {
    let issuers = Arc::new(Issuers::new(settings.identity.options()));
    let now_ms = local::now_ms();
    let _ = issuers.fetch_for(&tokens.access, now_ms).await;
    let shown = Credential::bearer(&tokens.access).at_path(Some("/mcp"));
    issuers.identify(&shown, now_ms).map_err(|fault| {
        let code = match fault {
            IdentityFault::Token(fault) if fault.is_passing() => EXIT_ISSUER_UNREACHABLE,
            _ => EXIT_NOT_SIGNED_IN,
        };
        Failure {
            code,
            message: format!(
                "the issuer's access token is not accepted: {}",
                fault.sentence()
            ),
        }
    })
}

fn on_runtime<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start the runtime: {error}")))?;
    Ok(runtime.block_on(work))
}

impl StoredSignIn {
    fn of(issuer: &Issuer, caller: &Caller, tokens: &TokenSet, now_ms: i64) -> Self {
        let lifetime_ms = i64::try_from(tokens.expires_in_ms).unwrap_or(i64::MAX);
        let sign_in = caller.sign_in.as_deref().cloned().unwrap_or_default();
        let texts = |list: &[Arc<str>]| list.iter().map(|text| text.to_string()).collect();
        let expires_ms = caller.until_ms.unwrap_or(i64::MAX);
        let expires_ms = expires_ms.min(now_ms.saturating_add(lifetime_ms));
        let early_ms = (expires_ms.saturating_sub(now_ms) / 2).min(REFRESH_BEFORE_MS_MAX);
        Self {
            issuer: issuer.options.issuer.clone(),
            subject: caller.subject.to_string(),
            groups: texts(&caller.groups),
            scopes: texts(&sign_in.scopes),
            sid: sign_in.sid.as_deref().map(str::to_owned),
            client_id: sign_in.client_id.as_deref().map(str::to_owned),
            began_ms: now_ms,
            expires_ms,
            refresh_ms: expires_ms.saturating_sub(early_ms),
            access: tokens.access.clone(),
            refresh: tokens.refresh.clone(),
        }
    }

    /// Returns the same in the session of an earlier sign-in, with its refresh token if there is no new one.
    fn in_session_of(self, earlier: &Self) -> Self {
        Self {
            began_ms: earlier.began_ms,
            refresh: self.refresh.or_else(|| earlier.refresh.clone()),
            ..self
        }
    }

    fn session_end_ms(&self) -> i64 {
        self.began_ms.saturating_add(SESSION_MS)
    }

    fn caller(&self) -> Caller {
        let arcs = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
        let sign_in = SignIn {
            issuer: self.issuer.as_str().into(),
            scopes: arcs(&self.scopes),
            sid: self.sid.as_deref().map(Into::into),
            client_id: self.client_id.as_deref().map(Into::into),
        };
        Caller {
            subject: self.subject.as_str().into(),
            groups: arcs(&self.groups),
            // The process is the user's own and is not shared.
            proof: Proof::LocalUser,
            sign_in: Some(Arc::new(sign_in)),
            ..Caller::default()
        }
    }
}
