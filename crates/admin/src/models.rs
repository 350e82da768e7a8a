//! Model names: where they lead, and the keys of providers that rest.

use models::{Catalogue, Prices, Rotation, Target};
use serde::Serialize;

use crate::state_paths::StatePaths;
use crate::status;

pub use crate::status::RestingKey;

/// A resting key, and the instance that rests it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InstanceRestingKey {
    /// Control socket of the instance.
    pub socket: String,
    /// The key.
    #[serde(flatten)]
    pub key: RestingKey,
}

/// Returns the resting keys of the running instances of this installation.
#[must_use]
pub fn list_resting_keys(paths: &StatePaths) -> Vec<InstanceRestingKey> {
    let instances = status::list_instances(paths, false).instances;
    let of_instance = instances.into_iter().flat_map(|instance| {
        let keys = instance.status.serving.unwrap_or_default().resting_keys;
        let socket = instance.socket;
        keys.into_iter().map(move |key| InstanceRestingKey {
            socket: socket.clone(),
            key,
        })
    });
    of_instance.collect()
}

/// How the configuration reaches a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSummary {
    /// Name of the provider.
    pub name: String,
    /// Its kind and address, in words.
    pub reached_by: String,
    /// Number of its keys.
    pub keys: usize,
}

/// Where a model name leads.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModelRoute {
    /// The name.
    pub name: String,
    /// Targets, tier by tier: the next tier is tried after all targets of one.
    pub tiers: Vec<Vec<RouteTarget>>,
    /// Targets of requests that are too long for the others.
    pub overflow: Vec<RouteTarget>,
    /// How targets of a tier take turns.
    pub rotate: Option<String>,
    /// Time of all attempts, in milliseconds.
    pub deadline_ms: u64,
    /// Number of configured providers.
    pub providers: usize,
}

/// A model at a provider.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RouteTarget {
    /// `PROVIDER/MODEL`.
    pub target: String,
    /// Kind and address of the provider.
    pub reached_by: Option<String>,
    /// Number of keys of the provider.
    pub keys: Option<usize>,
    /// Weight among the targets of a tier.
    pub weight: u64,
    /// Paths of endpoints that the provider answers itself.
    pub serves: Vec<String>,
    /// Paths of endpoints that are translated for it.
    pub translates: Vec<String>,
    /// Price in millionths of a dollar for a million tokens; null if it is not known.
    pub price_micros_for_a_million_tokens: Option<TokenPrice>,
}

/// Price of a million tokens, in millionths of a dollar.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TokenPrice {
    /// Tokens that the model reads.
    pub input: u64,
    /// Tokens that it writes.
    pub output: u64,
    /// Tokens that it reads from its cache.
    pub cached: Option<u64>,
    /// Tokens that it writes to its cache.
    pub written: Option<u64>,
    /// Tokens of its reasoning.
    pub reasoning: Option<u64>,
}

/// Returns where a model name leads; `None` if it leads nowhere. `word` names how targets take turns, as the configuration does.
#[must_use]
pub fn explain_route(
    model: &str,
    catalogue: &Catalogue,
    prices: &Prices,
    providers: &[ProviderSummary],
    word: impl Fn(Rotation) -> Option<&'static str>,
) -> Option<ModelRoute> {
    let route = catalogue.find(model)?;
    let target = |target: &Target, weight: u64| describe_target(target, weight, prices, providers);
    let tiers = route.tiers().map(|tier| {
        let targets = tier.into_iter();
        let targets = targets.map(|(own, weight)| target(own, weight));
        targets.collect()
    });
    Some(ModelRoute {
        name: route.name().to_owned(),
        tiers: tiers.collect(),
        overflow: route.overflow().map(|own| target(own, 1)).collect(),
        rotate: word(route.rotation()).map(str::to_owned),
        deadline_ms: route.deadline_ms(),
        providers: catalogue.providers().len(),
    })
}

fn describe_target(
    target: &Target,
    weight: u64,
    prices: &Prices,
    providers: &[ProviderSummary],
) -> RouteTarget {
    let offer = target.provider().offer_of(target.model());
    let name = target.provider().peer().name();
    let own = providers.iter().find(|own| own.name == name);
    let paths = |translated: bool| {
        let all = offer.endpoints.iter();
        let of_kind = all.filter(|endpoint| offer.translated.contains(endpoint) == translated);
        of_kind
            .map(|endpoint| endpoint.path().to_owned())
            .collect::<Vec<_>>()
    };
    let price = prices.find(target).map(|price| TokenPrice {
        input: price.input,
        output: price.output,
        cached: price.cached,
        written: price.written,
        reasoning: price.reasoning,
    });
    RouteTarget {
        target: target.name().to_string(),
        reached_by: own.map(|own| own.reached_by.clone()),
        keys: own.map(|own| own.keys),
        weight,
        serves: paths(false),
        translates: paths(true),
        price_micros_for_a_million_tokens: price,
    }
}
