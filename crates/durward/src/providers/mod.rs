//! Model providers as they are configured, made ready.

mod accounts;
mod google;
mod played;
pub mod shared_store;

use std::sync::Arc;

use ::models::upstream::{
    Api, GoogleCredential, HttpProvider, HttpProviderOptions, Key, OpenAiVariant, Publisher, Site,
};
use ::models::{Budgets, Catalogue, FaceOptions, Prices, Provider};
use state::underway::Left;
use state::{CounterStore, FileCounter, Underway};
use stores::LeasedCounter;

use crate::agents::AgentProvider;
use crate::config::Settings;
use crate::config::model_clouds::{Cloud, Signing};
use crate::config::models::Provider as Configured;
use crate::config::values::ProviderKind;
use crate::failure::Failure;
use crate::places::Places;

use ::models::mock::{MockProvider, Options};

/// The version of Azure's API that is named where the configuration names none.
const AZURE_VERSION: &str = "2024-10-21";
/// Largest file of certificates, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// All names of models, and where they lead; `None` where no provider is configured. Connects to nothing.
///
/// # Errors
/// What is wrong with the configuration.
pub fn catalogue(
    settings: &Settings,
    agents: Option<&Arc<AgentProvider>>,
    insecure: bool,
) -> Result<Option<Catalogue>, Failure> {
    let models = &settings.models;
    if models.providers.is_empty() {
        return Ok(None);
    }
    let reserve = models.reserve.value;
    let played = played::mode()?;
    let made = models.providers.iter().map(|own| match &played {
        Some(played) => Ok(played.instead_of(own)),
        None => provider(own, reserve, insecure),
    });
    let mut made = made.collect::<Result<Vec<_>, _>>()?;
    made.extend(agents.map(|agents| Arc::clone(agents) as Arc<dyn Provider>));
    let deadline_ms = models.deadline.value.0;
    let breaker = settings.breaker.settings();
    let catalogue = Catalogue::new(made, &models.aliases, deadline_ms, breaker)
        .map_err(|fault| Failure::configuration(format!("models: {fault}")))?;
    check_agents(settings, &catalogue)?;
    Ok(Some(catalogue))
}

/// Each agent calls a model that is configured, and that is no agent.
fn check_agents(settings: &Settings, catalogue: &Catalogue) -> Result<(), Failure> {
    for agent in &settings.agents.all {
        let why = match catalogue.find(&agent.model) {
            Some(route) if route.makes_calls() => "leads to an agent",
            Some(_) => continue,
            None => "is not a known model",
        };
        let names: Vec<String> = catalogue.names().map(|(name, _)| name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let hint = gate::policy::document::nearest(&agent.model, &names).map_or_else(
            || "name an alias of models.aliases, or PROVIDER/MODEL".to_owned(),
            |near| format!("did you mean \"{near}\"?"),
        );
        let (name, model) = (&agent.name, agent.model.escape_debug());
        return Err(Failure::configuration(format!(
            "{}: agents.{name}.model: \"{model}\" {why}\n  hint: {hint}",
            agent.at
        )));
    }
    Ok(())
}

/// The file, in the state directory, that says what was used of the budgets.
const BUDGETS_FILE: &str = "budgets";

/// Budgets and accounts, and their counter if replicas share it.
pub type OpenedBudgets = (Budgets, Option<Arc<LeasedCounter>>);

/// Returns the budgets with their use so far and the accounts, and their counter if replicas share it; `None` if there
/// are neither budgets nor accounts.
///
/// # Errors
/// Where what was used, or the accounts, cannot be read or kept.
pub fn budgets(settings: &Settings, places: &Places) -> Result<Option<OpenedBudgets>, Failure> {
    let models = &settings.models;
    if models.providers.is_empty() || (models.budgets.is_empty() && models.accounts.is_none()) {
        return Ok(None);
    }
    let file = places.state.join(BUDGETS_FILE);
    let (counter, shared) = match &settings.state {
        Some(store) => {
            let shared = shared_store::open_counter(store, &file)?;
            (Arc::clone(&shared) as Arc<dyn CounterStore>, Some(shared))
        }
        None => {
            let counter = FileCounter::open(&file)
                .map_err(|error| Failure::other(format!("the budgets cannot be kept: {error}")))?;
            (Arc::new(counter) as Arc<dyn CounterStore>, None)
        }
    };
    let own = models.accounts.as_ref();
    let accounts = own.map(|own| accounts::open(own, places, Arc::clone(&counter)));
    let rules = models.budgets.clone();
    let reserve = models.reserve.value;
    let budgets = Budgets::new(rules, counter, reserve, prices(settings));
    Ok(Some((budgets.with_accounts(accounts.transpose()?), shared)))
}

/// The file, in the state directory, that notes streams under way; further processes have one with a number each.
const UNDERWAY_FILE: &str = "underway";
/// Most processes that keep such notes in one state directory.
const UNDERWAY_MAX: usize = 64;

/// Where streams are noted while they last, and what was left there by processes that are no more.
///
/// # Errors
/// Where no such file can be kept.
pub fn underway(places: &Places) -> Result<(Option<Arc<Underway>>, Vec<Left>), Failure> {
    let (mut own, mut all) = (None, Vec::new());
    for number in 0..UNDERWAY_MAX {
        let name = match number {
            0 => UNDERWAY_FILE.to_owned(),
            _ => format!("{UNDERWAY_FILE}.{number}"),
        };
        let path = places.state.join(name);
        if own.is_some() && !path.exists() {
            break;
        }
        let opened = Underway::open(&path).map_err(|error| {
            let path = path.display();
            Failure::other(format!("calls cannot be noted: {path}: {error}"))
        })?;
        if let Some((file, left)) = opened {
            own.get_or_insert(file);
            all.extend(left);
        }
    }
    Ok((own, all))
}

/// Whether what was used of the budgets can be read. Makes and changes nothing.
///
/// # Errors
/// As [`budgets`].
pub fn check_budgets(settings: &Settings, places: &Places) -> Result<(), Failure> {
    if settings.models.budgets.is_empty() {
        return Ok(());
    }
    FileCounter::check(&places.state.join(BUDGETS_FILE))
        .map_err(|error| Failure::other(format!("the budgets cannot be kept: {error}")))
}

/// What models cost.
pub fn prices(settings: &Settings) -> Arc<Prices> {
    let models = &settings.models;
    Arc::new(Prices::new(models.prices.clone(), models.reserve.value))
}

/// The bounds of the face.
pub fn options(settings: &Settings) -> FaceOptions {
    let bytes = settings.limits.response_bytes.value.0;
    FaceOptions {
        reply_bytes_max: usize::try_from(bytes).unwrap_or(usize::MAX),
        stall_ms_max: settings.models.stall.value.0,
        stream_ms_max: settings.models.stream_max.value.0,
    }
}

fn provider(own: &Configured, reserve: u64, insecure: bool) -> Result<Arc<dyn Provider>, Failure> {
    let wrong =
        |why: String| Failure::configuration(format!("the model provider \"{}\": {why}", own.name));
    let (api, usual) = match own.kind {
        ProviderKind::Mock => {
            let options = Options {
                token_ms: own.latency.0,
            };
            let models = own.models.clone();
            return Ok(Arc::new(MockProvider::new(&own.name, models, options)));
        }
        ProviderKind::Openai if own.base_url.is_some() => (Api::Compatible(OpenAiVariant::Any), ""),
        ProviderKind::Openai => (Api::OpenAi, "https://api.openai.com/v1"),
        ProviderKind::Anthropic => (Api::Anthropic, "https://api.anthropic.com/v1"),
        ProviderKind::Google => (
            Api::Gemini,
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        ProviderKind::Bedrock => (Api::Bedrock, ""),
        ProviderKind::Vertex => (Api::Vertex(Publisher::Google), ""),
        // It has a base of its own, without which the configuration is refused.
        ProviderKind::Azure => (Api::Azure, ""),
        ProviderKind::Mistral => (
            Api::Compatible(OpenAiVariant::Mistral),
            "https://api.mistral.ai/v1",
        ),
        ProviderKind::Deepseek => (
            Api::Compatible(OpenAiVariant::Chat),
            "https://api.deepseek.com/v1",
        ),
        ProviderKind::Groq => (
            Api::Compatible(OpenAiVariant::Groq),
            "https://api.groq.com/openai/v1",
        ),
        ProviderKind::Cerebras => (
            Api::Compatible(OpenAiVariant::Cerebras),
            "https://api.cerebras.ai/v1",
        ),
        ProviderKind::Sambanova => (
            Api::Compatible(OpenAiVariant::Chat),
            "https://api.sambanova.ai/v1",
        ),
        ProviderKind::Cohere => (
            Api::Compatible(OpenAiVariant::Chat),
            "https://api.cohere.ai/compatibility/v1",
        ),
        ProviderKind::Local => (
            Api::Compatible(OpenAiVariant::Any),
            "http://127.0.0.1:11434/v1",
        ),
    };
    let usual = match &own.cloud {
        Some(Cloud::Bedrock { region, .. }) => {
            format!("https://bedrock-runtime.{region}.amazonaws.com")
        }
        Some(Cloud::Vertex { location, .. }) => google::base(location),
        None => usual.to_owned(),
    };
    let credential = google::credential(own).map_err(&wrong)?;
    let base_url = own.base_url.as_ref();
    let authorities = own.ca.as_ref().map(|file| {
        let size = std::fs::metadata(file).map(|found| found.len());
        match size {
            Ok(size) if size > PEM_BYTES_MAX => Err("the file is longer than 1 MiB".to_owned()),
            Ok(_) | Err(_) => std::fs::read(file).map_err(|error| error.to_string()),
        }
        .map_err(|why| wrong(format!("{}: {why}", file.display())))
    });
    let made = HttpProvider::new(HttpProviderOptions {
        name: own.name.clone(),
        base_url: base_url.map_or(usual, |url| url.value.clone()),
        insecure,
        api,
        site: site(own, credential.as_ref()).map_err(&wrong)?,
        google: credential,
        max_tokens: reserve,
        unsupported: own.unsupported,
        keys: keys(own),
        models: own.models.clone(),
        authorities: authorities.transpose()?,
    });
    Ok(Arc::new(made.map_err(|fault| wrong(fault.to_string()))?))
}

/// Where a provider is, in a cloud.
fn site(own: &Configured, credential: Option<&GoogleCredential>) -> Result<Site, String> {
    let version = own.api_version.clone();
    let mut site = Site {
        api_version: version.unwrap_or_else(|| AZURE_VERSION.to_owned()),
        ..Site::default()
    };
    match &own.cloud {
        Some(Cloud::Bedrock { region, .. }) => site.region.clone_from(region),
        Some(Cloud::Vertex {
            location, project, ..
        }) => {
            site.region.clone_from(location);
            site.project = google::project(project.as_deref(), credential)?;
        }
        None => {}
    }
    Ok(site)
}

/// What a provider is shown; the configuration has refused what is no key.
fn keys(own: &Configured) -> Vec<Key> {
    let signing = match &own.cloud {
        Some(Cloud::Bedrock { signing, .. }) => signing.as_ref(),
        Some(Cloud::Vertex { .. }) | None => None,
    };
    let shown = own.keys.iter().filter_map(|key| Key::new(key.reveal()));
    shown.chain(signing.and_then(Signing::key)).collect()
}
