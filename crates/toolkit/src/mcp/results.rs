//! What a built-in server answers, in the words of each revision.

use serde_json::{Map, Value, json};
use wire::Revision;

use super::exchange::Reply;
use super::fault::{self, Fault, MODERN};
use super::{Builtin, Dialect};
use crate::server::{
    Answer, Content, Failure, Identity, Outcome, Progress, ResourceAnswer, ResourceFault,
};

/// Longest result of a call, in bytes; what is longer is fetched by handle, in parts.
pub const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a list may be cached, in milliseconds: it stays the same as long as the process.
const LIST_TTL_MS: u64 = 300_000;
/// The `_meta` member in which a failure stands as data.
pub const META_FAILURE: &str = "durward/failure";

/// The `_meta` member that holds what is said of a refusal where `structuredContent` may not.
pub const META_REFUSAL: &str = "durward/refusal";

const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn server_info(identity: Identity, titled: bool) -> Value {
    let mut info = json!({"name": identity.name, "version": identity.version});
    if let (true, Some(info)) = (titled, info.as_object_mut()) {
        info.insert("title".into(), identity.title.into());
    }
    info
}

/// How long a client of the Modern era may keep a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cached {
    /// Nothing is said: the kind of result has no such members.
    Unsaid,
    /// It is the same for everybody, as long as the process lasts.
    Public,
    /// It belongs to its caller and may change at any time.
    Never,
}

/// A result with what the Modern era wants beside its members.
fn dressed(
    builtin: &Builtin,
    dialect: Dialect,
    mut members: Map<String, Value>,
    cached: Cached,
) -> Value {
    if dialect.is_modern() {
        members.insert("resultType".into(), "complete".into());
        let said = match cached {
            Cached::Unsaid => None,
            Cached::Public => Some((LIST_TTL_MS, "public")),
            Cached::Never => Some((0, "private")),
        };
        if let Some((ttl_ms, scope)) = said {
            members.insert("ttlMs".into(), ttl_ms.into());
            members.insert("cacheScope".into(), scope.into());
        }
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(META_SERVER.into(), server_info(builtin.identity(), true));
        }
    }
    Value::Object(members)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The tools stay the same, but the rules before them may let others be listed after a reload. Resources come and go
/// without a word.
fn capabilities(builtin: &Builtin) -> Value {
    match builtin.has_resources() {
        true => json!({"tools": {"listChanged": true}, "resources": {"listChanged": false}}),
        false => json!({"tools": {"listChanged": true}}),
    }
}

pub(super) fn initialized(builtin: &Builtin, id: &str, revision: Revision) -> Reply {
    let identity = builtin.identity();
    let mut members = object([
        ("protocolVersion", revision.name().into()),
        ("capabilities", capabilities(builtin)),
        (
            "serverInfo",
            server_info(identity, Dialect(revision).is_structured()),
        ),
    ]);
    if !identity.instructions.is_empty() {
        members.insert("instructions".into(), identity.instructions.into());
    }
    fault::result(id, &Value::Object(members))
}

pub(super) fn discovered(builtin: &Builtin, id: &str) -> Reply {
    let mut members = object([
        ("supportedVersions", json!([MODERN.name()])),
        ("capabilities", capabilities(builtin)),
    ]);
    if !builtin.identity().instructions.is_empty() {
        let instructions = builtin.identity().instructions;
        members.insert("instructions".into(), instructions.into());
    }
    fault::result(
        id,
        &dressed(builtin, Dialect(MODERN), members, Cached::Public),
    )
}

pub(super) fn listed(builtin: &Builtin, id: &str, dialect: Dialect) -> Reply {
    let tools = builtin.tools().iter();
    let tools: Vec<Value> = tools
        .map(|tool| tool.listed(dialect.is_structured(), dialect.is_annotated()))
        .collect();
    let members = object([("tools", tools.into())]);
    fault::result(id, &dressed(builtin, dialect, members, Cached::Public))
}

pub(super) fn templates(builtin: &Builtin, id: &str, dialect: Dialect) -> Reply {
    let templates = builtin.server.templates().iter();
    let listed: Vec<Value> = templates
        .map(|template| template.listed(dialect.is_structured()))
        .collect();
    let members = object([("resourceTemplates", listed.into())]);
    fault::result(id, &dressed(builtin, dialect, members, Cached::Public))
}

/// The answer to a request about resources; `uri` is the one that was read.
pub(super) fn resources(
    builtin: &Builtin,
    uri: &str,
    id: &str,
    dialect: Dialect,
    answer: Result<ResourceAnswer, ResourceFault>,
) -> Reply {
    let members = match answer {
        Ok(ResourceAnswer::Page { resources, next }) => {
            let listed: Vec<Value> = resources
                .iter()
                .map(|resource| resource.listed(dialect.is_structured()))
                .collect();
            let mut members = object([("resources", listed.into())]);
            members.extend(next.map(|next| ("nextCursor".to_owned(), next.into())));
            members
        }
        Ok(ResourceAnswer::Contents(contents)) => {
            object([("contents", json!([contents.json(uri)]))])
        }
        Err(wrong) => return Fault::Resource(wrong, uri.to_owned()).frame_for(id, dialect),
    };
    let frame = fault::result(id, &dressed(builtin, dialect, members, Cached::Never));
    if frame.bytes.len() > RESULT_BYTES_MAX {
        let wrong = format!(
            "the resource has {} bytes, at most {RESULT_BYTES_MAX} are sent at a time; read a part of it",
            frame.bytes.len()
        );
        return Fault::Params(wrong).frame(id);
    }
    frame
}

/// A result without members.
pub(super) fn empty(builtin: &Builtin, id: &str, dialect: Dialect) -> Reply {
    fault::result(id, &dressed(builtin, dialect, Map::new(), Cached::Unsaid))
}

/// The acknowledgement of a request to hear of changes: of those of the tools, where that is wanted.
pub(super) fn listening(id: &str, tools: bool) -> Vec<u8> {
    let heard = if tools {
        r#""toolsListChanged":true"#
    } else {
        ""
    };
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"{META_SUBSCRIPTION}":{id}}},"notifications":{{{heard}}}}}}}"#
    )
    .into_bytes()
}

pub(super) fn progress(token: &str, progress: &Progress) -> Vec<u8> {
    let mut members = format!(r#""progressToken":{token},"progress":{}"#, progress.done);
    if let Some(total) = progress.total {
        members.push_str(&format!(r#","total":{total}"#));
    }
    if let Some(message) = &progress.message {
        members.push_str(&format!(r#","message":{}"#, Value::from(message.as_str())));
    }
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{{members}}}}}"#)
        .into_bytes()
}

/// The answer to a call.
pub(super) fn called(
    builtin: &Builtin,
    tool: &str,
    id: &str,
    dialect: Dialect,
    outcome: Outcome,
) -> Reply {
    let checked = match outcome {
        Outcome::Done(answer) => fitting(builtin, tool, answer),
        Outcome::Failed(failure) => Err(failure),
        Outcome::Cancelled => Err(Failure::new(
            "cancelled",
            "the call was cancelled before it was done",
        )),
    };
    let frame = match checked {
        Ok(answer) => {
            let mut members = object([("content", content(&answer.content))]);
            if let (true, Some(structured)) = (dialect.is_structured(), answer.structured) {
                members.insert("structuredContent".into(), structured.into());
            }
            fault::result(id, &dressed(builtin, dialect, members, Cached::Unsaid))
        }
        Err(failure) => return failed(builtin, id, dialect, &failure),
    };
    if frame.bytes.len() > RESULT_BYTES_MAX {
        let failure = Failure::new(
            "result_too_large",
            format!(
                "the result has {} bytes, at most {RESULT_BYTES_MAX} are sent at a time; ask for less, or for parts of it",
                frame.bytes.len()
            ),
        );
        return failed(builtin, id, dialect, &failure);
    }
    frame
}

fn failed(builtin: &Builtin, id: &str, dialect: Dialect, failure: &Failure) -> Reply {
    let members = object([
        (
            "content",
            content(&[Content::Text(failure.message.clone())]),
        ),
        ("isError", true.into()),
        // Not `structuredContent`: clients hold that against the output schema, also of an error.
        ("_meta", json!({META_FAILURE: failure.json()})),
    ]);
    fault::result(id, &dressed(builtin, dialect, members, Cached::Unsaid))
}

fn content(content: &[Content]) -> Value {
    content.iter().map(Content::json).collect()
}

/// The answer, if it is what the tool's definition promises.
fn fitting(builtin: &Builtin, tool: &str, answer: Answer) -> Result<Answer, Failure> {
    let definition = builtin.tools().iter().find(|known| known.name == tool);
    let Some(schema) = definition.and_then(|tool| tool.output.as_ref()) else {
        return Ok(answer);
    };
    let broken = |detail: String| {
        Failure::new(
            "unfit_result",
            format!("the tool's result is not what its definition says: {detail}"),
        )
    };
    let Some(structured) = answer.structured else {
        return Err(broken("it is not structured".into()));
    };
    let value = Value::Object(structured);
    if let Err(faults) = schema.check(&value) {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        return Err(broken(faults.join("; ")));
    }
    let Value::Object(structured) = value else {
        return Err(broken("it is not an object".into()));
    };
    Ok(Answer {
        structured: Some(structured),
        content: answer.content,
    })
}
