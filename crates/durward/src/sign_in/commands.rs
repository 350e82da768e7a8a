//! `durward login`, `durward logout`, `durward whoami`.

use std::io::{self, Write};

use ::identity::LoginFault;
use clap::Args;
use serde_json::json;
use state::DirectoryLock;
use state::directory::create_private;
use zeroize::Zeroizing;

use super::store::{SignInStore, StoredSignIn};
use super::{client_of, issuer_of, on_runtime, verify_tokens};
use crate::config::Settings;
use crate::config::identity::Issuer;
use crate::failure::{EXIT_NOT_SIGNED_IN, Failure};
use crate::layout;
use crate::local;
use crate::places::Places;

pub const LOGIN_HELP: &str = "\
Examples:
  durward login                 at the only issuer of durward.yaml
  durward login company         at the issuer of this name

Prints a URL and a code. Open the URL in any browser, compare the code, and sign in. The tokens are stored sealed in the state
directory, and refreshed when they are needed. From then on `durward run` and `durward call` act in your name: rules and
records name you as ISSUER#SUBJECT. A sign-in lasts 8 hours.

Exit codes: 0 signed in; 12 the issuer cannot be reached; 13 not signed in; 16 wrong configuration.";

pub const LOGOUT_HELP: &str = "\
Examples:
  durward logout
  durward logout --federated    also print the page that ends your session at the issuer

Revokes the refresh token at the issuer and deletes the stored tokens. A `durward run` of yours ends within a second.

Exit codes: 0 signed out; 12 the issuer cannot be reached, and the tokens are deleted all the same.";

pub const WHOAMI_HELP: &str = "\
Examples:
  durward whoami
  durward whoami --json | jq -r .subject

Exit codes: 0 somebody is signed in; 13 nobody is.";

/// Arguments of `durward login`.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The issuer's name in durward.yaml [default: the only one]
    #[arg(value_name = "ISSUER")]
    issuer: Option<String>,
}

/// Arguments of `durward logout`.
#[derive(Debug, Args)]
pub struct LogoutArgs {
    /// Print the page at which a browser ends the session at the issuer
    #[arg(long)]
    federated: bool,
}

/// Arguments of `durward whoami`.
#[derive(Debug, Args)]
pub struct WhoamiArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Returns the exit code of a command, and prints why it failed.
fn exit_code(done: Result<(), Failure>, err: &mut dyn Write) -> u8 {
    match done {
        Ok(()) => 0,
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}

fn print_failure(error: io::Error) -> Failure {
    Failure::other(format!("cannot print: {error}"))
}

/// Signs a person in; returns the exit code.
pub fn login(
    args: &LoginArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let done = choose_issuer(args.issuer.as_deref(), settings)
        .and_then(|issuer| sign_in(issuer, settings, places, out));
    exit_code(done, err)
}

fn choose_issuer<'s>(name: Option<&str>, settings: &'s Settings) -> Result<&'s Issuer, Failure> {
    let issuers = &settings.identity.issuers;
    let names: Vec<&str> = issuers.iter().map(|own| own.name.as_str()).collect();
    let found = match (name, issuers.as_slice()) {
        (_, []) => {
            return Err(Failure::configuration(
                "durward.yaml names no issuer\n  hint: write identity: { issuers: { company: { issuer: URL, client_id: durward, audiences: [durward] } } }",
            ));
        }
        (None, [only]) => Some(only),
        (None, _) => {
            return Err(Failure::configuration(format!(
                "durward.yaml names several issuers\n  hint: durward login NAME, one of {}",
                names.join(", ")
            )));
        }
        (Some(name), all) => all.iter().find(|own| own.name == name),
    };
    let unknown = || {
        let shown = name.unwrap_or_default().escape_debug();
        Failure::configuration(format!(
            "durward.yaml names no issuer \"{shown}\"; it names {}",
            names.join(", ")
        ))
    };
    let issuer = found.ok_or_else(unknown)?;
    match issuer.options.client_id {
        Some(_) => Ok(issuer),
        None => Err(Failure::configuration(format!(
            "identity.issuers.{0}.client_id is not set\n  hint: register a public client with the device flow at the issuer, and write its id",
            issuer.name
        ))),
    }
}

fn sign_in(
    issuer: &Issuer,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut random = Zeroizing::new([0_u8; 32]);
    local::random(&mut *random).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
    let tokens = on_runtime(async {
        let of_login = |fault| Failure::of_login(&fault);
        let client = client_of(issuer).await.map_err(of_login)?;
        let begun = client.begin(&random).await.map_err(of_login)?;
        let page = begun.verification_uri_complete.as_deref();
        let page = page.unwrap_or(&begun.verification_uri);
        writeln!(out, "open   {page}\ncode   {}", begun.user_code)
            .and_then(|()| out.flush())
            .map_err(print_failure)?;
        client.wait(&begun).await.map_err(of_login)
    })??;
    let caller = on_runtime(verify_tokens(settings, &tokens))??;
    let stored = StoredSignIn::of(issuer, &caller, &tokens, local::now_ms());
    let store = SignInStore::of(places);
    create_private(store.directory()).map_err(Failure::journal)?;
    // A refresh of another process must not write the tokens of an earlier person after these.
    let lock = DirectoryLock::acquire(store.directory()).map_err(Failure::journal)?;
    store.write(&stored)?;
    drop(lock);
    writeln!(out, "signed in as {}", stored.subject).map_err(print_failure)
}

/// Signs the person out; returns the exit code.
pub fn logout(
    args: &LogoutArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    exit_code(sign_out(args, settings, places, out), err)
}

fn sign_out(
    args: &LogoutArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let store = SignInStore::of(places);
    if !store.directory().exists() {
        return writeln!(out, "nobody was signed in").map_err(print_failure);
    }
    // No refresh of another process may write the tokens again.
    let lock = DirectoryLock::acquire(store.directory()).map_err(Failure::journal)?;
    let stored = store.read();
    // Whatever the issuer says, the tokens are gone from here.
    store.remove()?;
    drop(lock);
    let Some(stored) = stored? else {
        return writeln!(out, "nobody was signed in").map_err(print_failure);
    };
    writeln!(out, "signed out {}", stored.subject).map_err(print_failure)?;
    let issuer = issuer_of(settings, &stored)?;
    let page = on_runtime(async {
        let client = client_of(issuer).await?;
        if let Some(refresh) = &stored.refresh {
            client.revoke(refresh).await?;
        }
        Ok::<_, LoginFault>(client.end_session_url())
    })?;
    let page = page.map_err(|fault| {
        Failure::of_login(&fault)
            .about("the tokens are deleted here, and not revoked at the issuer")
    })?;
    match (args.federated, page) {
        (false, _) => Ok(()),
        (true, Some(page)) => writeln!(out, "open   {page}").map_err(print_failure),
        (true, None) => Err(Failure::other(
            "the issuer has no page that ends a session (end_session_endpoint)",
        )),
    }
}

/// Prints who is signed in; returns the exit code.
pub fn whoami(args: &WhoamiArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    exit_code(print_person(args, places, out), err)
}

fn print_person(args: &WhoamiArgs, places: &Places, out: &mut dyn Write) -> Result<(), Failure> {
    let stored = SignInStore::of(places).read()?;
    let now_ms = local::now_ms();
    let stored = stored.filter(|stored| stored.session_end_ms() > now_ms);
    let Some(stored) = stored else {
        return Err(Failure {
            code: EXIT_NOT_SIGNED_IN,
            message: "nobody is signed in\n  hint: durward login".into(),
        });
    };
    let left_min = (stored.session_end_ms() - now_ms) / 60_000;
    let printed = match args.json {
        true => layout::json(
            &json!({
                "subject": stored.subject, "issuer": stored.issuer, "groups": stored.groups,
                "scopes": stored.scopes, "session_end_ms": stored.session_end_ms(),
                "token_end_ms": stored.expires_ms,
            }),
            out,
        ),
        false => {
            let list = |texts: &[String]| match texts {
                [] => "-".to_owned(),
                texts => texts.join(", "),
            };
            writeln!(
                out,
                "{}\ngroups  {}\nscopes  {}\nends    in {left_min} minutes",
                stored.subject,
                list(&stored.groups),
                list(&stored.scopes)
            )
        }
    };
    printed.map_err(print_failure)
}
