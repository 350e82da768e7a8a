//! Parameters beside a call's arguments: strings there may lead to places as well. A server does with a parameter that
//! the protocol does not know whatever it likes, and with what its client's person has answered what it asked for.

use gate::facts::{Fact, Facts};
use gate::paths::reach::Reader;
use wire::WireError;
use wire::jsonrpc::member;
use wire::scan::{Bounds, Scan, scan_reply, scan_request};

use super::completion::Completion;
use super::{Context, is_below, paths_of, subscribed, take_leaves};

/// Parameters that are the protocol's own and no server's: `_meta`, and what a server gets back as it gave it.
const APART: [&str; 2] = ["_meta", "requestState"];

/// Returns an answer's result, or its error, as the parameters of a request; `None` if it cannot be read. The `content`
/// of a form has the values of its fields, which are read under their own names: it is no text that a server only keeps.
pub(super) fn answer_as_params(answer: &[u8], is_form: bool) -> Option<String> {
    let scan = scan_reply(answer, &Bounds::default()).ok()?;
    let raw = member(&scan.members, "result").or_else(|| member(&scan.members, "error"))?;
    let Ok(result) = scan_reply(raw.as_bytes(), &Bounds::default()) else {
        return Some(format!("{{\"params\":{{\"answer\":{raw}}}}}"));
    };
    let members = result.members.iter().map(|(name, raw)| {
        let name = match is_form && name == "content" {
            true => "answer",
            false => name,
        };
        format!("{}:{raw}", serde_json::Value::from(name))
    });
    let members: Vec<String> = members.collect();
    Some(format!("{{\"params\":{{{}}}}}", members.join(",")))
}

/// The parameters but those named so, as if they were the arguments of a call; none where there are none.
pub(super) fn as_arguments(scan: &Scan<'_>, read: &[&str]) -> Option<String> {
    let is_other = |name: &str| !APART.contains(&name) && !read.contains(&name);
    let others = scan.params.iter().filter(|(name, _)| is_other(name));
    let members: Vec<String> = others
        .map(|(name, raw)| format!("{}:{raw}", serde_json::Value::from(&**name)))
        .collect();
    let arguments = || format!("{{\"params\":{{\"arguments\":{{{}}}}}}}", members.join(","));
    (!members.is_empty()).then(arguments)
}

/// Adds what the other parameters of a call may lead to; `read` are those that were read before.
pub(super) fn add_others(facts: &mut Facts, scan: &Scan<'_>, read: &[&str], context: &Context<'_>) {
    let Some(frame) = as_arguments(scan, read) else {
        return;
    };
    let Fact::Known(known) = &mut facts.paths else {
        return;
    };
    let Ok(others) = scan_request(frame.as_bytes(), &Bounds::default()) else {
        // One level deeper than they came, they are too deep to be read.
        facts.paths = Fact::Unknown;
        return;
    };
    let budget = context.budget_of(&others.leaves);
    let paths = paths_of("", &others.leaves, context, &budget);
    let reader = Reader::new(&paths, context.view, &budget);
    let mut reader = reader.with_reach(std::mem::take(&mut facts.reach));
    take_leaves(&mut reader, "", &others.leaves, context);
    facts.reach = reader.done(is_below("", &others.leaves, &frame));
    context.note_spent(&budget);
    known.extend(paths);
}

/// States the paths of a request that is no call, read, or prompt: they may stand anywhere in its parameters.
pub(super) fn find_paths_of_params(facts: &mut Facts, scan: &Scan<'_>, context: &Context<'_>) {
    let mut known = Vec::new();
    let mut read: &[&str] = &[];
    if facts.method == "subscriptions/listen" {
        subscribed::state(facts, scan, context);
        known = facts.paths.known().cloned().unwrap_or_default();
    }
    if facts.method == "completion/complete" {
        // What a completion is about is a path by where it stands.
        let completion = Completion::of(scan);
        known = completion.paths(context.view);
        facts.uri = completion.uri.into();
        read = &["ref", "argument"];
    }
    let (plain, all) = (as_arguments(scan, read), as_arguments(scan, &[]));
    let (Ok(of_plain), Ok(of_all)) = (scanned(plain.as_deref()), scanned(all.as_deref())) else {
        // One level deeper than they came, they are too deep to be read.
        facts.paths = Fact::Unknown;
        return;
    };
    if let Some(scan) = &of_plain {
        let budget = context.budget_of(&scan.leaves);
        let mut found = paths_of("", &scan.leaves, context, &budget);
        context.note_spent(&budget);
        found.retain(|path| known.iter().all(|one| one.text != path.text));
        known.extend(found);
    }
    if let Some((scan, arguments)) = of_all.as_ref().zip(all.as_deref()) {
        let budget = context.budget_of(&scan.leaves);
        let mut reader = Reader::new(&known, context.view, &budget);
        take_leaves(&mut reader, "", &scan.leaves, context);
        facts.reach = reader.done(is_below("", &scan.leaves, arguments));
        context.note_spent(&budget);
    }
    facts.paths = Fact::Known(known);
}

fn scanned(frame: Option<&str>) -> Result<Option<Scan<'_>>, WireError> {
    frame
        .map(|frame| scan_request(frame.as_bytes(), &Bounds::default()))
        .transpose()
}
