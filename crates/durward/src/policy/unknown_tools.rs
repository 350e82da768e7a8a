//! Pinned tools of which nothing says what they do, for warnings about rules on operations.

use gate::pins::PinFile;
use gate::policy::Policy;
use gate::policy::lint::{self, UnknownTools, Warning};
use mcp::describe::is_unknown;

use super::source::PolicySource;
use crate::config::Settings;
use crate::local::Reads;
use crate::places::Places;

/// Returns warnings about rules of a policy that allow by operations, as far as tools of servers with this policy have been
/// listed. `every`: the policy is read for all servers, whatever they have now.
pub fn warnings(
    policy: &Policy,
    (source, every): (&PolicySource, bool),
    settings: &Settings,
    places: &Places,
) -> Vec<Warning> {
    let has_policy = |server| every || settings.policy_of(server).0 == *source;
    // A built-in server states what its tools do.
    let own = settings.servers.iter().filter(|own| own.builtin.is_none());
    let own = own.filter(|server| has_policy(Some(*server)));
    let own = own.map(|server| (&server.name, &server.reads));
    let of_clients = settings.client_servers.iter().filter(|_| has_policy(None));
    let of_clients = of_clients.map(|server| (&server.name, &server.reads));
    let unknown: Vec<UnknownTools> = own
        .chain(of_clients)
        .filter_map(|(name, reads)| unknown(name, reads, places))
        .collect();
    lint::unknown_tools(policy.rules(), &unknown)
}

/// Returns the tools of a server that are pinned and unknown; `None` if there are none, or if its pins cannot be read.
fn unknown(server: &str, reads: &Reads, places: &Places) -> Option<UnknownTools> {
    let book = PinFile::new(&places.pins(), server).ok()?.read().ok()??;
    let declared = &reads.arguments;
    let tools = book.tools.iter().filter(|(name, tool)| {
        let definition = tool.approved.as_ref();
        declared.declared(name).is_none()
            && definition.is_some_and(|own| is_unknown(name, &own.text, own.by_person))
    });
    let tools: Vec<String> = tools.map(|(name, _)| name.clone()).collect();
    (!tools.is_empty()).then(|| UnknownTools {
        server: server.to_owned(),
        tools,
    })
}
