//! `identity`: issuers at which people sign in, and how their access tokens are verified.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use identity::{Algorithm, IdentityOptions, IssuerOptions};

use super::expand::Text;
use super::fault::Fault;
use super::rows::{Row, row};
use super::section::Section;
use super::settings::Setting;
use super::values::{self, Choice, Span};

/// Most issuers.
const ISSUERS_MAX: usize = 16;
/// Longest claim, audience, scope or client id, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Tolerated difference of clocks.
const SKEW: std::ops::RangeInclusive<Span> = Span(0)..=Span(300_000);
/// Longest lifetime of a token that may be configured.
const LIFETIME: std::ops::RangeInclusive<Span> = Span(60_000)..=Span(7 * 86_400_000);
/// How long fetched keys may count without the issuer.
const KEYS: std::ops::RangeInclusive<Span> = Span(60_000)..=Span(7 * 86_400_000);

impl Choice for Algorithm {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("RS256", Self::Rs256),
        ("PS256", Self::Ps256),
        ("ES256", Self::Es256),
        ("EdDSA", Self::EdDsa),
    ];
}

/// Sign-in of people.
#[derive(Debug, Clone)]
pub struct Identity {
    /// In the order of the file.
    pub issuers: Vec<Issuer>,
    pub public_url: Setting<Option<String>>,
    /// Whether commands act only in the name of a person who is signed in.
    pub required: Setting<bool>,
    pub scopes: Setting<Vec<String>>,
    pub skew: Setting<Span>,
    pub lifetime_max: Setting<Span>,
    pub keys_max: Setting<Span>,
}

/// An issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    pub name: String,
    pub options: IssuerOptions,
    /// File of the certificate authorities.
    pub ca: Option<std::path::PathBuf>,
    /// Scopes that `durward login` requests.
    pub scopes: Vec<String>,
}

impl Default for Identity {
    fn default() -> Self {
        let usual = IdentityOptions::default();
        let span = |ms: i64| Setting::default(Span(ms.unsigned_abs()));
        Self {
            issuers: Vec::new(),
            public_url: Setting::default(None),
            required: Setting::default(false),
            scopes: Setting::default(Vec::new()),
            skew: span(usual.skew_ms),
            lifetime_max: span(usual.lifetime_ms_max),
            keys_max: span(usual.keys_ms_max),
        }
    }
}

impl Identity {
    /// Returns whether people sign in here.
    pub fn is_on(&self) -> bool {
        !self.issuers.is_empty()
    }

    /// Returns the options of verification.
    pub fn options(&self) -> IdentityOptions {
        let ms = |span: &Setting<Span>| i64::try_from(span.value.0).unwrap_or(i64::MAX);
        IdentityOptions {
            issuers: self.issuers.iter().map(|own| own.options.clone()).collect(),
            public_url: self.public_url.value.clone(),
            scopes: self.scopes.value.clone(),
            skew_ms: ms(&self.skew),
            lifetime_ms_max: ms(&self.lifetime_max),
            keys_ms_max: ms(&self.keys_max),
        }
    }

    /// Returns the settings in force, if people sign in.
    pub fn rows(&self) -> Vec<Row> {
        if !self.is_on() {
            return Vec::new();
        }
        vec![
            row("identity.public_url", &self.public_url, |url| {
                url.clone().unwrap_or_else(|| "none".to_owned())
            }),
            row("identity.required", &self.required, |is| {
                values::word(*is).to_owned()
            }),
            row("identity.scopes", &self.scopes, |scopes| scopes.join(" ")),
            row("identity.skew", &self.skew, ToString::to_string),
            row(
                "identity.lifetime_max",
                &self.lifetime_max,
                ToString::to_string,
            ),
            row("identity.keys_max", &self.keys_max, ToString::to_string),
        ]
    }

    /// Returns the key of the issuers, if they differ.
    pub fn differ(&self, other: &Self) -> Option<&'static str> {
        (self.issuers != other.issuers).then_some("identity.issuers")
    }
}

/// Reads the section.
pub fn read(top: &Section<'_>) -> Result<Identity, Fault> {
    let mut identity = Identity::default();
    let section = top.section("identity")?;
    if let Some(url) = section.text("public_url")? {
        IdentityOptions::check_public_url(&url.value.value)
            .map_err(|fault| section.fault("public_url", fault))?;
        identity.public_url = Setting {
            value: Some(url.value.value.trim_end_matches('/').to_owned()),
            origin: url.origin,
        };
    }
    if let Some(required) = section.choice("required")? {
        identity.required = required;
    }
    if let Some(scopes) = words(&section, "scopes")? {
        identity.scopes = scopes;
    }
    for (setting, name, range) in [
        (&mut identity.skew, "skew", SKEW),
        (&mut identity.lifetime_max, "lifetime_max", LIFETIME),
        (&mut identity.keys_max, "keys_max", KEYS),
    ] {
        if let Some(found) = section.within(name, range)? {
            *setting = found;
        }
    }
    for (member, own) in section.each("issuers", "identity.issuers.*")? {
        let issuer = issuer(&member.name, &own, identity.public_url.value.is_some())?;
        let is_named_twice = identity
            .issuers
            .iter()
            .any(|known| known.options.issuer == issuer.options.issuer);
        if is_named_twice {
            return Err(own.fault("issuer", "is the issuer of another entry as well"));
        }
        identity.issuers.push(issuer);
    }
    if identity.issuers.len() > ISSUERS_MAX {
        return Err(section.fault("issuers", format!("are more than {ISSUERS_MAX}")));
    }
    if identity.issuers.is_empty() && top.member("identity").is_some() {
        return Err(section
            .own_fault("names no issuer")
            .hint("write identity: { issuers: { company: { issuer: \"https://id.example/realms/company\", audiences: [durward] } } }"));
    }
    Ok(identity)
}

fn issuer(name: &str, section: &Section<'_>, has_public_url: bool) -> Result<Issuer, Fault> {
    let Some(url) = section.text("issuer")? else {
        return Err(section
            .own_fault("has no issuer")
            .hint("write issuer: with the URL that its metadata document names"));
    };
    let list = |name: &str| Ok(words(section, name)?.map(|found| found.value));
    let claim = |name: &str, usual: &str| {
        let found = section.text(name)?;
        let text = found.map_or_else(|| usual.to_owned(), |found| found.value.value);
        match (1..=NAME_BYTES_MAX).contains(&text.len()) {
            true => Ok(text),
            false => Err(section.fault(name, "is not the name of a claim")),
        }
    };
    let client_id = section.text("client_id")?;
    let ca = section.path("ca")?.map(|found| found.value);
    let options = IssuerOptions {
        issuer: url.value.value,
        audiences: list("audiences")?.unwrap_or_default(),
        algorithms: algorithms(section)?,
        subject_claim: claim("subject_claim", "sub")?,
        groups_claim: claim("groups_claim", "groups")?,
        client_id: client_id.map(|found| found.value.value),
        authorities: ca
            .as_deref()
            .map(|ca| authorities(section, ca))
            .transpose()?,
    };
    options.check(has_public_url).map_err(|fault| {
        let member = match fault {
            identity::IssuerFault::Url | identity::IssuerFault::UrlUnfit => "issuer",
            identity::IssuerFault::AudienceOfAll | identity::IssuerFault::NoAudience => "audiences",
        };
        section.fault(member, fault)
    })?;
    Ok(Issuer {
        name: name.to_owned(),
        options,
        ca,
        scopes: list("scopes")?.unwrap_or_else(|| vec!["openid".to_owned()]),
    })
}

fn algorithms(section: &Section<'_>) -> Result<Vec<Algorithm>, Fault> {
    let Some(list) = section.list("algorithms")? else {
        return Ok(Algorithm::ALL.to_vec());
    };
    let known = |text: &Text| {
        values::of_word::<Algorithm>(&text.value).ok_or_else(|| {
            let shown = text.written.escape_debug();
            section
                .fault("algorithms", format!("holds \"{shown}\""))
                .hint("write RS256, PS256, ES256 or EdDSA")
        })
    };
    let algorithms: Vec<Algorithm> = list.value.iter().map(known).collect::<Result<_, _>>()?;
    match algorithms.is_empty() {
        true => Err(section.fault("algorithms", "is empty: every token would be refused")),
        false => Ok(algorithms),
    }
}

fn authorities(section: &Section<'_>, path: &Path) -> Result<Vec<u8>, Fault> {
    /// Largest file of certificate authorities, in bytes.
    const PEM_BYTES_MAX: u64 = 1024 * 1024;
    let mut pem = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PEM_BYTES_MAX).read_to_end(&mut pem));
    match read {
        Ok(_) => Ok(pem),
        Err(error) => {
            Err(section.fault("ca", format!("cannot be read: {}: {error}", path.display())))
        }
    }
}

/// Reads a list of words without blanks.
fn words(section: &Section<'_>, name: &str) -> Result<Option<Setting<Vec<String>>>, Fault> {
    let Some(list) = section.list(name)? else {
        return Ok(None);
    };
    let unfit = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '\\';
    for text in &list.value {
        let value = &text.value;
        if value.is_empty() || value.len() > NAME_BYTES_MAX || value.contains(unfit) {
            let shown = text.written.escape_debug();
            return Err(section.fault(name, format!("holds \"{shown}\", which is not one word")));
        }
    }
    Ok(Some(Setting {
        origin: list.origin,
        value: list.value.into_iter().map(|text| text.value).collect(),
    }))
}
