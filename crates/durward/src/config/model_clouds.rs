//! Clouds whose own APIs are not spoken yet: named with the way that there is, instead of as a misspelled kind.

use super::fault::Fault;
use super::section::Section;

/// The kind, why it is refused, and what to write instead.
const CLOUDS: [(&str, &str, &str); 2] = [
    (
        "bedrock",
        "signed requests to Bedrock are not built",
        "Bedrock's API like OpenAI's takes a key: kind: openai, base_url: https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
    ),
    (
        "vertex",
        "tokens of service accounts are not built",
        "Gemini takes a key: kind: google; a gateway that fetches tokens for Vertex can stand behind kind: openai with its base_url",
    ),
];

/// Refuses such a cloud.
pub(super) fn refuse(section: &Section<'_>) -> Result<(), Fault> {
    let kind = section.text("kind")?;
    let found = kind.and_then(|kind| {
        let of_name = |(name, ..): &&(&str, &str, &str)| *name == kind.value.value;
        CLOUDS.iter().find(of_name)
    });
    match found {
        Some((name, why, instead)) => {
            let fault = section.fault("kind", format!("\"{name}\": {why}"));
            Err(fault.hint(*instead))
        }
        None => Ok(()),
    }
}
