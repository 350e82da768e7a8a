//! Whole replies.

use super::super::ReplyStamp;
use super::super::ask::{ContentPart, ModelReply, StopReason};
use super::items::{self, REDACTED, ResponseHead};

/// Writes a reply.
pub(in super::super) fn write(reply: &ModelReply<'_>, stamp: ReplyStamp<'_>) -> Option<Vec<u8>> {
    let mut head = ResponseHead::new(stamp);
    (head.id, head.model) = (reply.id.to_string(), reply.model.to_string());
    let mut output = Vec::new();
    let mut words = Vec::new();
    let status = match reply.stop {
        StopReason::Length => "incomplete",
        _ => "completed",
    };
    for part in &reply.parts {
        match part {
            ContentPart::Text(text) => words.push(items::text_part(text)),
            ContentPart::Refusal(text) => words.push(items::refusal_part(text)),
            ContentPart::Thinking { text, signature } => {
                say(&head, status, &mut words, &mut output);
                let id = items::id(&head, "rs", output.len());
                output.push(items::reasoning(&id, text, signature.as_deref()));
            }
            ContentPart::Redacted(data) => {
                say(&head, status, &mut words, &mut output);
                let id = items::id(&head, "rs", output.len());
                let data = format!("{REDACTED}{data}");
                output.push(items::reasoning(&id, "", Some(&data)));
            }
            ContentPart::Call(own) => {
                say(&head, status, &mut words, &mut output);
                // A call has no place for a signature, so it is in front.
                if let Some(signature) = &own.signature {
                    let id = items::id(&head, "rs", output.len());
                    output.push(items::reasoning(&id, "", Some(signature)));
                }
                let id = items::id(&head, "fc", output.len());
                let of = (own.id.as_ref(), own.name.as_ref());
                output.push(items::call(&id, "completed", of, &own.input));
            }
            ContentPart::Image(_)
            | ContentPart::Document { .. }
            | ContentPart::Result { .. }
            | ContentPart::CacheMark(_) => {
                return None;
            }
        }
    }
    say(&head, status, &mut words, &mut output);
    Some(head.response(&output, Some((&reply.stop, reply.tokens))))
}

/// Makes a message of adjacent words.
fn say(head: &ResponseHead, status: &str, words: &mut Vec<Vec<u8>>, output: &mut Vec<Vec<u8>>) {
    if !words.is_empty() {
        let id = items::id(head, "msg", output.len());
        output.push(items::message(&id, status, words));
        words.clear();
    }
}
