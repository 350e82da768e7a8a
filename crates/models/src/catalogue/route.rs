//! Where one name leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolkit::breaker::{self, Breaker};

use super::Alias;
use super::load::Load;
use super::rotate::{Rotation, Standing, Wheel};
use crate::provider::Provider;

/// A model of a provider.
#[derive(Clone)]
pub struct Target {
    provider: Arc<dyn Provider>,
    model: Arc<str>,
}

impl Target {
    pub(super) fn new(provider: &Arc<dyn Provider>, model: &str) -> Self {
        Self {
            provider: Arc::clone(provider),
            model: model.into(),
        }
    }

    /// Who has the model.
    #[must_use]
    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.provider
    }

    /// The provider's own name for it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the provider's own name for it, shared.
    #[must_use]
    pub fn shared_model(&self) -> Arc<str> {
        Arc::clone(&self.model)
    }

    /// `PROVIDER/MODEL`.
    #[must_use]
    pub fn name(&self) -> String {
        self.name_as(&self.model)
    }

    fn name_as(&self, model: &str) -> String {
        format!("{}/{model}", self.provider.peer().name())
    }

    /// Every name of the model: as it was asked for, `PROVIDER/MODEL` first, then whatever else the provider takes for it.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let own = [self.name(), self.model.to_string()];
        let others = self.provider.other_names(&self.model).into_iter();
        let others = others.flat_map(|other| [self.name_as(&other), other]);
        own.into_iter().chain(others)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.name())
    }
}

/// A target with its breaker, which belongs to this route alone.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    pub target: Target,
    pub breaker: Arc<Breaker>,
    pub load: Arc<Load>,
    /// It is asked only after a target that the request was too long for.
    pub is_overflow: bool,
    weight: u64,
}

#[derive(Debug)]
struct Tier {
    legs: Vec<Leg>,
    wheel: Arc<Wheel>,
    is_overflow: bool,
}

/// Where one name leads.
#[derive(Debug)]
pub struct Route {
    name: String,
    tiers: Vec<Tier>,
    rotate: Rotation,
    deadline_ms: u64,
}

impl Route {
    pub(super) fn new(
        alias: &Alias,
        tiers: Vec<Vec<Target>>,
        overflow: Vec<Target>,
        settings: breaker::Settings,
    ) -> Self {
        let leg = |target: Target, is_overflow: bool| Leg {
            is_overflow,
            breaker: Breaker::new(settings),
            load: Arc::default(),
            weight: alias.weights.get(&target.name()).copied().unwrap_or(1),
            target,
        };
        let tier = |targets: Vec<Target>, is_overflow: bool| Tier {
            legs: targets
                .into_iter()
                .map(|target| leg(target, is_overflow))
                .collect(),
            wheel: Arc::default(),
            is_overflow,
        };
        let mut tiers: Vec<Tier> = tiers.into_iter().map(|own| tier(own, false)).collect();
        if !overflow.is_empty() {
            tiers.push(tier(overflow, true));
        }
        Self {
            name: alias.name.clone(),
            tiers,
            rotate: alias.rotate,
            deadline_ms: alias.deadline_ms,
        }
    }

    pub(super) fn single(target: Target, deadline_ms: u64, settings: breaker::Settings) -> Self {
        let alias = Alias {
            name: target.name(),
            tiers: Vec::new(),
            overflow: Vec::new(),
            rotate: Rotation::None,
            weights: BTreeMap::new(),
            deadline_ms,
        };
        Self::new(&alias, vec![vec![target]], Vec::new(), settings)
    }

    /// The same way, with the same breaker, to another model of the same provider.
    pub(super) fn for_model(&self, model: &str) -> Self {
        let tier = |tier: &Tier| Tier {
            legs: tier
                .legs
                .iter()
                .map(|leg| Leg {
                    target: Target::new(&leg.target.provider, model),
                    breaker: Arc::clone(&leg.breaker),
                    load: Arc::clone(&leg.load),
                    is_overflow: leg.is_overflow,
                    weight: leg.weight,
                })
                .collect(),
            wheel: Arc::clone(&tier.wheel),
            is_overflow: tier.is_overflow,
        };
        let tiers: Vec<Tier> = self.tiers.iter().map(tier).collect();
        Self {
            name: format!("{}{model}", self.name),
            tiers,
            rotate: self.rotate,
            deadline_ms: self.deadline_ms,
        }
    }

    /// The alias, or `PROVIDER/MODEL`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long all attempts together may take until the first byte, in milliseconds.
    #[must_use]
    pub fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    /// The targets in the order in which this call tries them; `price` says what it can cost at each.
    pub(crate) fn turn(&self, price: impl Fn(&Target) -> Option<u64>) -> Vec<Leg> {
        let standing = |leg: &Leg| Standing {
            weight: leg.weight,
            latency_us: leg.load.latency_us(),
            busy: leg.load.busy(),
            price: match self.rotate {
                Rotation::Cheapest => price(&leg.target),
                _ => None,
            },
        };
        let mut out = Vec::new();
        for tier in &self.tiers {
            let standings: Vec<Standing> = tier.legs.iter().map(standing).collect();
            let rotate = match tier.is_overflow {
                true => Rotation::None,
                false => self.rotate,
            };
            let order = tier.wheel.order(rotate, &standings).into_iter();
            out.extend(order.filter_map(|at| tier.legs.get(at)).cloned());
        }
        out
    }

    /// How calls are spread over the targets of a tier.
    #[must_use]
    pub fn rotation(&self) -> Rotation {
        self.rotate
    }

    /// The targets of each tier, with their weights.
    pub fn tiers(&self) -> impl Iterator<Item = Vec<(&Target, u64)>> {
        let usual = self.tiers.iter().filter(|tier| !tier.is_overflow);
        usual.map(|tier| {
            let legs = tier.legs.iter();
            legs.map(|leg| (&leg.target, leg.weight)).collect()
        })
    }

    /// The targets that are asked after one that the request was too long for.
    pub fn overflow(&self) -> impl Iterator<Item = &Target> {
        let larger = self.tiers.iter().filter(|tier| tier.is_overflow);
        larger.flat_map(|tier| &tier.legs).map(|leg| &leg.target)
    }

    /// Returns whether a target makes calls of its own, as agents do.
    #[must_use]
    pub fn makes_calls(&self) -> bool {
        self.targets().any(|target| target.provider().makes_calls())
    }

    /// All targets, in the order of the configuration.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.tiers
            .iter()
            .flat_map(|tier| &tier.legs)
            .map(|leg| &leg.target)
    }

    /// The breaker of each target.
    pub fn breakers(&self) -> impl Iterator<Item = (&Target, &Arc<Breaker>)> {
        let legs = self.tiers.iter().flat_map(|tier| &tier.legs);
        legs.map(|leg| (&leg.target, &leg.breaker))
    }
}
