//! Google Vertex: where it is, and what its access tokens are got with.

use std::fs;
use std::path::Path;

use ::models::upstream::{CREDENTIAL_BYTES_MAX, GoogleCredential};

use crate::config::model_clouds::{Cloud, TokenSource};
use crate::config::models::Provider;

/// The host of a location. Some are of several regions, and have hosts of another kind.
pub fn base(location: &str) -> String {
    match location {
        "global" => "https://aiplatform.googleapis.com".to_owned(),
        "eu" | "us" => format!("https://aiplatform.{location}.rep.googleapis.com"),
        region => format!("https://{region}-aiplatform.googleapis.com"),
    }
}

/// What a provider's tokens are got with, where it is shown such.
///
/// # Errors
/// Why the file is none.
pub fn credential(own: &Provider) -> Result<Option<GoogleCredential>, String> {
    let Some(Cloud::Vertex { tokens, .. }) = &own.cloud else {
        return Ok(None);
    };
    Ok(match tokens {
        TokenSource::Keys => None,
        TokenSource::Credentials(path) => {
            let read = read(path);
            let read = read.map_err(|why| format!("{}: {why}", path.display()))?;
            Some(read)
        }
        TokenSource::File(path) => Some(GoogleCredential::token_file(path.clone())),
        TokenSource::Metadata(host) => Some(GoogleCredential::metadata(host.clone())),
    })
}

fn read(path: &Path) -> Result<GoogleCredential, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.len() > CREDENTIAL_BYTES_MAX {
        return Err("the file is longer than 64 KiB".to_owned());
    }
    let text = fs::read(path).map_err(|error| error.to_string())?;
    GoogleCredential::read(&text).map_err(|fault| fault.to_string())
}

/// The project: as configured, else as the credential says.
///
/// # Errors
/// Where neither says it.
pub fn project(
    configured: Option<&str>,
    credential: Option<&GoogleCredential>,
) -> Result<String, String> {
    let own = credential.and_then(GoogleCredential::project);
    let found = configured.or(own).map(str::to_owned);
    found.ok_or_else(|| {
        "its credentials name no project; write project: with the project's id".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::base;

    #[test]
    fn each_location_has_the_host_that_googles_own_library_asks() {
        for (location, host) in [
            ("europe-west4", "europe-west4-aiplatform.googleapis.com"),
            ("global", "aiplatform.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
        ] {
            assert_eq!(base(location), format!("https://{host}"));
        }
    }
}
