//! `state`: the store that replicas share.

use stores::OnLoss;

use super::expand::Secret;
use super::fault::{Fault, Position};
use super::rows::{Row, row};
use super::section::Section;
use super::settings::{Origin, Setting};
use super::values::Choice;

/// Most replicas of a fleet.
const REPLICAS_MAX: u64 = 1_024;
/// Schemes of a URL that a store has.
const SCHEMES: [&str; 2] = ["redis://", "rediss://"];

impl Choice for OnLoss {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", Self::Refuse), ("share", Self::Share)];
}

/// Store that replicas share, and the part that this one has.
#[derive(Debug, Clone)]
pub struct StateStore {
    pub url: Setting<Secret>,
    pub password: Option<Setting<Secret>>,
    pub prefix: Setting<String>,
    /// Name of this replica.
    pub replica: Setting<String>,
    pub replicas: Setting<u64>,
    pub on_loss: Setting<OnLoss>,
}

impl StateStore {
    /// Returns the settings as they are shown: without name and password.
    pub fn rows(&self) -> Vec<Row> {
        let hidden = |_: &Secret| "***".to_owned();
        let mut rows = vec![row("state.url", &self.url, |url| {
            without_login(url.reveal())
        })];
        rows.extend(
            self.password
                .iter()
                .map(|password| row("state.password", password, hidden)),
        );
        rows.extend([
            row("state.prefix", &self.prefix, Clone::clone),
            row("state.replica", &self.replica, Clone::clone),
            row("state.replicas", &self.replicas, ToString::to_string),
            row("state.on_loss", &self.on_loss, |on_loss| {
                super::values::word(*on_loss).to_owned()
            }),
        ]);
        rows
    }
}

/// Returns a URL without what is before `@`.
fn without_login(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => url.to_owned(),
    }
}

fn setting((secret, at, _): (Secret, Position, bool)) -> Setting<Secret> {
    Setting {
        value: secret,
        origin: Origin::File(at),
    }
}

/// Reads the section; `None` if there is none.
pub fn read(top: &Section<'_>) -> Result<Option<StateStore>, Fault> {
    if top.member("state").is_none() {
        return Ok(None);
    }
    let section = top.section("state")?;
    let Some(url) = section.secret("url")?.map(setting) else {
        return Err(section
            .own_fault("has no url")
            .hint("write url: redis://HOST:6379, or rediss:// for TLS"));
    };
    if !SCHEMES
        .iter()
        .any(|scheme| url.value.reveal().starts_with(scheme))
    {
        return Err(section
            .own_fault("has a url that is neither redis:// nor rediss://")
            .hint("write url: redis://HOST:6379, or rediss:// for TLS"));
    }
    let name = |text: &str| {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
        match (1..=64).contains(&text.len()) && text.chars().all(is_valid) {
            true => Ok(text.to_owned()),
            false => Err("is not 1 to 64 letters, digits and . _ -".to_owned()),
        }
    };
    let Some(replica) = section.read("replica", name)? else {
        return Err(section.own_fault("has no replica").hint(
            "write replica: with a name that no other replica has, such as \"${HOSTNAME}\"",
        ));
    };
    let prefix = section.read("prefix", name)?;
    let replicas = section.number("replicas", 1..=REPLICAS_MAX)?;
    let on_loss = section.choice("on_loss")?;
    Ok(Some(StateStore {
        url,
        password: section.secret("password")?.map(setting),
        prefix: prefix.unwrap_or_else(|| Setting::default("durward".to_owned())),
        replica,
        replicas: replicas.unwrap_or_else(|| Setting::default(1)),
        on_loss: on_loss.unwrap_or_else(|| Setting::default(OnLoss::Refuse)),
    }))
}
