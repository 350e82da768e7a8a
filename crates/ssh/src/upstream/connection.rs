//! One connection to a host, over the machines on the way.

use std::borrow::Cow;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::{self, Handle, Msg};
use russh::keys::Algorithm;
use russh::{Disconnect, Preferred, cipher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::fault::{ConnectFault, OpenFault};
use super::forward::INCOMING_MAX;
use super::login;
use super::verify::Verifier;
use crate::forwards::Target;
use crate::hosts::{Host, Limits, Secret};
use crate::trust::{FiledNames, KnownHosts};

/// How much a server may send on a channel before it is read, in bytes.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;
/// So many unanswered questions whether it is there, and a connection is given up.
const KEEPALIVE_MAX: usize = 3;

/// A connection that is logged in.
pub(crate) struct Connection {
    handle: Handle<Verifier>,
    /// What it runs over; they close after it.
    _way: Vec<Handle<Verifier>>,
    /// Connections of a port at the host, until somebody takes them.
    incoming: Mutex<Option<mpsc::Receiver<russh::Channel<Msg>>>>,
}

/// A channel for one command.
pub(crate) struct Channel(pub(super) russh::Channel<Msg>);

/// What making a connection needs beside its host.
pub(crate) struct Way<'w> {
    /// Files of known hosts; a first key is written to the first of them.
    pub known_hosts: &'w [PathBuf],
    pub environment: &'w crate::Environment,
    /// The caller's password.
    pub password: Option<&'w Secret>,
    pub limits: &'w Limits,
    /// The host may open channels here, for a port that listens there.
    pub takes_incoming: bool,
}

impl Connection {
    /// Connects and logs in, at every machine on the way.
    pub async fn open(host: &Arc<Host>, way: &Way<'_>) -> Result<Self, ConnectFault> {
        let wait = way.limits.connect_wait();
        match tokio::time::timeout(wait, Self::connect(host, way)).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectFault::new(
                "connect_timed_out",
                format!(
                    "no connection to {} after {} ms",
                    host.name,
                    wait.as_millis()
                ),
            )
            .retryable()),
        }
    }

    async fn connect(host: &Arc<Host>, way: &Way<'_>) -> Result<Self, ConnectFault> {
        let mut path: Vec<Handle<Verifier>> = Vec::new();
        let mut hops: Vec<Arc<Host>> = host.jump.clone();
        hops.push(Arc::clone(host));
        let last = hops.len();
        let (sender, incoming) = mpsc::channel(INCOMING_MAX);
        for (at, hop) in hops.iter().enumerate() {
            let files = hop.known_hosts.as_deref().unwrap_or(way.known_hosts);
            let known = KnownHosts::read(files)
                .map_err(|wrong| ConnectFault::new("known_hosts_unreadable", wrong))?;
            let known = Arc::new(known);
            let takes = way.takes_incoming && at + 1 == last;
            let to = takes.then(|| sender.clone());
            let mut handle = match path.last() {
                None => {
                    let stream = direct(hop, way).await?;
                    begin(hop, way, (&known, to), stream).await?
                }
                Some(over) => {
                    let through = through(over, hop).await?;
                    begin(hop, way, (&known, to), through.into_stream()).await?
                }
            };
            let given = if at + 1 == last { way.password } else { None };
            login::login(&mut handle, &hop.credential, way.environment, given)
                .await
                .map_err(|fault| ConnectFault {
                    wrong: format!("{}: {}", hop.name, fault.wrong),
                    ..fault
                })?;
            path.push(handle);
        }
        match path.pop() {
            Some(handle) => Ok(Self {
                handle,
                _way: path,
                incoming: Mutex::new(Some(incoming)),
            }),
            None => Err(ConnectFault::new(
                "unreachable",
                "there is no machine to connect to",
            )),
        }
    }

    /// Opens a channel.
    pub async fn channel(&self) -> Result<Channel, OpenFault> {
        Ok(Channel(self.handle.channel_open_session().await?))
    }

    /// Reaches a target from the host.
    pub async fn direct(&self, target: &Target) -> io::Result<russh::ChannelStream<Msg>> {
        let port = u32::from(target.port);
        let opening =
            self.handle
                .channel_open_direct_tcpip(target.host.as_str(), port, "127.0.0.1", 0);
        let channel = opening.await.map_err(io::Error::other)?;
        Ok(channel.into_stream())
    }

    /// Has the host listen at a port; gives which one.
    pub async fn listen(&self, address: IpAddr, port: u16) -> Result<u16, String> {
        let asked = self.handle.tcpip_forward(address.to_string(), port.into());
        match asked.await {
            Ok(given) if port == 0 => u16::try_from(given).map_err(|error| error.to_string()),
            Ok(_) => Ok(port),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The connections of that port; given once.
    pub fn incoming(&self) -> Option<mpsc::Receiver<russh::Channel<Msg>>> {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        incoming.take()
    }

    /// Whether it is gone.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Says goodbye, and waits for nothing.
    pub async fn close(&self) {
        let bye = self.handle.disconnect(Disconnect::ByApplication, "", "");
        let _ = tokio::time::timeout(Duration::from_secs(1), bye).await;
    }
}

/// A stream to a machine that is reached from here.
async fn direct(hop: &Host, way: &Way<'_>) -> Result<tokio::net::TcpStream, ConnectFault> {
    let wait = way.limits.connect_wait();
    let connected = net::outbound::tcp::connect(&hop.address, hop.port, wait).await;
    connected.map_err(|error| {
        let wrong = format!("{} cannot be reached: {error}", hop.name);
        ConnectFault::new("unreachable", wrong).retryable()
    })
}

/// A channel to a machine that is reached over another one.
async fn through(over: &Handle<Verifier>, hop: &Host) -> Result<russh::Channel<Msg>, ConnectFault> {
    let (address, port) = (hop.address.as_str(), u32::from(hop.port));
    let opened = over.channel_open_direct_tcpip(address, port, "127.0.0.1", 0);
    opened.await.map_err(|error| {
        let wrong = format!(
            "{} cannot be reached over the machine before it: {error}",
            hop.name
        );
        ConnectFault::new("unreachable", wrong).retryable()
    })
}

async fn begin<S>(
    hop: &Host,
    way: &Way<'_>,
    (known, incoming): (&Arc<KnownHosts>, Option<mpsc::Sender<russh::Channel<Msg>>>),
    stream: S,
) -> Result<Handle<Verifier>, ConnectFault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let filed = FiledNames::new(&hop.address, hop.port);
    let files = hop.known_hosts.as_deref().unwrap_or(way.known_hosts);
    let config = client::Config {
        window_size: WINDOW_BYTES,
        keepalive_interval: Some(Duration::from_millis(way.limits.keepalive_ms.max(1))),
        keepalive_max: KEEPALIVE_MAX,
        nodelay: true,
        preferred: preferred(known, &filed),
        ..client::Config::default()
    };
    let verifier = Verifier {
        known: Arc::clone(known),
        filed_as: filed,
        address: hop.address.clone(),
        trust: hop.trust,
        write_to: files.first().cloned(),
        incoming,
    };
    client::connect_stream(Arc::new(config), stream, verifier).await
}

/// Types of keys of which the host has a known one come first: a server with several shows the first.
fn preferred(known: &KnownHosts, filed_as: &FiledNames) -> Preferred {
    let (kinds, certified) = known.host_kinds(filed_as);
    let mut keys: Vec<Algorithm> = Preferred::DEFAULT.key.iter().cloned().collect();
    let certificates = if certified { keys.clone() } else { Vec::new() };
    keys.sort_by_key(|key| {
        // A key of RSA is filed under its own name, not under those of its signatures.
        let filed = match key {
            Algorithm::Rsa { .. } => "ssh-rsa",
            other => other.as_str(),
        };
        !kinds.contains(&filed)
    });
    Preferred {
        key: Cow::Owned(keys),
        host_key_certificates: Cow::Owned(certificates),
        cipher: ciphers(has_aes()),
        ..Preferred::DEFAULT
    }
}

/// AES-GCM comes first where the processor has instructions for it: it is faster there than ChaCha20, and slower elsewhere.
fn ciphers(has_aes: bool) -> Cow<'static, [cipher::Name]> {
    let mut order = Preferred::DEFAULT.cipher.into_owned();
    if has_aes {
        order.sort_by_key(|name| *name != cipher::AES_256_GCM);
    }
    Cow::Owned(order)
}

/// Whether the processor has instructions for AES.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aes_comes_first_where_the_processor_has_it_and_nothing_is_left_out() {
        let plain = ciphers(false);
        assert_eq!(plain, Preferred::DEFAULT.cipher);
        let fast = ciphers(true);
        assert_eq!(fast[0], cipher::AES_256_GCM);
        assert_eq!(fast.len(), plain.len());
        assert!(plain.iter().all(|name| fast.contains(name)));
    }
}
