//! Clouds that serve models of others: where, and with what proof instead of a key.

use std::path::{Path, PathBuf};

use ::models::upstream::Key;

use super::expand::Secret;
use super::fault::{Fault, Position};
use super::section::Section;
use super::settings::Warning;
use super::values::ProviderKind;

/// Longest name of a place in a cloud, in bytes.
const PLACE_BYTES_MAX: usize = 64;
/// Where `gcloud` leaves a user's credentials, below the home.
const GCLOUD_FILE: &str = ".config/gcloud/application_default_credentials.json";

/// What a provider in a cloud has beside what all have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cloud {
    Bedrock {
        region: String,
        /// What requests are signed with; without it the provider has keys as others have.
        signing: Option<Signing>,
    },
    Vertex {
        location: String,
        /// Where it is left out, the credential says it.
        project: Option<String>,
        tokens: TokenSource,
    },
}

/// Where access tokens of Google come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// The provider's keys are tokens.
    Keys,
    /// A credential of a service account or a user.
    Credentials(PathBuf),
    /// A file in which something else keeps a token.
    File(PathBuf),
    /// The server of the machine's metadata: its host.
    Metadata(String),
}

impl Cloud {
    /// The files that it names.
    pub fn files(&self) -> Option<&Path> {
        match self {
            Self::Vertex {
                tokens: TokenSource::Credentials(file) | TokenSource::File(file),
                ..
            } => Some(file),
            Self::Vertex { .. } | Self::Bedrock { .. } => None,
        }
    }
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
const OWN: [(&str, ProviderKind); 9] = [
    ("region", ProviderKind::Bedrock),
    ("access_key", ProviderKind::Bedrock),
    ("secret_key", ProviderKind::Bedrock),
    ("session_token", ProviderKind::Bedrock),
    ("location", ProviderKind::Vertex),
    ("project", ProviderKind::Vertex),
    ("credentials", ProviderKind::Vertex),
    ("token_file", ProviderKind::Vertex),
    ("metadata", ProviderKind::Vertex),
];

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
        ProviderKind::Vertex => vertex(section).map(Some),
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
        let why = "has a key that is empty or has a character that keys cannot have";
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

fn vertex(section: &Section<'_>) -> Result<Cloud, Fault> {
    let location = place(section, "location", "europe-west4")?;
    let project = section.text("project")?.map(|found| found.value.value);
    let is_project = |text: &String| {
        (1..=PLACE_BYTES_MAX).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.:".contains(&b))
    };
    if project.as_ref().is_some_and(|own| !is_project(own)) {
        let why = "is none: write the project's id, such as my-project-1";
        return Err(section.fault("project", why));
    }
    let tokens = token_source(section)?;
    let says_itself = matches!(tokens, TokenSource::Credentials(_));
    if project.is_none() && !says_itself {
        return Err(section.own_fault("has no project").hint(
            "write project: with the project's id; only a credentials file can say it instead",
        ));
    }
    Ok(Cloud::Vertex {
        location,
        project,
        tokens,
    })
}

/// Where tokens come from: what is written, else what Google's own libraries look for.
fn token_source(section: &Section<'_>) -> Result<TokenSource, Fault> {
    let has_keys = section.member("api_key").is_some() || section.member("api_keys").is_some();
    let credentials = section.path("credentials")?.map(|found| found.value);
    let file = section.path("token_file")?.map(|found| found.value);
    let metadata = section.choice::<bool>("metadata")?;
    let asks = metadata.is_some_and(|found| found.value);
    let named = [has_keys, credentials.is_some(), file.is_some(), asks];
    if named.into_iter().filter(|is| *is).count() > 1 {
        return Err(section
            .own_fault("has more than one of credentials, token_file, metadata and api_key")
            .hint("write one of them: each is a way to the same token"));
    }
    let variable = |name: &str| (section.variable())(name);
    if let Some(path) = credentials {
        return Ok(TokenSource::Credentials(path));
    }
    if let Some(path) = file {
        return Ok(TokenSource::File(path));
    }
    if has_keys {
        return Ok(TokenSource::Keys);
    }
    if asks {
        let host = variable("GCE_METADATA_HOST").and_then(|host| host.into_string().ok());
        let host = host.unwrap_or_else(|| "metadata.google.internal".to_owned());
        return Ok(TokenSource::Metadata(host));
    }
    if let Some(path) = variable("GOOGLE_APPLICATION_CREDENTIALS") {
        return Ok(TokenSource::Credentials(PathBuf::from(path)));
    }
    let usual = section.home().map(|home| home.join(GCLOUD_FILE));
    usual
        .filter(|path| path.exists())
        .map(TokenSource::Credentials)
        .ok_or_else(|| {
            section.own_fault("has no credentials, and there are no default ones").hint(format!(
                "write credentials: with the file of a service account, set GOOGLE_APPLICATION_CREDENTIALS, or run \"gcloud auth application-default login\", which writes ~/{GCLOUD_FILE}"
            ))
        })
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
