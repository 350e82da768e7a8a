//! The built-in `echo` server: the smallest whole tool server, to try things out with and to start another
//! one from.
//!
//! A new built-in server is a crate like this one (tools, what they do) and one line of wiring in the binary. It
//! returns only its input, touches nothing, and keeps nothing.

mod tools;

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolkit::schema::SchemaFault;
use toolkit::server::{
    Answer, Args, Content, Failure, Identity, Outcome, ReplySink, ToolCall, ToolDef, ToolServer,
};

pub use tools::WAIT_MS_MAX;

/// Interval of the progress notifications of `wait`.
const PROGRESS: Duration = Duration::from_secs(1);

/// The server.
#[derive(Debug)]
pub struct EchoServer {
    tools: Vec<ToolDef>,
}

impl EchoServer {
    /// Returns the server.
    ///
    /// # Errors
    /// [`SchemaFault`] if a schema in this crate is wrong, which its tests rule out.
    pub fn new() -> Result<Self, SchemaFault> {
        Ok(Self {
            tools: tools::all()?,
        })
    }
}

impl ToolServer for EchoServer {
    fn identity(&self) -> Identity {
        Identity {
            name: "echo",
            title: "Echo",
            version: env!("CARGO_PKG_VERSION"),
            instructions: "Says back what it is told. For trying out a client, a policy or an approval.",
        }
    }

    fn tools(&self) -> &[ToolDef] {
        &self.tools
    }

    async fn call(&self, call: ToolCall, reply: ReplySink) -> Outcome {
        match call.tool() {
            tools::ECHO => echo(call.args()).into(),
            tools::ADD => add(call.args()).into(),
            _ => wait(call.args(), reply).await,
        }
    }
}

fn echo(args: Args<'_>) -> Result<Answer, Failure> {
    let text = args.text("text")?;
    Ok(Answer {
        content: vec![Content::Text(text.to_owned())],
        ..Answer::data(json!({"text": text}))
    })
}

fn add(args: Args<'_>) -> Result<Answer, Failure> {
    let sum = args.number("a")? + args.number("b")?;
    if !sum.is_finite() {
        let wrong = "the sum is larger than a number can be; add smaller numbers";
        return Err(Failure::new("sum_too_large", wrong));
    }
    Ok(Answer::data(json!({"sum": sum})))
}

async fn wait(args: Args<'_>, mut reply: ReplySink) -> Outcome {
    let wait = match args.count("ms") {
        Ok(ms) => Duration::from_millis(ms),
        Err(unfit) => return Outcome::Failed(unfit.into()),
    };
    let cancel = reply.cancel().clone();
    let began = Instant::now();
    loop {
        let waited = began.elapsed();
        let left = wait.saturating_sub(waited);
        if left.is_zero() {
            break;
        }
        tokio::select! {
            () = cancel.cancelled() => return Outcome::Cancelled,
            () = tokio::time::sleep(left.min(PROGRESS)) => {}
        }
        let waited = began.elapsed().min(wait).as_secs_f64();
        reply.progress(
            waited,
            Some(wait.as_secs_f64()),
            Some("waiting, in seconds"),
        );
    }
    let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Outcome::Done(Answer::data(json!({"waited_ms": waited_ms})))
}

#[cfg(test)]
mod tests;
