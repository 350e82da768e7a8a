//! What a call is about, as the gate knows it.

use std::sync::Arc;

use gate::Caller;
use gate::facts::{Fact, FactId, Facts, ResourceType, Stated, Unfit};

use crate::catalogue::Target;
use crate::prices::Prices;
use crate::request::ModelRequest;

/// Most names of tools that are stated; of more nobody knows which they are.
const TOOLS_MAX: usize = 256;
/// Most bytes of all those names together.
const TOOLS_BYTES_MAX: usize = 16 * 1024;

/// States the facts of a request to one target.
pub(crate) fn describe(
    request: &ModelRequest,
    target: &Target,
    caller: &Caller,
    prices: &Prices,
) -> Facts {
    let mut facts = of_target(request.model(), target, caller);
    request.endpoint().path().clone_into(&mut facts.method);
    // Each fact here has the kind of its row, which a test of this module rules.
    let price = prices.estimate(request, target).map(Stated::from);
    let stated =
        state(&mut facts, request).and_then(|()| facts.set(FactId::EstimatedPrice, price.into()));
    debug_assert_eq!(stated, Ok(()));
    if let Some(finding) = request.finding() {
        facts.state_finding(finding);
    }
    facts
}

/// The same where nothing is known but the names: for lists.
pub(crate) fn of_target(asked: &str, target: &Target, caller: &Caller) -> Facts {
    let mut facts = Facts::of(caller);
    facts.resource_type = Some(ResourceType::Model);
    let provider = target.provider().peer().name();
    provider.clone_into(&mut facts.backend_id);
    let mut names: Vec<Arc<str>> = vec![asked.into()];
    for name in target.names() {
        if !name.is_empty() && !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
    }
    let stated = facts
        .set(FactId::Model, Fact::Known(Stated::Texts(names.into())))
        .and_then(|()| facts.set(FactId::Provider, Fact::Known(provider.into())));
    debug_assert_eq!(stated, Ok(()));
    facts
}

fn state(facts: &mut Facts, request: &ModelRequest) -> Result<(), Unfit> {
    let (endpoint, body) = (request.endpoint(), request.body());
    let word = |is: bool| Fact::Known(if is { "yes" } else { "no" }.into());
    facts.set(FactId::Stream, word(request.streams()))?;
    facts.set(
        FactId::HasImages,
        endpoint.has_images(body).map_or(Fact::Unknown, word),
    )?;
    let tokens = match endpoint.has_unread_max(body) {
        // A provider may take `"5000"` for a number.
        true => Fact::Unknown,
        false => endpoint.max_tokens(body).map(Stated::from).into(),
    };
    facts.set(FactId::MaxTokens, tokens)?;
    let Some(tools) = endpoint.tools_offered(body) else {
        return facts.set(FactId::ToolsOffered, Fact::Unknown);
    };
    let bytes: usize = tools.iter().map(String::len).sum();
    let tools = if tools.is_empty() {
        Fact::Absent
    } else if tools.len() > TOOLS_MAX || bytes > TOOLS_BYTES_MAX {
        Fact::Unknown
    } else {
        Fact::Known(Stated::Texts(tools.into_iter().map(Arc::from).collect()))
    };
    facts.set(FactId::ToolsOffered, tools)
}
