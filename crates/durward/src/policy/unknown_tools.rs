//! Pinned tools of which nothing says what they do, for warnings about rules on operations.

use gate::pins::PinFile;
use gate::policy::Policy;
use gate::policy::lint::{self, UnknownTools, Warning};
use mcp::describe::is_unknown;

use super::source::PolicySource;
use crate::config::Settings;
use crate::config::server::Server;
use crate::places::Places;

/// Returns warnings about rules of a policy that allow by operations, as far as tools of servers with this policy have been
/// listed. `every`: the policy is read for all servers, whatever they have now.
pub fn warnings(
    policy: &Policy,
    (source, every): (&PolicySource, bool),
    settings: &Settings,
    places: &Places,
) -> Vec<Warning> {
    let servers = settings.servers.iter();
    let servers = servers.filter(|server| every || settings.policy_of(Some(server)).0 == *source);
    let unknown: Vec<UnknownTools> = servers
        .filter_map(|server| unknown(server, places))
        .collect();
    lint::unknown_tools(policy.rules(), &unknown)
}

/// Returns the tools of a server that are pinned and unknown; `None` if there are none, or if its pins cannot be read.
fn unknown(server: &Server, places: &Places) -> Option<UnknownTools> {
    // A built-in server states what its tools do.
    if server.builtin.is_some() {
        return None;
    }
    let book = PinFile::new(&places.pins(), &server.name)
        .ok()?
        .read()
        .ok()??;
    let declared = &server.reads.arguments;
    let tools = book.tools.iter().filter(|(name, tool)| {
        let definition = tool.approved.as_ref();
        declared.declared(name).is_none()
            && definition.is_some_and(|own| is_unknown(name, &own.text, own.by_person))
    });
    let tools: Vec<String> = tools.map(|(name, _)| name.clone()).collect();
    (!tools.is_empty()).then(|| UnknownTools {
        server: server.name.clone(),
        tools,
    })
}
