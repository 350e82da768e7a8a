//! The resources that a subscription of the Modern era is about: each is judged as one that is read.

use gate::facts::{Fact, Facts};
use serde_json::Value;
use wire::jsonrpc::member;
use wire::scan::Scan;

use super::{Context, path_of_uri};

/// The addresses that `subscriptions/listen` names.
fn uris(scan: &Scan<'_>) -> Vec<String> {
    let filter = member(&scan.params, "notifications");
    let filter = filter.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
    let listed =
        filter.and_then(|mut filter| Some(filter.get_mut("resourceSubscriptions")?.take()));
    let listed = match listed {
        Some(Value::Array(all)) => all,
        // A lenient server may take one for a list of one.
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let text = |uri| match uri {
        Value::String(text) => Some(text),
        _ => None,
    };
    listed.into_iter().filter_map(text).collect()
}

/// States them: each as a path, and as the URI where there is one. Of several, nobody can say which a rule about `uri`
/// means, so it is unknown.
pub(super) fn state(facts: &mut Facts, scan: &Scan<'_>, context: &Context<'_>) {
    let uris = uris(scan);
    let unseen = |uri: &String| context.definitions?.unseen_name(uri);
    facts.quarantine = uris.iter().find_map(unseen);
    let paths = uris.iter().map(|uri| path_of_uri(uri, context.view));
    facts.paths = Fact::Known(paths.collect());
    facts.uri = match &uris[..] {
        [] => Fact::Absent,
        [one] => Fact::Known(one.clone()),
        _ => Fact::Unknown,
    };
}
