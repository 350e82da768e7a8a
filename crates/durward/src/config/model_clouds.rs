//! Clouds that serve models of others: where, and with what proof instead of a key.

use ::models::upstream::Key;

use super::expand::Secret;
use super::fault::{Fault, Position};
use super::section::Section;
use super::settings::Warning;
use super::values::ProviderKind;

/// Longest name of a place in a cloud, in bytes.
const PLACE_BYTES_MAX: usize = 64;

/// What a provider in a cloud has beside what all have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cloud {
    Bedrock {
        region: String,
        /// What requests are signed with; without it the provider has keys as others have.
        signing: Option<Signing>,
    },
}

/// A key of AWS that requests are signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    pub access: Secret,
    pub secret: Secret,
    pub token: Option<Secret>,
}

impl Signing {
    /// For the provider; `None` where a part of it is empty, or holds a character that no key has.
    pub fn key(&self) -> Option<Key> {
        let token = self.token.as_ref().map(Secret::reveal);
        Key::aws(self.access.reveal(), self.secret.reveal(), token)
    }
}

/// The keys of the file that are for one kind alone.
const OWN: [(&str, ProviderKind); 4] = [
    ("region", ProviderKind::Bedrock),
    ("access_key", ProviderKind::Bedrock),
    ("secret_key", ProviderKind::Bedrock),
    ("session_token", ProviderKind::Bedrock),
];

/// Refuses the cloud whose API is not spoken yet, with the way that there is, instead of as a misspelled kind.
pub(super) fn refuse(section: &Section<'_>) -> Result<(), Fault> {
    let kind = section.text("kind")?;
    if kind.is_none_or(|kind| kind.value.value != "vertex") {
        return Ok(());
    }
    let fault = section.fault(
        "kind",
        "\"vertex\": tokens of service accounts are not built",
    );
    Err(fault.hint("Gemini takes a key: kind: google; a gateway that fetches tokens for Vertex can stand behind kind: openai with its base_url"))
}

/// Reads what is for the cloud of this kind, and refuses what is for another.
pub(super) fn read(
    section: &Section<'_>,
    kind: ProviderKind,
    at: Position,
    warnings: &mut Vec<Warning>,
) -> Result<Option<Cloud>, Fault> {
    let foreign =
        |(name, own): &&(&str, ProviderKind)| *own != kind && section.member(name).is_some();
    if let Some((name, _)) = OWN.iter().find(foreign) {
        return Err(section.fault(name, format!("is not for providers of kind {kind}")));
    }
    match kind {
        ProviderKind::Bedrock => bedrock(section, at, warnings).map(Some),
        _ => Ok(None),
    }
}

fn bedrock(
    section: &Section<'_>,
    at: Position,
    warnings: &mut Vec<Warning>,
) -> Result<Cloud, Fault> {
    let region = place(section, "region", "us-east-1")?;
    let mut literal = false;
    let mut secret = |name: &str| -> Result<Option<Secret>, Fault> {
        let found = section.secret(name)?;
        Ok(found.map(|(secret, _, in_file)| {
            // The name of a key is no secret, and is hidden all the same.
            literal |= in_file && name != "access_key";
            secret
        }))
    };
    let (access, own) = (secret("access_key")?, secret("secret_key")?);
    let token = secret("session_token")?;
    let has_keys = section.member("api_key").is_some() || section.member("api_keys").is_some();
    let signing = match (access, own) {
        (Some(access), Some(secret)) if !has_keys => Some(Signing {
            access,
            secret,
            token,
        }),
        (None, None) if has_keys && token.is_none() => None,
        (None, None) if !has_keys && token.is_none() => {
            return Err(section.own_fault("has no key").hint(
                "write access_key: \"${AWS_ACCESS_KEY_ID}\" and secret_key: \"${AWS_SECRET_ACCESS_KEY}\", or api_key: with a key of Bedrock's own",
            ));
        }
        (Some(_), Some(_)) => {
            return Err(section
                .own_fault("has access_key and api_key")
                .hint("write two providers: the one signs, the other shows its key"));
        }
        _ => {
            return Err(section
                .own_fault("has not both of access_key and secret_key")
                .hint("both belong together; session_token is for them where the key is for a session"));
        }
    };
    if signing.as_ref().is_some_and(|own| own.key().is_none()) {
        let why = "has a key that is empty, or holds a character that no key has";
        return Err(section.own_fault(why));
    }
    if literal {
        warnings.push(Warning {
            line: Some(at.line),
            message: "the file contains a secret key; write ${NAME} and set the variable where Durward is started".to_owned(),
        });
    }
    Ok(Cloud::Bedrock { region, signing })
}

/// The name of a place: part of a host's name.
fn place(section: &Section<'_>, name: &str, example: &str) -> Result<String, Fault> {
    let Some(found) = section.text(name)? else {
        return Err(section
            .own_fault(format!("has no {name}"))
            .hint(format!("write {name}: {example}, or where your models are")));
    };
    let text = found.value.value;
    let is_good = (1..=PLACE_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !is_good {
        let why = format!(
            "is none: it has lower-case letters, digits and \"-\" alone, such as {example}"
        );
        return Err(section.fault(name, why));
    }
    Ok(text)
}
