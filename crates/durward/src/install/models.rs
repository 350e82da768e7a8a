//! `durward install CLIENT --models URL`: a client that asks `durward serve` for models.

use std::io::Write;

use serde_json::{Value, json};

use super::client::{Client, Location};
use super::{InstallArgs, document, prepare, read, replace};
use crate::places::Places;

/// The variable in which clients find the key, where they have none of their own for it.
const KEY: &str = "DURWARD_KEY";

/// A member of a client's file: where it stands, and what it is.
type Setting = (Vec<&'static str>, Value);

/// Prints or writes what the client has to have in its file.
pub(super) fn install(
    args: &InstallArgs,
    url: &str,
    places: &Places,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> Result<(), String> {
    let settings = settings(args.client, base(url)?, args.model.as_deref())?;
    let location = location(args, places)?;
    if args.write {
        return write(args, &location, &settings, out);
    }
    let mut snippet = String::new();
    for (path, value) in &settings {
        let edited = args.client.format().set(&snippet, path, value);
        snippet = edited.map_err(|error| error.to_string())?;
    }
    let _ = writeln!(
        err,
        "add this to {} (or run the same command with --write):",
        location.file.display()
    );
    writeln!(out, "{}", snippet.trim_end()).map_err(|error| format!("cannot write: {error}"))?;
    let _ = writeln!(err, "next: {}", after(args.client));
    Ok(())
}

/// The URL without what every client adds itself.
fn base(url: &str) -> Result<&str, String> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let is_whole =
        |rest: &&str| !rest.trim_matches('/').is_empty() && !rest.contains(char::is_whitespace);
    if rest.filter(is_whole).is_none() {
        return Err(format!(
            "\"{url}\" is not the URL of a gateway; write it as http://127.0.0.1:8765"
        ));
    }
    let url = url.trim_end_matches('/');
    Ok(url.strip_suffix("/v1").unwrap_or(url))
}

fn settings(client: Client, base: &str, model: Option<&str>) -> Result<Vec<Setting>, String> {
    let openai = format!("{base}/v1");
    let mut settings: Vec<Setting> = Vec::new();
    match client {
        Client::ClaudeCode => {
            settings.push((vec!["env", "ANTHROPIC_BASE_URL"], json!(base)));
            // It asks a small model of its own choice for small things.
            for name in ["ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"] {
                settings.extend(model.map(|model| (vec!["env", name], json!(model))));
            }
        }
        Client::Codex => {
            settings.extend(model.map(|model| (vec!["model"], json!(model))));
            settings.push((vec!["model_provider"], json!("durward")));
            let provider = json!({
                "name": "Durward", "base_url": openai, "env_key": KEY, "wire_api": "responses",
            });
            settings.push((vec!["model_providers", "durward"], provider));
        }
        Client::Opencode => {
            let Some(model) = model else {
                return Err(
                    "opencode has to be told which model there is; add --model NAME".into(),
                );
            };
            let provider = json!({
                "npm": "@ai-sdk/openai-compatible",
                "name": "Durward",
                "options": { "baseURL": openai, "apiKey": format!("{{env:{KEY}}}") },
                "models": { model: { "name": model } },
            });
            settings.push((vec!["provider", "durward"], provider));
            settings.push((vec!["model"], json!(format!("durward/{model}"))));
        }
        Client::Cursor => {
            return Err(format!(
                "Cursor keeps this in its own settings: open Settings, Models, and enter the key as OpenAI API Key and {openai} as its base URL; Cursor's servers ask it, so they have to reach that URL"
            ));
        }
        _ => {
            return Err(
                "how this client asks another gateway for models is not known; claude-code, codex and opencode are"
                    .into(),
            );
        }
    }
    Ok(settings)
}

/// What has to be done before the client asks the gateway.
fn after(client: Client) -> String {
    let name = match client {
        Client::ClaudeCode => "ANTHROPIC_AUTH_TOKEN",
        _ => KEY,
    };
    format!(
        "set {name} to a key of `durward keys create` (any text where there are no keys), and start a new session"
    )
}

/// The file: Claude Code's settings stand apart from its servers.
fn location(args: &InstallArgs, places: &Places) -> Result<Location, String> {
    let usual = args.file.location(args.client, places)?;
    let folder = usual.file.parent().map(std::path::Path::to_path_buf);
    match folder {
        Some(folder) if args.client == Client::ClaudeCode && args.file.file.is_none() => {
            Ok(Location {
                file: folder.join(".claude/settings.json"),
                ..usual
            })
        }
        _ => Ok(usual),
    }
}

fn write(
    args: &InstallArgs,
    location: &Location,
    settings: &[Setting],
    out: &mut dyn Write,
) -> Result<(), String> {
    let file = &location.file;
    let shown = file.display();
    let wrong = |error: &dyn std::fmt::Display| format!("{shown}: {error}");
    let before = read(file).map_err(|error| wrong(&toolkit::files::unreadable(&error)))?;
    let format = args.client.format();
    let mut text = before.clone().unwrap_or_default();
    let there = format.parse(&text).map_err(|error| wrong(&error))?;
    let mut changed = Vec::new();
    for (path, value) in settings {
        let name = path.join(".");
        match document::at(&there, path) {
            Some(is) if is == value => continue,
            Some(_) if !args.force => {
                return Err(format!(
                    "{shown}: \"{name}\" is there already, with another value; replace it with --force"
                ));
            }
            _ => {}
        }
        text = format
            .set(&text, path, value)
            .map_err(|error| wrong(&error))?;
        changed.push(name);
    }
    let mut say = |line: String| writeln!(out, "{line}").map_err(|e| format!("cannot write: {e}"));
    if changed.is_empty() {
        return say(format!(
            "{shown}: all of it is there already; nothing was changed"
        ));
    }
    prepare(location).map_err(|error| wrong(&error))?;
    let kept = replace(file, before.as_deref(), &text)?;
    say(format!("{shown}: {} written", changed.join(", ")))?;
    if let Some(kept) = kept {
        say(format!("{}: backup of the file as it was", kept.display()))?;
    }
    say(format!("next: {}", after(args.client)))
}
