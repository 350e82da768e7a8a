//! The names that callers know models by, and where each leads.

mod load;
mod rotate;
mod route;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use toolkit::breaker;

use crate::provider::Provider;
pub(crate) use load::Answering;
pub use rotate::Rotation;
pub(crate) use route::Leg;
pub use route::{Route, Target};

/// Most providers, and most aliases.
pub const NAMES_MAX: usize = 1_024;
/// Most targets that one alias leads to, those of the aliases in it included.
pub const TARGETS_MAX: usize = 64;

/// A name that stands for targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: String,
    /// Targets as `PROVIDER/MODEL`, or other aliases. One tier is used up before the next one is tried.
    pub tiers: Vec<Vec<String>>,
    /// Targets that read more: they are asked only after one that has said that the request is too long for it.
    pub overflow: Vec<String>,
    /// Where each call begins within a tier.
    pub rotate: Rotation,
    /// The share of each target where calls are spread by weight; 1 where it is not named.
    pub weights: BTreeMap<String, u64>,
    /// How long all attempts together may take until the first byte, in milliseconds.
    pub deadline_ms: u64,
}

/// What is wrong with the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogueFault {
    /// Two of one name.
    Twice(String),
    /// A name that cannot be one.
    Name(String),
    /// An alias that leads nowhere.
    Empty(String),
    /// A target whose provider is not configured, or that is no alias.
    Unknown {
        /// The alias.
        alias: String,
        /// The target.
        target: String,
    },
    /// A target that is not among its provider's models.
    NotOffered {
        /// The alias.
        alias: String,
        /// The target.
        target: String,
    },
    /// Aliases that lead to each other.
    Cycle(Vec<String>),
    /// An alias with more targets than [`TARGETS_MAX`].
    TooMany(String),
    /// A weight of something that is none of the alias's targets.
    Weight {
        /// The alias.
        alias: String,
        /// What has the weight.
        target: String,
    },
}

impl fmt::Display for CatalogueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(name) => write!(
                f,
                "\"{name}\" stands for two things; give one of them another name"
            ),
            Self::Name(name) => write!(
                f,
                "\"{}\" cannot be a name here; use letters, digits and . _ - : without a slash",
                name.escape_debug()
            ),
            Self::Empty(name) => write!(f, "the alias \"{name}\" has no target"),
            Self::Unknown { alias, target } => write!(
                f,
                "the alias \"{alias}\" leads to \"{}\", which is neither PROVIDER/MODEL of a configured provider nor an alias",
                target.escape_debug()
            ),
            Self::NotOffered { alias, target } => write!(
                f,
                "the alias \"{alias}\" leads to \"{}\", which is not in its provider's list of models",
                target.escape_debug()
            ),
            Self::Cycle(names) => write!(f, "aliases lead in a circle: {}", names.join(" -> ")),
            Self::Weight { alias, target } => write!(
                f,
                "the alias \"{alias}\" has a weight for \"{}\", which is not one of its targets",
                target.escape_debug()
            ),
            Self::TooMany(name) => {
                write!(
                    f,
                    "the alias \"{name}\" has more than {TARGETS_MAX} targets"
                )
            }
        }
    }
}

impl std::error::Error for CatalogueFault {}

/// Whether this can be the name of a provider or an alias.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-:".contains(&b);
    (1..=128).contains(&name.len()) && name.bytes().all(fits)
}

/// All names, and where they lead.
pub struct Catalogue {
    providers: Vec<Arc<dyn Provider>>,
    aliases: Vec<Arc<Route>>,
    /// Where each alias stands among them.
    by_name: HashMap<String, usize>,
    /// Routes to single models, by `PROVIDER/MODEL`, for those that are listed.
    listed: HashMap<String, Arc<Route>>,
    /// Models that exactly one provider lists, by their bare name.
    bare: HashMap<String, Arc<Route>>,
    /// A route for the models that no list names, one for each provider.
    open: HashMap<String, Arc<Route>>,
    deadline_ms: u64,
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue")
            .field("aliases", &self.aliases.len())
            .finish_non_exhaustive()
    }
}

impl Catalogue {
    /// Puts the names together. `deadline_ms` holds for models that are called by no alias.
    ///
    /// # Errors
    /// [`CatalogueFault`].
    pub fn new(
        providers: Vec<Arc<dyn Provider>>,
        aliases: &[Alias],
        deadline_ms: u64,
        breaker: breaker::Settings,
    ) -> Result<Self, CatalogueFault> {
        let mut names: HashSet<&str> = HashSet::new();
        let all = providers.iter().map(|provider| provider.peer().name());
        for name in all.chain(aliases.iter().map(|alias| alias.name.as_str())) {
            if !is_name(name) {
                return Err(CatalogueFault::Name(name.to_owned()));
            }
            if !names.insert(name) {
                return Err(CatalogueFault::Twice(name.to_owned()));
            }
        }
        let mut catalogue = Self {
            aliases: Vec::new(),
            by_name: HashMap::new(),
            listed: HashMap::new(),
            bare: HashMap::new(),
            open: HashMap::new(),
            deadline_ms,
            providers,
        };
        for alias in aliases {
            let mut above = Vec::new();
            let tiers = catalogue.tiers(alias, aliases, &mut above)?;
            let larger = Alias {
                tiers: vec![alias.overflow.clone()],
                ..alias.clone()
            };
            let overflow = match alias.overflow.is_empty() {
                true => Vec::new(),
                false => catalogue.tiers(&larger, aliases, &mut above)?,
            };
            let is_target = |name: &String| {
                let mut targets = tiers.iter().flatten();
                targets.any(|target| target.name() == *name)
            };
            if let Some(target) = alias.weights.keys().find(|name| !is_target(name)) {
                return Err(CatalogueFault::Weight {
                    alias: alias.name.clone(),
                    target: target.clone(),
                });
            }
            let at = catalogue.aliases.len();
            catalogue.by_name.insert(alias.name.clone(), at);
            let overflow = overflow.into_iter().flatten().collect();
            let route = Route::new(alias, tiers, overflow, breaker);
            catalogue.aliases.push(Arc::new(route));
        }
        catalogue.list(breaker);
        Ok(catalogue)
    }

    fn list(&mut self, breaker: breaker::Settings) {
        let mut twice = Vec::new();
        for provider in &self.providers {
            let own = provider.peer().name();
            let single = |model: &str| {
                let target = Target::new(provider, model);
                Arc::new(Route::single(target, self.deadline_ms, breaker))
            };
            for model in &provider.offer().models {
                let route = single(model);
                self.listed
                    .insert(format!("{own}/{model}"), Arc::clone(&route));
                if self.bare.insert(model.clone(), route).is_some() {
                    twice.push(model.clone());
                }
            }
            if provider.offer().models.is_empty() {
                // One breaker for all models that nobody has listed.
                let open = single("");
                for model in &provider.offer().examples {
                    let route = Arc::new(open.for_model(model));
                    self.listed.insert(format!("{own}/{model}"), route);
                }
                self.open.insert(own.to_owned(), open);
            }
        }
        for model in twice {
            self.bare.remove(&model);
        }
    }

    /// The targets of an alias, tier by tier; an alias inside gives all its targets to the tier.
    fn tiers(
        &self,
        alias: &Alias,
        all: &[Alias],
        above: &mut Vec<String>,
    ) -> Result<Vec<Vec<Target>>, CatalogueFault> {
        let begins = above.iter().position(|name| *name == alias.name);
        above.push(alias.name.clone());
        if let Some(begins) = begins {
            return Err(CatalogueFault::Cycle(above.split_off(begins)));
        }
        let mut tiers = Vec::new();
        for tier in &alias.tiers {
            let mut targets = Vec::new();
            for text in tier {
                match all.iter().find(|other| other.name == *text) {
                    Some(other) => {
                        let inner = self.tiers(other, all, above)?;
                        targets.extend(inner.into_iter().flatten());
                    }
                    None => targets.push(self.target(&alias.name, text)?),
                }
            }
            if !targets.is_empty() {
                tiers.push(targets);
            }
        }
        above.pop();
        match tiers.iter().map(Vec::len).sum::<usize>() {
            0 => Err(CatalogueFault::Empty(alias.name.clone())),
            1..=TARGETS_MAX => Ok(tiers),
            _ => Err(CatalogueFault::TooMany(alias.name.clone())),
        }
    }

    fn target(&self, alias: &str, text: &str) -> Result<Target, CatalogueFault> {
        let found = text.split_once('/').and_then(|(provider, model)| {
            let provider = self.provider(provider)?;
            (!model.is_empty()).then_some((provider, model))
        });
        let Some((provider, model)) = found else {
            return Err(CatalogueFault::Unknown {
                alias: alias.to_owned(),
                target: text.to_owned(),
            });
        };
        let offered = &provider.offer().models;
        if !offered.is_empty() && !offered.iter().any(|own| own == model) {
            return Err(CatalogueFault::NotOffered {
                alias: alias.to_owned(),
                target: text.to_owned(),
            });
        }
        Ok(Target::new(provider, model))
    }

    fn provider(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.providers.iter().find(|own| own.peer().name() == name)
    }

    /// All providers.
    #[must_use]
    pub fn providers(&self) -> &[Arc<dyn Provider>] {
        &self.providers
    }

    /// Their names.
    pub fn provider_names(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|provider| provider.peer().name())
    }

    /// Where a name leads: an alias, else `PROVIDER/MODEL`, else a model that one provider alone lists.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<Route>> {
        let alias = self.by_name.get(name).and_then(|at| self.aliases.get(*at));
        if let Some(alias) = alias {
            return Some(Arc::clone(alias));
        }
        if let Some(listed) = self.listed.get(name).or_else(|| self.bare.get(name)) {
            return Some(Arc::clone(listed));
        }
        let (provider, model) = name.split_once('/')?;
        let open = self.open.get(provider).filter(|_| !model.is_empty())?;
        Some(Arc::new(open.for_model(model)))
    }

    /// Models that are only named in lists, with their routes: their providers take any name.
    pub fn examples(&self) -> impl Iterator<Item = (String, &Arc<Route>)> {
        self.providers.iter().flat_map(move |provider| {
            provider.offer().examples.iter().filter_map(move |model| {
                let name = format!("{}/{model}", provider.peer().name());
                let route = self.listed.get(&name)?;
                Some((name, route))
            })
        })
    }

    /// Every name that can be listed, with its route: aliases first, then the models of each provider.
    pub fn names(&self) -> impl Iterator<Item = (String, &Arc<Route>)> {
        let aliases = self.aliases.iter();
        let aliases = aliases.map(|route| (route.name().to_owned(), route));
        let models = self.providers.iter().flat_map(move |provider| {
            provider.offer().models.iter().filter_map(move |model| {
                let name = format!("{}/{model}", provider.peer().name());
                let route = self.listed.get(&name)?;
                Some((name, route))
            })
        });
        aliases.chain(models)
    }
}
