//! Several commands in one call.

use std::future::Future;

use serde_json::{Value, json};
use toolkit::server::Failure;

use super::run::{answer, members};
use crate::command::Command;
use crate::end::End;
use crate::upstream::Ended;

/// The result of one command of a batch, and whether it did well.
pub(crate) fn of_batch(command: &Command, ended: Result<Ended, Failure>) -> (Value, bool) {
    let line = command.argv().join(" ");
    let failed = |failure: &Failure| {
        let result =
            json!({"command": line, "error": failure.message, "code": failure.code, "success": 0});
        (result, false)
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(failure) => return failed(&failure),
    };
    if let Err(failure) = answer(&ended) {
        return failed(&failure);
    }
    let success = ended.end == End::Exited(0);
    let mut result = members(&ended);
    result.insert("command".into(), line.into());
    result.insert("success".into(), u8::from(success).into());
    let output = result.get("stdout").cloned().unwrap_or_default();
    if success {
        result.insert("output".into(), output);
    } else {
        let error = match &ended.end {
            End::Exited(code) => format!("exit code {code}"),
            End::Signalled(signal) => format!("ended by signal {signal}"),
            _ => "the server did not say how it ended".to_owned(),
        };
        result.insert("error".into(), error.into());
    }
    (Value::Object(result), success)
}

/// Runs all at once, and gives their results in order.
pub(crate) async fn together<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = all.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_over = true;
        for (future, result) in &mut waiting {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(done) => *result = Some(done),
                    std::task::Poll::Pending => is_over = false,
                }
            }
        }
        if is_over {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    waiting
        .into_iter()
        .filter_map(|(_, result)| result)
        .collect()
}
