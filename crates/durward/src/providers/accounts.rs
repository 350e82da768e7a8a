//! The accounts as they are configured.

use std::sync::Arc;

use ::models::accounts::MasterKey;
use ::models::{AccountOptions, Accounts};
use state::CounterStore;

use crate::config::models::Accounts as Configured;
use crate::config::values::Registration;
use crate::failure::Failure;
use crate::local;
use crate::places::{self, Places};

/// The variable that has the master key.
const MASTER: &str = "DURWARD_MASTER_KEY";

/// Reads the accounts.
///
/// # Errors
/// Where they cannot be read, or the master key is not the one of before.
pub(super) fn open(
    own: &Configured,
    places: &Places,
    counter: Arc<dyn CounterStore>,
) -> Result<Arc<Accounts>, Failure> {
    let options = AccountOptions {
        is_open: own.register.value == Registration::Open,
        requests_a_minute: Some(own.requests.value).filter(|most| *most > 0),
        admin_group: own.admin_group.value.value.clone(),
        servers: own
            .servers
            .value
            .iter()
            .map(|own| own.value.clone())
            .collect(),
        master: master()?,
    };
    let at = (places.state.as_path(), places.keys());
    let random = Box::new(local::random);
    let accounts = Accounts::open((at.0, &at.1), options, counter, random);
    let accounts = accounts
        .map_err(|error| Failure::configuration(format!("the accounts cannot be kept: {error}")))?;
    Ok(Arc::new(accounts))
}

/// The master key of the environment.
fn master() -> Result<Option<MasterKey>, Failure> {
    let Some(text) = places::variable(MASTER) else {
        return Ok(None);
    };
    let key = text.to_str().and_then(MasterKey::parse);
    key.map(Some).ok_or_else(|| {
        Failure::configuration(format!(
            "{MASTER} is not 64 hexadecimal digits\n  hint: make one with openssl rand -hex 32"
        ))
    })
}
