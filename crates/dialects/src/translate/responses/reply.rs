//! Whole replies.

use super::super::Stamp;
use super::super::ask::{Part, Reply, Stop};
use super::items::{self, Head, REDACTED};

/// Writes a reply.
pub(in super::super) fn write(reply: &Reply<'_>, stamp: Stamp<'_>) -> Option<Vec<u8>> {
    let mut head = Head::new(stamp);
    (head.id, head.model) = (reply.id.to_string(), reply.model.to_string());
    let mut output = Vec::new();
    let mut words = Vec::new();
    let status = match reply.stop {
        Stop::Length => "incomplete",
        _ => "completed",
    };
    for part in &reply.parts {
        match part {
            Part::Text(text) => words.push(items::text_part(text)),
            Part::Refusal(text) => words.push(items::refusal_part(text)),
            Part::Thinking { text, signature } => {
                say(&head, status, &mut words, &mut output);
                let id = items::id(&head, "rs", output.len());
                output.push(items::reasoning(&id, text, signature.as_deref()));
            }
            Part::Redacted(data) => {
                say(&head, status, &mut words, &mut output);
                let id = items::id(&head, "rs", output.len());
                let data = format!("{REDACTED}{data}");
                output.push(items::reasoning(&id, "", Some(&data)));
            }
            Part::Call(own) => {
                say(&head, status, &mut words, &mut output);
                // A call has no place for a signature, so it stands in front.
                if let Some(signature) = &own.signature {
                    let id = items::id(&head, "rs", output.len());
                    output.push(items::reasoning(&id, "", Some(signature)));
                }
                let id = items::id(&head, "fc", output.len());
                let of = (own.id.as_ref(), own.name.as_ref());
                output.push(items::call(&id, "completed", of, &own.input));
            }
            Part::Image(_) | Part::Document { .. } | Part::Result { .. } | Part::CacheMark(_) => {
                return None;
            }
        }
    }
    say(&head, status, &mut words, &mut output);
    Some(head.response(&output, Some((&reply.stop, reply.tokens))))
}

/// Makes a message of the words that stand together.
fn say(head: &Head, status: &str, words: &mut Vec<Vec<u8>>, output: &mut Vec<Vec<u8>>) {
    if !words.is_empty() {
        let id = items::id(head, "msg", output.len());
        output.push(items::message(&id, status, words));
        words.clear();
    }
}
