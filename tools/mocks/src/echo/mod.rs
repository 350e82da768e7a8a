//! A server that returns what it was given, in chosen size and after a chosen time.

use crate::json::{self, quote, text_result_raw};
use crate::server::{RequestFault, ServerIdentity, ServerSurface, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

/// The longest wait a call may ask for, in microseconds (ten minutes).
const DELAY_US_MAX: u64 = 600_000_000;
/// The longest text a call may ask for, in bytes.
const REPLY_BYTES_MAX: u64 = 64 * 1024 * 1024;

const TOOLS: &str = include_str!("tools.json");
/// How many these are.
const OWN_TOOLS: usize = 4;
/// Prefix of the names of further tools.
const FURTHER: &str = "echo_";
const PROMPTS: &str = r#"[{"name":"greeting","title":"Greeting","description":"Greets by name.","arguments":[{"name":"name","required":true}]}]"#;
const RESOURCES: &str = r#"[{"uri":"mock://echo/motd","name":"motd","title":"Message of the day","description":"A line of text.","mimeType":"text/plain"}]"#;
const TEMPLATES: &str = r#"[{"uriTemplate":"mock://echo/word/{word}","name":"word","title":"A word","description":"Returns the word.","mimeType":"text/plain"}]"#;

/// Options of the echo server that shape its answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EchoServer {
    /// How long every call takes, unless it names its own delay.
    pub(crate) delay: Duration,
    /// How long the text of `sized` is when the call names no size, in bytes.
    pub(crate) reply_bytes: u64,
    /// Times at which the server stalls.
    pub(crate) stall: Option<StallSchedule>,
    /// How many tools it lists, if they are not its own four.
    pub(crate) tools: Option<usize>,
    /// It says that its list may change, though it never does.
    pub(crate) announces: bool,
}

/// Stall of `length` at the end of every `period` since `since`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StallSchedule {
    pub(crate) since: Instant,
    pub(crate) period: Duration,
    pub(crate) length: Duration,
}

impl StallSchedule {
    /// Returns how long a call that comes `elapsed` after the start waits.
    fn wait(&self, elapsed: Duration) -> Duration {
        let period = self.period.as_nanos().max(1);
        let into = elapsed.as_nanos() % period;
        if into < period.saturating_sub(self.length.as_nanos()) {
            return Duration::ZERO;
        }
        Duration::from_nanos(u64::try_from(period - into).unwrap_or(u64::MAX))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EchoText<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
    delay_us: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PayloadSize {
    bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolName {
    name: String,
}

impl ServerSurface for EchoServer {
    fn identity(&self) -> ServerIdentity {
        ServerIdentity {
            name: "mock-echo",
            title: "Echo",
            instructions: "Call echo with a text; it comes back.",
        }
    }

    fn tools(&mut self) -> String {
        match self.tools {
            None => json::one_line(TOOLS),
            Some(count) => some_tools(count),
        }
    }

    fn tools_change(&self) -> bool {
        self.announces
    }

    fn call(&mut self, tool: &str, arguments: &str) -> Result<ToolResult, RequestFault> {
        let answer = match tool {
            "echo" | "record" => echo(arguments, false),
            "delayed" => echo(arguments, true),
            "sized" => self.sized(arguments),
            _ if self.has_further(tool) => echo(arguments, false),
            _ => return Err(RequestFault::InvalidParams(format!("unknown tool {tool}"))),
        };
        // Bad input is a tool error, which a model can read, not a protocol error (SEP-1303).
        Ok(match answer {
            Ok((members, delay)) => ToolResult {
                members,
                after: delay.unwrap_or(self.delay) + self.standstill(),
            },
            Err(complaint) => {
                ToolResult::now(json::text_result(&format!("{tool}: {complaint}"), true))
            }
        })
    }

    fn prompts(&mut self) -> Option<String> {
        Some(PROMPTS.into())
    }

    fn prompt(&mut self, name: &str, arguments: &str) -> Result<String, RequestFault> {
        if name != "greeting" {
            return Err(RequestFault::InvalidParams(format!(
                "unknown prompt {name}"
            )));
        }
        let ToolName { name } = json::object(arguments.as_bytes())
            .map_err(|error| RequestFault::InvalidParams(format!("greeting: {error}")))?;
        let text = quote(&format!("Say hello to {name}."));
        Ok(format!(
            r#""description":"Greets by name.","messages":[{{"role":"user","content":{{"type":"text","text":{text}}}}}]"#
        ))
    }

    fn resources(&mut self) -> Option<String> {
        Some(RESOURCES.into())
    }

    fn templates(&mut self) -> String {
        TEMPLATES.into()
    }

    fn read(&mut self, uri: &str) -> Result<String, RequestFault> {
        let text = match uri.strip_prefix("mock://echo/") {
            Some("motd") => "every word comes back",
            Some(rest) => rest
                .strip_prefix("word/")
                .filter(|word| !word.is_empty())
                .ok_or_else(|| RequestFault::UnknownResource { uri: uri.into() })?,
            None => return Err(RequestFault::UnknownResource { uri: uri.into() }),
        };
        Ok(format!(
            r#""contents":[{{"uri":{},"mimeType":"text/plain","text":{}}}]"#,
            quote(uri),
            quote(text)
        ))
    }
}

/// So many tools: the four first, then such as are `echo` under another name.
fn some_tools(count: usize) -> String {
    let own: Vec<&RawValue> = serde_json::from_str(TOOLS).unwrap_or_default();
    let own = own.into_iter().map(|tool| json::one_line(tool.get()));
    let further = (1_usize..).map(|number| {
        format!(
            r#"{{"name":"{FURTHER}{number}","title":"Echo {number}","description":"Returns its text, as echo does.","annotations":{{"readOnlyHint":true}},"inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to return."}}}},"required":["text"],"additionalProperties":false}}}}"#
        )
    });
    let tools: Vec<String> = own.chain(further).take(count).collect();
    format!("[{}]", tools.join(","))
}

/// Returns the text in the spelling of the request.
fn echo(arguments: &str, may_delay: bool) -> Result<(String, Option<Duration>), String> {
    let EchoText { text, delay_us } =
        json::object(arguments.as_bytes()).map_err(|error| error.to_string())?;
    if !text.get().starts_with('"') {
        return Err("text is not a string".into());
    }
    if delay_us.is_some() && !may_delay {
        return Err("unknown field `delay_us`; the tool delayed has it".into());
    }
    if delay_us.is_some_and(|us| us > DELAY_US_MAX) {
        return Err(format!("delay_us is more than {DELAY_US_MAX}"));
    }
    Ok((
        text_result_raw(text.get(), false),
        delay_us.map(Duration::from_micros),
    ))
}

impl EchoServer {
    /// Returns whether a tool is one of those beyond the four.
    fn has_further(&self, tool: &str) -> bool {
        let number = tool.strip_prefix(FURTHER);
        let number = number.and_then(|number| number.parse::<usize>().ok());
        number.is_some_and(|number| number > 0 && Some(number + OWN_TOOLS) <= self.tools)
    }

    fn standstill(&self) -> Duration {
        self.stall
            .map_or(Duration::ZERO, |stall| stall.wait(stall.since.elapsed()))
    }

    fn sized(&self, arguments: &str) -> Result<(String, Option<Duration>), String> {
        let PayloadSize { bytes } =
            json::object(arguments.as_bytes()).map_err(|error| error.to_string())?;
        let bytes = bytes.unwrap_or(self.reply_bytes);
        if bytes > REPLY_BYTES_MAX {
            return Err(format!("bytes is more than {REPLY_BYTES_MAX}"));
        }
        let text = "x".repeat(usize::try_from(bytes).map_err(|error| error.to_string())?);
        Ok((text_result_raw(&format!("\"{text}\""), false), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lists_as_many_tools_as_asked_for_and_each_works() {
        for count in [1, 4, 5, 50] {
            let mut echo = EchoServer {
                tools: Some(count),
                ..EchoServer::default()
            };
            let tools: serde_json::Value = serde_json::from_str(&echo.tools()).unwrap();
            assert_eq!(tools.as_array().unwrap().len(), count);
            let last = tools[count - 1]["name"].as_str().unwrap();
            assert!(echo.call(last, r#"{"text":"x"}"#).is_ok(), "{last}");
        }
        let mut echo = EchoServer::default();
        assert!(echo.call("echo_1", r#"{"text":"x"}"#).is_err());
    }

    #[test]
    fn a_stall_holds_the_end_of_every_period() {
        let ms = Duration::from_millis;
        let stall = StallSchedule {
            since: Instant::now(),
            period: ms(1_000),
            length: ms(100),
        };
        for (elapsed, wait) in [
            (0, 0),
            (899, 0),
            (900, 100),
            (999, 1),
            (1_000, 0),
            (1_950, 50),
        ] {
            assert_eq!(stall.wait(ms(elapsed)), ms(wait), "{elapsed}");
        }
    }
}
