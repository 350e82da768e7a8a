//! What every guarding instance has: a journal and a control socket, whichever face it shows to clients.

use std::path::PathBuf;
use std::sync::Arc;

use gate::Gate;
use gate::journal::{
    FileWitness, Journal, JournalOptions, Keys, Surroundings, SyncPolicy, Witness,
};
use state::directory::{Held, create_private};

use crate::control::server::{self, Control};
use crate::failure::Failure;
use crate::instance_state::InstanceState;
use crate::journal_check::JournalCheck;
use crate::local;
use crate::places::Places;
use crate::reload::Handle;
use admin::control::directory::Socket;

/// An open journal, and how far it is verified.
pub struct OpenedJournal {
    pub journal: Arc<Journal>,
    pub check: JournalCheck,
}

/// Opens the journal, with its keys; both are made where there are none. Closed segments are
/// verified first, as far as there is time.
pub fn open_journal(
    sync: SyncPolicy,
    places: &Places,
    instance: [u8; 16],
) -> Result<OpenedJournal, Failure> {
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = local::random(bytes) {
            failed = Some(error);
        }
    };
    let options = JournalOptions {
        sync,
        ..JournalOptions::retaining(places.retain)
    };
    // Whoever may write in the state directory could exchange what is in it.
    create_private(&places.state).map_err(Failure::journal)?;
    let mut waiting = |held: &Held<'_>| tracing::warn!("{held}");
    let keys =
        Keys::open_telling(&places.keys(), &mut random, &mut waiting).map_err(Failure::journal)?;
    let (check, rest) = JournalCheck::begin(places, keys.public())?;
    let witness = places.witness.as_deref().map(FileWitness::new);
    let surroundings = Surroundings {
        random: &mut random,
        waiting: &mut waiting,
        witness: witness.map(|witness| Arc::new(witness) as Arc<dyn Witness>),
        steps: None,
    };
    let own = (instance, local::now_ms());
    let journal = Journal::open_in(&places.journal(), &keys, options, own, surroundings)
        .map_err(Failure::journal)?;
    match failed {
        Some(error) => Err(Failure::other(format!("no randomness: {error}"))),
        None => {
            let journal = Arc::new(journal);
            check.go_on(rest, &journal)?;
            Ok(OpenedJournal { journal, check })
        }
    }
}

/// Makes those of our directories that are not there: what a server makes in our place cannot be kept from it, and the
/// next start would read it as ours.
fn make_own(places: &Places) {
    let has_home = |_: &&PathBuf| places.home.as_ref().is_none_or(|home| home.is_dir());
    let config = Some(&places.config).filter(has_home);
    for directory in config.into_iter().chain(&places.runtime) {
        // Where we may not make it, no server may.
        if let Err(error) = create_private(directory) {
            tracing::debug!("{error}");
        }
    }
}

/// The control socket, made before any server is started. Without it nobody could approve anything, and a directory that others can
/// change may be somebody's attempt at that: neither is passed over.
pub fn bind_control(places: &Places, name: &str) -> Result<Socket, Failure> {
    let directory = places
        .runtime
        .first()
        .ok_or_else(|| Failure::configuration("there is no runtime directory"))?;
    make_own(places);
    Socket::bind(directory, name).map_err(|e| Failure::configuration(e.to_string()))
}

/// Serves the control socket beside the session, on the same runtime.
pub fn listen(
    socket: &mut Socket,
    gate: &Arc<Gate>,
    name: &str,
    (reload, state): (Handle, InstanceState),
    places: &Places,
    serving: Option<server::Serving>,
) {
    let Some(listener) = socket.take_listener() else {
        return;
    };
    tracing::info!(socket = %socket.path().display(), "listening for approvals");
    let control = Control {
        gate: Arc::clone(gate),
        server: name.to_owned(),
        state_dir: places.real_state().display().to_string(),
        user: places.user.clone(),
        since: gate::journal::format_utc(local::now_ms()),
        reload,
        state,
        serving,
    };
    tokio::spawn(server::serve(listener, Arc::new(control)));
}

/// Ends the journal in order, where it has not failed already.
pub fn close_journal(journal: &Journal, has_failed: bool, why: &str) -> Result<(), Failure> {
    if has_failed {
        let cause = journal
            .healthy()
            .err()
            .map_or_else(String::new, |e| format!(": {e}"));
        return Err(Failure::journal(format!(
            "nothing was forwarded after the journal failed{cause}"
        )));
    }
    journal
        .close(local::now_ms(), why)
        .map_err(Failure::journal)
}

/// From random bytes: the number of the instance, the name of its session, and a salt.
pub fn split_seed(seed: &[u8; 40]) -> ([u8; 16], String, u64) {
    let mut instance = [0; 16];
    let mut salt = [0; 8];
    let (first, rest) = seed.split_at(16);
    let (second, third) = rest.split_at(16);
    instance.copy_from_slice(first);
    salt.copy_from_slice(third);
    let session = second.iter().map(|b| format!("{b:02x}")).collect();
    (instance, session, u64::from_le_bytes(salt))
}
