//! Streams: the changes of a job, and the numbers of a chunk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use net::http::server::{Request, Response, ResponseBody, stream};
use serde_json::{Value, json};
use toolkit::face::Behalf;
use toolkit::jobs::{Job, JobId};

use super::answer::PendingAnswer;
use super::columns::ColumnBytes;
use super::{RestFace, SentContent, body};
use crate::fault::{Fault, Kind};
use crate::jobs::ResultKeeper;
use crate::percent::decoded;
use crate::population::CONTENT_TYPE as COLUMNS;
use crate::results::Columns;
use crate::tools::{chunk_series, find_chunk, progress};

/// A stream is read as it comes.
const UNCHANGED: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
/// Where jobs are.
pub(super) const JOBS: &str = "/jobs";
/// Where chunks are.
pub(super) const CHUNKS: &str = "/population_results";

/// Most events that wait for the client to read them.
const EVENTS_MAX: usize = 16;
/// How often a silent stream shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);
/// Least interval of progress events.
const PROGRESS: Duration = Duration::from_millis(250);
/// Longest id of a result or chunk, in characters.
pub(super) const ID_CHARS_MAX: usize = 192;
/// Longest id of a job, in characters, as `get_job_status` takes it.
pub(super) const JOB_CHARS_MAX: usize = 64;

/// The form in which a chunk is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ChunkForm {
    Json,
    Columns,
    Csv,
}

impl RestFace {
    /// Answers a path below [`JOBS`] or [`CHUNKS`].
    pub(super) async fn stream(
        &self,
        path: &str,
        behalf: Behalf<'_>,
        request: &Request,
        answering: &PendingAnswer,
    ) -> Result<Response, Fault> {
        let parts: Vec<String> = path.split('/').skip(1).map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["jobs", job, "events"] => self.events(job, behalf, answering).await,
            ["population_results", results, "chunks", chunk] => {
                self.chunk((results, chunk), behalf, &request.head, answering)
                    .await
            }
            _ => Err(Fault::new(Kind::NotFound, "nothing is here")),
        }
    }

    fn keeper(&self) -> Result<Arc<ResultKeeper>, Fault> {
        let gone = || Fault::new(Kind::InteropError, "the server is not there");
        crate::service::last_served(&self.server)
            .ok_or_else(gone)?
            .keeper()
    }

    /// One event for each change of a job, until it has ended.
    async fn events(
        &self,
        job: &str,
        behalf: Behalf<'_>,
        answering: &PendingAnswer,
    ) -> Result<Response, Fault> {
        self.judge_call("get_job_status", behalf, json!({"jobId": job}))
            .await?;
        let keeper = self.keeper()?;
        let (id, caller) = (JobId::of(job), Arc::clone(&behalf.caller.subject));
        let mut watch = keeper.jobs.watch(&caller, &id)?;
        let (sender, answer) = stream(EVENTS_MAX);
        let inspected = self.inspecting();
        let revoked = behalf.caller.revocation.revoked();
        if behalf.caller.is_revoked() {
            // Revoked while the call was judged: there is no later check.
            return Err(Fault::new(Kind::Unauthorized, "the key is no longer valid"));
        }
        let telling = async move {
            let (mut told, mut said) = (Value::Null, Instant::now());
            loop {
                let looked = {
                    let (keeper, caller, id) =
                        (Arc::clone(&keeper), Arc::clone(&caller), id.clone());
                    tokio::task::spawn_blocking(move || keeper.jobs.get(&caller, &id)).await
                };
                let Ok(Ok(job)) = looked else { return };
                let event = event(&job);
                // A change of state is sent at once, progress at intervals and as a separate event.
                let news = if event != told {
                    told.clone_from(&event);
                    Some(("", event))
                } else if said.elapsed() >= PROGRESS {
                    progressed(&job, keeper.now_ms()).map(|told| ("event: progress\n", told))
                } else {
                    None
                };
                if let Some((name, news)) = news {
                    said = Instant::now();
                    // One that may not pass is left out, as any other news would be.
                    if let Ok(news) = inspected.json(&caller, &news).await {
                        let news = format!("{name}data: {news}\n\n");
                        if sender.send(Bytes::from(news)).await.is_err() {
                            return;
                        }
                    }
                }
                if job.state.is_end() {
                    return;
                }
                match tokio::time::timeout(ALIVE, watch.changed()).await {
                    Ok(_) => {}
                    Err(_) if sender.send(Bytes::from_static(b":\n\n")).await.is_err() => return,
                    Err(_) => {}
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = telling => {}
                () = revoked => {}
            }
        });
        let mut response = http::Response::new(answer);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, UNCHANGED);
        Ok(answering.with(response))
    }

    async fn chunk(
        &self,
        (results, chunk): (&str, &str),
        behalf: Behalf<'_>,
        head: &Parts,
        answering: &PendingAnswer,
    ) -> Result<Response, Fault> {
        for (field, id) in [("resultsId", results), ("chunkId", chunk)] {
            if id.is_empty()
                || id.chars().count() > ID_CHARS_MAX
                || id.contains(|c: char| c.is_control())
            {
                return Err(
                    Fault::input(field, format!("{field} is not an id")).code("value_error")
                );
            }
        }
        let form = form(head)?;
        let range = head
            .headers
            .get(RANGE)
            .and_then(|value| value.to_str().ok());
        let range = range.map(str::to_owned);
        let asked = json!({"resultsId": results, "chunkId": chunk, "subjects": []});
        // The tool judges and records the call, and checks that the chunk exists; its numbers are sent from here.
        self.judge_call("get_population_chunk", behalf, asked)
            .await?;
        let (keeper, subject) = (self.keeper()?, Arc::clone(&behalf.caller.subject));
        let (results, chunk) = (results.to_owned(), chunk.to_owned());
        let inspected = self.inspecting();
        let read = inspected.is_on();
        let opened = tokio::task::spawn_blocking(move || {
            let asked = ChunkRequest {
                form,
                range: range.as_deref(),
                read,
            };
            open(&keeper, &subject, (&results, &chunk), &asked)
        });
        let opened = opened
            .await
            .map_err(|_| Fault::new(Kind::InternalError, "the chunk cannot be read"))??;
        let caller = &behalf.caller.subject;
        let response = match opened {
            OpenedChunk::Json(text, file) => {
                let text = inspected.inspect(caller, SentContent::Json(text)).await?;
                whole(text.into_bytes(), "application/json", &file)
            }
            OpenedChunk::Csv(text, file) => {
                let text = inspected.inspect(caller, SentContent::Text(text)).await?;
                whole(text.into_bytes(), "text/csv; charset=utf-8", &file)
            }
            OpenedChunk::Columns(columns, text) => {
                inspected.unchanged(caller, text).await?;
                columns.into_response()
            }
        };
        Ok(answering.with(response))
    }
}

/// Returns how far a job is: the members of its state, and one more.
fn progressed(job: &Job, now_ms: i64) -> Option<Value> {
    let mut told = event(job);
    told.as_object_mut()?
        .insert("progress".to_owned(), progress(job, now_ms)?);
    Some(told)
}

fn event(job: &Job) -> Value {
    let result = job
        .result
        .as_ref()
        .and_then(|result| result.get("resultsId"));
    let time = |ms: Option<i64>| ms.map(gate::journal::format_utc);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a week in milliseconds is far below 2^53"
    )]
    let timeout = job.timeout_ms.map(|ms| ms as f64 / 1000.0);
    json!({
        "jobId": job.id.as_str(), "status": job.state.label(), "attempts": job.attempts,
        "maxRetries": job.retries_max, "timeoutSeconds": timeout,
        "submittedAt": gate::journal::format_utc(job.submitted_ms),
        "startedAt": time(job.started_ms), "finishedAt": time(job.finished_ms),
        "resultId": result,
        "error": job.fault.as_ref().filter(|_| job.state.is_end()).map(|fault| json!({"message": fault.message})),
    })
}

/// Returns the form by the query's `format`, else by `Accept`; the bridge's JSON by default.
fn form(head: &Parts) -> Result<ChunkForm, Fault> {
    body::only(head, &["format"])?;
    match body::query_value(head, "format")?.as_deref() {
        Some("json") => return Ok(ChunkForm::Json),
        Some("columns") => return Ok(ChunkForm::Columns),
        Some("csv") => return Ok(ChunkForm::Csv),
        Some(other) => {
            let wrong = format!("\"{}\" is not a format", other.escape_debug());
            return Err(Fault::input("format", wrong).hint("write json, columns or csv"));
        }
        None => {}
    }
    let accepted = head
        .headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok());
    Ok(accepted.map_or(ChunkForm::Json, preferred))
}

/// Returns the form that is named with the greatest weight, the first of several; ranges such as `*/*` name none.
fn preferred(accepted: &str) -> ChunkForm {
    let mut found = (0.0, ChunkForm::Json);
    for range in accepted.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let form = match parts.next().unwrap_or_default() {
            COLUMNS | "application/octet-stream" => ChunkForm::Columns,
            "text/csv" => ChunkForm::Csv,
            "application/json" => ChunkForm::Json,
            _ => continue,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let weight: f64 = weight.map_or(Ok(1.0), str::parse).unwrap_or(0.0);
        if weight > found.0 {
            found = (weight, form);
        }
    }
    found.1
}

/// A chunk, ready to be sent; texts with the name of their file.
enum OpenedChunk {
    Json(String, String),
    Csv(String, String),
    /// The bytes as they are kept, and what they say as text, where somebody looks at that.
    Columns(Box<ColumnBytes>, Option<String>),
}

/// Request for a chunk.
struct ChunkRequest<'a> {
    form: ChunkForm,
    /// The header that asks for a part.
    range: Option<&'a str>,
    /// Whether somebody looks at what columns say.
    read: bool,
}

/// Reads a chunk.
fn open(
    keeper: &ResultKeeper,
    caller: &str,
    (results, chunk): (&str, &str),
    asked: &ChunkRequest<'_>,
) -> Result<OpenedChunk, Fault> {
    let (found, size) = find_chunk(keeper, caller, results, chunk)?;
    let columns = || keeper.columns(caller, &found.handle);
    match asked.form {
        ChunkForm::Json => {
            let told = json!({
                "resultsId": results, "chunkId": chunk, "series": chunk_series(&columns()?, |_| true),
                "totalSubjects": size,
            });
            Ok(OpenedChunk::Json(told.to_string(), format!("{chunk}.json")))
        }
        ChunkForm::Csv => Ok(OpenedChunk::Csv(csv(&columns()?), format!("{chunk}.csv"))),
        ChunkForm::Columns => {
            let text = match asked.read {
                true => Some(csv(&columns()?)),
                false => None,
            };
            let now_ms = keeper.now_ms();
            let reader = keeper.outputs.stream(caller, &found.handle, 0, now_ms)?;
            let numbers = ColumnBytes::open(reader, found, asked.range);
            Ok(OpenedChunk::Columns(Box::new(numbers), text))
        }
    }
}

/// One row for each individual and time.
fn csv(columns: &Columns) -> String {
    let mut text = String::from("IndividualId,Output,Time [min],Value\n");
    for (at, column) in columns.columns.iter().enumerate() {
        let name = column.parameter.replace('"', "\"\"");
        let subject = column.subject.unwrap_or_default();
        for (time, value) in columns.times.iter().zip(columns.column(at)) {
            text.push_str(&format!("{subject},\"{name}\",{time},{value}\n"));
        }
    }
    text
}

fn whole(bytes: Vec<u8>, kind: &'static str, file: &str) -> Response {
    let length = bytes.len();
    let mut response = http::Response::new(ResponseBody::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    attach(headers, file);
    response
}

pub(super) fn attach(headers: &mut HeaderMap, file: &str) {
    let plain: String = file
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() && c != '"' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{plain}\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_is_accepted_most_is_sent() {
        for (accepted, expect) in [
            ("*/*", ChunkForm::Json),
            ("text/html", ChunkForm::Json),
            ("text/csv", ChunkForm::Csv),
            ("application/octet-stream", ChunkForm::Columns),
            (
                "application/octet-stream;q=0, application/json",
                ChunkForm::Json,
            ),
            ("text/csv;q=0.1, application/json", ChunkForm::Json),
            (
                "application/json;q=0.2, text/csv; q=0.5, */*",
                ChunkForm::Csv,
            ),
            ("text/csv, application/json", ChunkForm::Csv),
            ("text/csv;q=much", ChunkForm::Json),
        ] {
            assert_eq!(preferred(accepted), expect, "{accepted}");
        }
    }
}
