//! One server: who is let in, and what runs there.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::{PrivateKey, PublicKey};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
};
use russh::{Channel, ChannelId, Disconnect, MethodKind, MethodSet};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::run::{self, RunKind};
use super::variant::{AdmissionRule, ServerVariant};

/// How long a server that restarts does not listen.
const DOWN: Duration = Duration::from_millis(300);

/// What every connection of a server has in common.
pub struct ServerShared {
    /// Server variant that it offers.
    pub variant: ServerVariant,
    /// The key that is let in.
    pub key: PublicKey,
    /// The server's part of the protocol.
    pub config: Arc<Config>,
}

impl ServerShared {
    /// Returns what the connections of a server with these keys share.
    #[must_use]
    pub fn new(variant: ServerVariant, key: &PrivateKey, host_key: PrivateKey) -> Self {
        Self {
            variant,
            key: key.public_key().clone(),
            config: Arc::new(Self::config(variant, host_key)),
        }
    }

    /// Returns the server's part of the protocol.
    fn config(variant: ServerVariant, host_key: PrivateKey) -> Config {
        let methods: &[MethodKind] = match variant.admits {
            AdmissionRule::KeyOnly => &[MethodKind::PublicKey],
            AdmissionRule::PasswordAndKey | AdmissionRule::Nobody => {
                &[MethodKind::Password, MethodKind::PublicKey]
            }
        };
        Config {
            methods: MethodSet::from(methods),
            auth_rejection_time: Duration::from_millis(50),
            auth_rejection_time_initial: Some(Duration::ZERO),
            keys: vec![host_key],
            nodelay: true,
            ..Config::default()
        }
    }
}

/// Takes connections for ever; a server that restarts drops all of them each time.
pub async fn run(mut listener: TcpListener, address: SocketAddr, shared: Arc<ServerShared>) {
    let Some(period) = shared.variant.restarts else {
        let (_stop, stopped) = watch::channel(false);
        return accept(&listener, &shared, &stopped).await;
    };
    loop {
        let (stop, stopped) = watch::channel(false);
        let _ = tokio::time::timeout(period, accept(&listener, &shared, &stopped)).await;
        stop.send_replace(true);
        drop(listener);
        tokio::time::sleep(DOWN).await;
        listener = loop {
            match TcpListener::bind(address).await {
                Ok(listener) => break listener,
                // Somebody else has the port for a moment.
                Err(_) => tokio::time::sleep(DOWN).await,
            }
        };
    }
}

async fn accept(
    listener: &TcpListener,
    shared: &Arc<ServerShared>,
    stopped: &watch::Receiver<bool>,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let (shared, stopped) = (Arc::clone(shared), stopped.clone());
                tokio::spawn(connection(socket, shared, stopped));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(
    socket: TcpStream,
    shared: Arc<ServerShared>,
    mut stopped: watch::Receiver<bool>,
) {
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let config = Arc::clone(&shared.config);
    let client = ClientHandler {
        shared,
        user: String::new(),
        channels: HashMap::new(),
    };
    let Ok(session) = russh::server::run_stream(config, socket, client).await else {
        return;
    };
    let handle = session.handle();
    let is_stopped = tokio::select! {
        // How a client's connection ends is the client's matter.
        _ = session => false,
        () = wait_for_restart(&mut stopped) => true,
    };
    if is_stopped {
        // The session is a task of its own, which runs until it is stopped.
        let why = "the server restarts".to_owned();
        let _ = handle
            .disconnect(Disconnect::ByApplication, why, String::new())
            .await;
    }
}

/// Waits until the server restarts.
async fn wait_for_restart(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|is| *is).await;
}

/// One client.
struct ClientHandler {
    shared: Arc<ServerShared>,
    user: String,
    /// Channels on which nothing runs yet.
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl ClientHandler {
    async fn judge_login(&mut self, user: &str, is_let_in: bool) -> Auth {
        tokio::time::sleep(self.shared.variant.slow).await;
        if is_let_in {
            user.clone_into(&mut self.user);
            return Auth::Accept;
        }
        Auth::reject()
    }

    fn begin(
        &mut self,
        id: ChannelId,
        what: Option<RunKind>,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        match (self.channels.remove(&id), what) {
            (Some(channel), Some(what)) => {
                session.channel_success(id)?;
                tokio::spawn(run::run(channel, what));
                Ok(())
            }
            _ => session.channel_failure(id),
        }
    }
}

impl Handler for ClientHandler {
    type Error = russh::Error;

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Self::Error> {
        let is_let_in = self.shared.variant.takes_password(user, password);
        Ok(self.judge_login(user, is_let_in).await)
    }

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        let is_let_in =
            self.shared.variant.takes_key(user) && is_same(offer.public_key, &self.shared.key);
        Ok(if is_let_in {
            Auth::Accept
        } else {
            Auth::reject()
        })
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        let is_let_in =
            self.shared.variant.takes_key(user) && is_same(key.public_key, &self.shared.key);
        Ok(self.judge_login(user, is_let_in).await)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn channel_close(
        &mut self,
        channel: ChannelId,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.remove(&channel);
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        line: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.begin(channel, Some(RunKind::Line(line.to_vec())), session)
    }

    async fn shell_request(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let prompt = self.shared.variant.prompt(&self.user).unwrap_or_default();
        self.begin(channel, Some(RunKind::Shell(prompt)), session)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let what = (name == "sftp").then(run::sftp_server).flatten();
        self.begin(channel, what, session)
    }
}

fn is_same(one: &PublicKey, other: &PublicKey) -> bool {
    one.key_data() == other.key_data()
}
