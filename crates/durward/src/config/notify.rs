//! `approval.notify`: how a person hears that a call waits.

use net::outbound::http::Target;

use super::expand::Secret;
use super::fault::Fault;
use super::inspect::checker::SECRET_BYTES_MIN;
use super::section::Section;

/// How a person is told that a call waits.
#[derive(Debug, Clone)]
pub struct Notify {
    /// Ring the terminal's bell, where standard error is one.
    pub bell: bool,
    /// Show a notification on this machine's desktop.
    pub desktop: bool,
    /// A program with its arguments; it reads the call as JSON on its standard input.
    pub command: Vec<String>,
    pub webhook: Option<Webhook>,
    /// Whether the command and the webhook are given the call's arguments, paths and changes.
    pub arguments: bool,
}

/// Where the call is posted.
#[derive(Debug, Clone)]
pub struct Webhook {
    pub target: Target,
    /// The key of the signature.
    pub secret: Secret,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            bell: true,
            desktop: false,
            command: Vec::new(),
            webhook: None,
            arguments: false,
        }
    }
}

impl Notify {
    /// Each key with its value; the secret is not shown.
    pub fn values(&self) -> [(&'static str, String); 6] {
        let none = || "none".to_owned();
        let command = match self.command.is_empty() {
            true => none(),
            false => self.command.join(" "),
        };
        let webhook = self.webhook.as_ref();
        let url = webhook.map(|webhook| webhook.target.host().to_owned());
        [
            ("approval.notify.bell", self.bell.to_string()),
            ("approval.notify.desktop", self.desktop.to_string()),
            ("approval.notify.command", command),
            ("approval.notify.webhook.url", url.unwrap_or_else(none)),
            (
                "approval.notify.webhook.secret",
                webhook.map_or_else(none, |_| "***".to_owned()),
            ),
            ("approval.notify.arguments", self.arguments.to_string()),
        ]
    }
}

/// Reads the map below `approval`.
pub fn read(approval: &Section<'_>) -> Result<Notify, Fault> {
    let section = approval.section("notify")?;
    let flag = |name: &str, default: bool| -> Result<bool, Fault> {
        let read = section.read(name, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("is not true or false".to_owned()),
        })?;
        Ok(read.map_or(default, |read| read.value))
    };
    let command: Vec<String> = section
        .list("command")?
        .map_or_else(Vec::new, |list| list.value)
        .into_iter()
        .map(|text| text.value)
        .collect();
    if section.member("command").is_some() && command.first().is_none_or(String::is_empty) {
        return Err(section
            .fault("command", "names no program")
            .hint("write command: [PROGRAM, ARGUMENT]"));
    }
    let default = Notify::default();
    Ok(Notify {
        bell: flag("bell", default.bell)?,
        desktop: flag("desktop", default.desktop)?,
        arguments: flag("arguments", default.arguments)?,
        webhook: webhook(&section.section("webhook")?)?,
        command,
    })
}

fn webhook(section: &Section<'_>) -> Result<Option<Webhook>, Fault> {
    let target = section.read("url", |text| {
        Target::parse(text, false).map_err(|fault| fault.to_string())
    })?;
    let secret = section.secret("secret")?;
    match (target, secret) {
        (None, None) => Ok(None),
        (Some(target), Some((secret, _, _))) if secret.reveal().len() >= SECRET_BYTES_MIN => {
            Ok(Some(Webhook {
                target: target.value,
                secret,
            }))
        }
        (Some(_), Some(_)) => Err(section.fault(
            "secret",
            format!("is shorter than {SECRET_BYTES_MIN} bytes"),
        )),
        (Some(_), None) => Err(section
            .fault("url", "needs webhook.secret beside it")
            .hint("write secret: ${NAME}: messages are signed with it (HMAC-SHA-256)")),
        (None, Some(_)) => Err(section.fault("secret", "needs webhook.url beside it")),
    }
}
