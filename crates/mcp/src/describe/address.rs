//! The address that a server asks its client's person to open (elicitation in URL mode).

use gate::facts::{Fact, FactId, Facts, Value};
use gate::pins::Quarantine;
use wire::fold;
use wire::jsonrpc::{member, string};
use wire::scan::{Bounds, Member, scan_reply};

/// The method by which a server asks the client's person.
pub const ELICIT: &str = "elicitation/create";
/// What a browser opens without running, reading or starting anything on this machine.
const WEB: [&str; 2] = ["http", "https"];

/// What a request says of an address.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// It asks for a form.
    Form,
    /// This one.
    Address(String),
    /// It names none that can be read.
    Unsaid,
    /// Two readers may find different ones.
    Ambiguous,
}

/// States the address that `asked` wants opened: a request, an entry of `inputRequests` or one of `elicitations`.
pub(super) fn state(facts: &mut Facts, asked: &[u8]) {
    match of(asked) {
        Asked::Form => {}
        Asked::Unsaid => facts.uri = Fact::Unknown,
        Asked::Ambiguous => {
            facts.uri = Fact::Unknown;
            facts.quarantine = Some(Quarantine::Address);
        }
        Asked::Address(address) => {
            // It is no path of the call: a refusal tells those, and the server's text goes to no model by it.
            facts.reach.urls.add_from(&address, "url", false, false);
            facts.uri = Fact::Known(address);
            let is_web = match facts.get(FactId::Scheme) {
                Fact::Known(Value::Text(scheme)) => WEB.contains(&&*scheme),
                _ => false,
            };
            facts.quarantine = (!is_web).then_some(Quarantine::Address);
        }
    }
}

fn of(asked: &[u8]) -> Asked {
    let Ok(scan) = scan_reply(asked, &Bounds::default()) else {
        return Asked::Ambiguous;
    };
    let Some(params) = member(&scan.members, "params") else {
        return in_members(&scan.members, Asked::Unsaid);
    };
    match scan_reply(params.as_bytes(), &Bounds::default()) {
        Ok(scan) => in_members(&scan.members, Asked::Form),
        Err(_) => Asked::Ambiguous,
    }
}

/// Reads the members as a client would that folds names; `plain` is what they are without a mode and an address.
fn in_members(members: &[Member<'_>], plain: Asked) -> Asked {
    let like = |name: &'static str| {
        let said = members.iter().filter(move |(key, _)| fold::same(key, name));
        said.filter(|(_, raw)| *raw != "null")
    };
    let mut addresses = like("url");
    match (addresses.next(), addresses.next()) {
        (Some((_, raw)), None) => match string(raw) {
            Some(address) => Asked::Address(address.into_owned()),
            None => Asked::Ambiguous,
        },
        (Some(_), Some(_)) => Asked::Ambiguous,
        (None, _) => {
            match like("mode").all(|(_, raw)| string(raw).is_some_and(|of| of == "form")) {
                true => plain,
                false => Asked::Unsaid,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_wherever_a_client_may_read_it() {
        let address = |text: &str| Asked::Address(text.into());
        let cases = [
            (
                r#"{"method":"m","params":{"message":"m","requestedSchema":{}}}"#,
                Asked::Form,
            ),
            (
                r#"{"method":"m","params":{"mode":"form","url":null}}"#,
                Asked::Form,
            ),
            (
                r#"{"params":{"mode":"url","url":"https://a"}}"#,
                address("https://a"),
            ),
            (r#"{"params":{"url":"h\u0074tp:b"}}"#, address("http:b")),
            (r#"{"params":{"mode":"form","Url":"c:d"}}"#, address("c:d")),
            (r#"{"mode":"url","url":"e:f"}"#, address("e:f")),
            (r#"{"params":{"mode":"url"}}"#, Asked::Unsaid),
            (r#"{"code":-32042,"message":"m","data":{}}"#, Asked::Unsaid),
            (r#"{"params":{"url":["https://a"]}}"#, Asked::Ambiguous),
            (
                r#"{"params":{"url":"https://a","URL":"javascript:b"}}"#,
                Asked::Ambiguous,
            ),
            ("{", Asked::Ambiguous),
        ];
        for (asked, expect) in cases {
            assert_eq!(of(asked.as_bytes()), expect, "{asked}");
        }
    }
}
