//! Model providers and aliases in the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::models::upstream::UnsupportedMembers;
use ::models::{Alias, BudgetRule, Most, Per, Price, Rotation};

use super::expand::{Secret, Text};
use super::fault::{Fault, Position};
use super::model_cache::{self, Cache};
use super::model_clouds::{self, Cloud};
use super::rows::{Row, row};
use super::section::Section;
use super::server::check_url;
use super::settings::{Setting, Warning};
use super::unpriced;
use super::values::{Choice, ProviderKind, Registration, Span};

/// How long all attempts of a call may take, in milliseconds.
const DEADLINE_MS: std::ops::RangeInclusive<Span> = Span(100)..=Span(3_600_000);
/// How long a stream may last, in milliseconds.
const STREAM_MS: std::ops::RangeInclusive<Span> = Span(1_000)..=Span(86_400_000);
/// The length of a budget's window, in milliseconds.
pub(super) const WINDOW_MS: std::ops::RangeInclusive<Span> = Span(1_000)..=Span(366 * 86_400_000);
/// Largest weight of a target.
const WEIGHT_MAX: u64 = 1_000;
/// Most tokens of a budget.
const TOKENS_MAX: u64 = 1_000_000_000_000_000;
/// Calls of a user in a minute, where nothing is said.
const REQUESTS: u64 = 60;
/// Most calls of a user in a minute that can be named.
const REQUESTS_MAX: u64 = 1_000_000;
/// The time before a mock's tokens, in milliseconds.
const LATENCY_MS: std::ops::RangeInclusive<Span> = Span(0)..=Span(60_000);

/// Model providers and the names that lead to them.
#[derive(Debug, Clone)]
pub struct Models {
    pub providers: Vec<Provider>,
    pub aliases: Vec<Alias>,
    pub budgets: Vec<BudgetRule>,
    /// What models cost.
    pub prices: BTreeMap<String, Price>,
    /// Accounts, where there are any.
    pub accounts: Option<Accounts>,
    /// Whether and how replies are remembered.
    pub cache: Option<Cache>,
    /// Tokens that are reserved for a reply of unknown length.
    pub reserve: Setting<u64>,
    /// How long all attempts of a call may take.
    pub deadline: Setting<Span>,
    /// How long a stream may say nothing.
    pub stall: Setting<Span>,
    /// How long a stream may last.
    pub stream_max: Setting<Span>,
}

/// How accounts are kept.
#[derive(Debug, Clone)]
pub struct Accounts {
    /// Who may make one.
    pub register: Setting<Registration>,
    /// Calls of a user in a minute; 0: no bound.
    pub requests: Setting<u64>,
    /// Keys of this group may see to accounts.
    pub admin_group: Setting<Text>,
    /// Servers that tokens are good for.
    pub servers: Setting<Vec<Text>>,
}

impl PartialEq for Accounts {
    /// Where it stands in the file does not count.
    fn eq(&self, other: &Self) -> bool {
        let said = |own: &Self| {
            let (group, servers) = (own.admin_group.value.clone(), own.servers.value.clone());
            (own.register.value, own.requests.value, group, servers)
        };
        said(self) == said(other)
    }
}

/// A provider.
#[derive(Debug, Clone)]
pub struct Provider {
    pub name: String,
    pub at: Position,
    pub kind: ProviderKind,
    pub base_url: Option<Text>,
    pub keys: Vec<Secret>,
    pub ca: Option<PathBuf>,
    /// Any, where the list is empty.
    pub models: Vec<String>,
    /// Of a mock: milliseconds before each token.
    pub latency: Span,
    /// Of Azure's API.
    pub api_version: Option<String>,
    /// What becomes of members that its dialect has no word for.
    pub unsupported: UnsupportedMembers,
    /// In a cloud: where, and with what proof.
    pub cloud: Option<Cloud>,
}

impl PartialEq for Provider {
    /// Where it stands in the file does not count.
    fn eq(&self, other: &Self) -> bool {
        let said = |own: &Self| {
            let url = own.base_url.clone();
            let (keys, models) = (own.keys.clone(), own.models.clone());
            (
                own.name.clone(),
                own.kind,
                url,
                keys,
                own.ca.clone(),
                models,
                own.latency,
                own.api_version.clone(),
                own.unsupported,
                own.cloud.clone(),
            )
        };
        said(self) == said(other)
    }
}

impl Default for Models {
    fn default() -> Self {
        let face = ::models::FaceOptions::default();
        Self {
            providers: Vec::new(),
            aliases: Vec::new(),
            budgets: Vec::new(),
            prices: BTreeMap::new(),
            accounts: None,
            cache: None,
            reserve: Setting::default(16_384),
            deadline: Setting::default(Span(600_000)),
            stall: Setting::default(Span(face.stall_ms_max)),
            stream_max: Setting::default(Span(face.stream_ms_max)),
        }
    }
}

impl Models {
    /// What applies to all of them, where there are models at all.
    pub fn rows(&self) -> Vec<Row> {
        if self.providers.is_empty() {
            return Vec::new();
        }
        let text = |value: &Span| value.to_string();
        let mut rows = vec![
            row("models.deadline", &self.deadline, text),
            row("models.stall", &self.stall, text),
            row("models.stream_max", &self.stream_max, text),
            row("models.reserve", &self.reserve, ToString::to_string),
        ];
        if let Some(own) = &self.accounts {
            let names = |all: &Vec<Text>| {
                let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                all.join(", ")
            };
            let register = ("models.accounts.register", &own.register);
            let requests = ("models.accounts.requests", &own.requests);
            let group = ("models.accounts.admin_group", &own.admin_group);
            rows.extend([
                row(register.0, register.1, ToString::to_string),
                row(requests.0, requests.1, ToString::to_string),
                row(group.0, group.1, ToString::to_string),
                row("models.accounts.servers", &own.servers, names),
            ]);
        }
        rows.extend(self.cache.iter().flat_map(Cache::rows));
        rows
    }

    /// The keys of what is named and differs.
    pub fn differ(&self, other: &Self) -> Vec<&'static str> {
        let all = [
            ("models.providers", self.providers != other.providers),
            ("models.aliases", self.aliases != other.aliases),
            ("models.prices", self.prices != other.prices),
            ("models.budgets", self.budgets != other.budgets),
            ("models.accounts", self.accounts != other.accounts),
            ("models.cache", self.cache != other.cache),
        ];
        let differ = all.into_iter().filter(|(_, differ)| *differ);
        differ.map(|(key, _)| key).collect()
    }
}

impl Provider {
    /// How it is reached, as written.
    pub fn summary(&self) -> String {
        let place = self.base_url.as_ref().map(|url| format!(" at {url}"));
        format!("{}{}", self.kind, place.unwrap_or_default())
    }
}

/// Reads the section.
pub fn read(top: &Section<'_>, warnings: &mut Vec<Warning>) -> Result<Models, Fault> {
    let section = top.section("models")?;
    let mut models = Models::default();
    for (setting, name, range) in [
        (&mut models.deadline, "deadline", DEADLINE_MS),
        (&mut models.stall, "stall", DEADLINE_MS),
        (&mut models.stream_max, "stream_max", STREAM_MS),
    ] {
        if let Some(found) = section.within(name, range)? {
            *setting = found;
        }
    }
    for (member, section) in section.each("providers", "models.providers.*")? {
        models
            .providers
            .push(provider(&member.name, member.at, &section, warnings)?);
    }
    for (member, section) in section.each("aliases", "models.aliases.*")? {
        let deadline = section.within("deadline", DEADLINE_MS)?;
        let rotate = section.choice::<Rotation>("rotate")?;
        let tiers = section.lists("tiers")?;
        let text = |text: Text| text.value;
        models.aliases.push(Alias {
            name: member.name.clone(),
            tiers: tiers
                .into_iter()
                .map(|tier| tier.into_iter().map(text).collect())
                .collect(),
            rotate: rotate.map(|found| found.value).unwrap_or_default(),
            weights: weights(&section)?,
            overflow: overflow(&section)?,
            deadline_ms: deadline
                .map_or(models.deadline.value, |found| found.value)
                .0,
        });
    }
    if let Some(reserve) = section.number("reserve", 1..=TOKENS_MAX)? {
        models.reserve = reserve;
    }
    for (member, section) in section.each("prices", "models.prices.*")? {
        models.prices.insert(member.name.clone(), price(&section)?);
    }
    for (member, section) in section.each("budgets", "models.budgets.*")? {
        models.budgets.push(budget(&member.name, &section)?);
    }
    if section.member("accounts").is_some() {
        models.accounts = Some(accounts(&section.section("accounts")?)?);
    }
    if section.member("cache").is_some() {
        models.cache = Some(model_cache::read(&section.section("cache")?)?);
    }
    if models.providers.is_empty() && top.member("models").is_some() {
        return Err(section
            .own_fault("names no provider")
            .hint("write models: { providers: { openai: { kind: openai, api_key: \"${OPENAI_API_KEY}\" } } }"));
    }
    warnings.extend(
        unpriced::warnings(&models)
            .into_iter()
            .map(|message| Warning {
                line: Some(section.at.line),
                message,
            }),
    );
    Ok(models)
}

/// How accounts are kept.
fn accounts(section: &Section<'_>) -> Result<Accounts, Fault> {
    let usual = Text {
        written: "admin".to_owned(),
        value: "admin".to_owned(),
    };
    let register = section.choice("register")?;
    let requests = section.number("requests", 0..=REQUESTS_MAX)?;
    let group = section.text("admin_group")?;
    let servers = section.list("servers")?;
    Ok(Accounts {
        register: register.unwrap_or_else(|| Setting::default(Registration::Closed)),
        requests: requests.unwrap_or_else(|| Setting::default(REQUESTS)),
        admin_group: group.unwrap_or_else(|| Setting::default(usual)),
        servers: servers.unwrap_or_else(|| Setting::default(Vec::new())),
    })
}

/// Targets that read more.
fn overflow(section: &Section<'_>) -> Result<Vec<String>, Fault> {
    let listed = section.list("overflow")?.map(|found| found.value);
    let listed = listed.unwrap_or_default().into_iter();
    Ok(listed.map(|text| text.value).collect())
}

/// The shares of targets.
fn weights(section: &Section<'_>) -> Result<BTreeMap<String, u64>, Fault> {
    let read = |(target, text, at): (String, Text, Position)| match text.value.parse::<u64>() {
        Ok(weight) if weight <= WEIGHT_MAX => Ok((target, weight)),
        Ok(_) | Err(_) => Err(Fault::new(
            at,
            format!("the weight of \"{target}\" is not a whole number from 0 to {WEIGHT_MAX}"),
        )),
    };
    section.map("weights")?.into_iter().map(read).collect()
}

/// What a model costs, in dollars for a million tokens.
fn price(section: &Section<'_>) -> Result<Price, Fault> {
    let read = |name: &str| Ok(section.dollars(name)?.map(|found| found.value));
    let (Some(input), Some(output)) = (read("input")?, read("output")?) else {
        return Err(section
            .own_fault("has to have input and output")
            .hint("write input: and output: with the dollars for a million tokens"));
    };
    Ok(Price {
        input,
        output,
        cached: read("cached")?,
        written: read("written")?,
        reasoning: read("reasoning")?,
    })
}

fn budget(name: &str, section: &Section<'_>) -> Result<BudgetRule, Fault> {
    if !::models::catalogue::is_name(name) {
        let why = "cannot be a name here; use letters, digits and . _ - :";
        return Err(section.own_fault(why));
    }
    let tokens = section.number("tokens", 1..=TOKENS_MAX)?;
    let cost = section.dollars("cost")?;
    let requests = section.number("requests", 1..=TOKENS_MAX)?;
    let most = match (tokens, cost, requests) {
        (Some(tokens), None, None) => Most::Tokens(tokens.value),
        (None, Some(cost), None) => Most::Micros(cost.value),
        (None, None, Some(requests)) => Most::Requests(requests.value),
        (None, None, None) => {
            return Err(section
                .own_fault("has neither tokens nor cost nor requests")
                .hint("write tokens:, cost: or requests: with how much may be used"));
        }
        _ => {
            return Err(section
                .own_fault("has more than one of tokens, cost and requests")
                .hint("write two budgets: every call is on both"));
        }
    };
    let window = section.within("window", WINDOW_MS)?;
    let per = section.choice::<Per>("per")?;
    let groups = section
        .list("groups")?
        .map_or_else(Vec::new, |list| list.value);
    Ok(BudgetRule {
        name: name.to_owned(),
        most,
        window_ms: window.map_or(0, |found| found.value.0),
        per: per.map(|found| found.value).unwrap_or_default(),
        groups: groups.into_iter().map(|text| text.value).collect(),
    })
}

fn provider(
    name: &str,
    at: Position,
    section: &Section<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Provider, Fault> {
    let Some(kind) = section.choice::<ProviderKind>("kind")? else {
        let words: Vec<&str> = ProviderKind::WORDS.iter().map(|(word, _)| *word).collect();
        return Err(section
            .own_fault("has no kind")
            .hint(format!("write kind: with one of {}", words.join(", "))));
    };
    let base_url = section.text("base_url")?.map(|url| url.value);
    let secure = match &base_url {
        Some(url) => check_url(&url.value).map_err(|why| section.fault("base_url", why))?,
        None => true,
    };
    let keys = keys(section, at, secure, warnings)?;
    let others: &[&str] = match kind.value {
        ProviderKind::Mock => &[
            "base_url",
            "api_key",
            "api_keys",
            "ca",
            "api_version",
            "unsupported",
        ],
        ProviderKind::Azure => &["latency"],
        _ => &["latency", "api_version"],
    };
    if kind.value == ProviderKind::Azure && base_url.is_none() {
        return Err(section
            .own_fault("has no base_url")
            .hint("write base_url: https://RESOURCE.openai.azure.com"));
    }
    if let Some(other) = others.iter().find(|name| section.member(name).is_some()) {
        return Err(section.fault(
            other,
            format!("is not for providers of kind {}", kind.value),
        ));
    }
    let cloud = model_clouds::read(section, kind.value, at, warnings)?;
    let listed = section
        .list("models")?
        .map_or_else(Vec::new, |list| list.value);
    let latency = section.within("latency", LATENCY_MS)?;
    Ok(Provider {
        name: name.to_owned(),
        at,
        kind: kind.value,
        base_url,
        keys,
        ca: section.path("ca")?.map(|path| path.value),
        models: listed.into_iter().map(|text| text.value).collect(),
        latency: latency.map_or(Span(10), |found| found.value),
        api_version: section.text("api_version")?.map(|found| found.value.value),
        unsupported: section
            .choice("unsupported")?
            .map_or_else(UnsupportedMembers::default, |found| found.value),
        cloud,
    })
}

/// The keys of a provider.
fn keys(
    section: &Section<'_>,
    at: Position,
    secure: bool,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Secret>, Fault> {
    let mut keys = Vec::new();
    let mut literal = false;
    if let Some((key, _, in_file)) = section.secret("api_key")? {
        literal |= in_file;
        keys.push(key);
    }
    let listed = section.list("api_keys")?;
    for text in listed.map_or_else(Vec::new, |list| list.value) {
        literal |= !text.is_expanded();
        keys.push(Secret::new(text.value));
    }
    let is_key = |key: &Secret| ::models::upstream::Key::new(key.reveal()).is_some();
    if !keys.iter().all(is_key) {
        let why = "has a key that is empty or has a character that keys cannot have";
        return Err(section.own_fault(why));
    }
    for (is, message) in [
        (
            literal,
            "the file contains an api key; write ${NAME} and set the variable where Durward is started",
        ),
        (
            !secure && !keys.is_empty(),
            "the api key would be sent without encryption; use https",
        ),
    ] {
        if is {
            warnings.push(Warning {
                line: Some(at.line),
                message: message.to_owned(),
            });
        }
    }
    Ok(keys)
}
