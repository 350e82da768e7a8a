//! SSH servers to test and to measure against, without any rights: seven that differ in one thing each, and a twin of
//! each behind a bad line. Commands are run by `/bin/sh` as the user of the mock, for every login.
//!
//! They listen on one address of this machine alone. Each is checked from outside before use: a server that does not do
//! what is peculiar about it ends the mock.

mod check;
mod delay;
mod line;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sshd::{
    AdmissionRule, LINES, LineQuality, PrivateKey, RANDOM, ServerShared, ServerVariant, TWIN_PORTS,
    VARIANTS,
};
use tokio::net::TcpListener;

use crate::MockError;
use delay::DelayDirection;
pub use line::{BadLine, LineState};

/// Last part of the help text.
pub(crate) const HELP: &str = "\
Servers: standard, keyonly, prompts, slowauth, denyall, unstable (drops all connections every 5 s), root.
Users testuser, fancyuser, gituser, zshuser, dashuser and slowuser have the password testpass; root's is root.
Every user's commands run as you, by /bin/sh. The twins are called standard-far and so on.

Examples:
  durward-lab mock ssh-target --dir target
  durward ssh serve --hosts target/ssh_hosts.yaml
  durward-lab mock ssh-target --dir target --only standard --no-twins --port 0

All servers are looked at first: who is let in, what a command says, how long a round trip takes. It ends with its standard input.";

/// Default address of all servers.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The address of the target in `lab farm`.
const FARM_TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 178, 0, 20));
/// The port of the first server.
const FIRST_PORT: u16 = 2222;
const KEY_FILE: &str = "id_ed25519";
const KNOWN_HOSTS: &str = "known_hosts";
const HOSTS: &str = "ssh_hosts.yaml";

/// Options of `ssh-target`.
#[derive(Debug, clap::Args)]
pub struct SshTargetArgs {
    /// Where the key, the known hosts and the file of hosts are written; what is there is replaced.
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// The port of the first server; the others follow, and the twins a hundred further. 0 takes free ports.
    #[arg(long, value_name = "N", default_value_t = FIRST_PORT)]
    pub port: u16,
    /// The address of all servers: 127.0.0.1, or 10.178.0.20 inside of `durward-lab farm run target`. There is no
    /// other, so that nobody else's machine is ever loaded.
    #[arg(long, value_name = "ADDRESS", default_value_t = LOOPBACK, value_parser = own_address)]
    pub address: IpAddr,
    /// Only this server, with its twin; repeatable [default: all seven]
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Start no twins.
    #[arg(long)]
    pub no_twins: bool,
    /// Have the twins delay both directions, and not only the one towards the server.
    #[arg(long)]
    pub delay_both: bool,
}

/// A server, or a twin, that listens.
#[derive(Debug, Clone)]
struct ListeningTarget {
    variant: ServerVariant,
    name: String,
    address: SocketAddr,
    line: Option<LineQuality>,
}

/// Serves until its standard input ends.
pub(crate) fn run(args: &SshTargetArgs) -> Result<u8, MockError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(MockError::Runtime)?;
    runtime.block_on(serve_all(args))
}

async fn serve_all(args: &SshTargetArgs) -> Result<u8, MockError> {
    let chosen = choose_targets(&args.only)?;
    fs::create_dir_all(&args.dir).map_err(|source| MockError::Path {
        path: args.dir.clone(),
        source,
    })?;
    let (key, host_key) = (fresh_key()?, fresh_key()?);
    let mut all = Vec::new();
    for (at, variant) in chosen {
        let (listener, address) = listen((args.address, args.port), at).await?;
        let shared = Arc::new(ServerShared::new(variant, &key, host_key.clone()));
        tokio::spawn(sshd::run(listener, address, shared));
        all.push(ListeningTarget {
            variant,
            name: variant.name.to_owned(),
            address,
            line: None,
        });
        if let (Some(line), false) = (LINES.get(usize::from(at)), args.no_twins) {
            let (listener, twin) = listen((args.address, args.port), at + TWIN_PORTS).await?;
            let ways = if args.delay_both {
                DelayDirection::Both
            } else {
                DelayDirection::There
            };
            tokio::spawn(delay::run(listener, address, *line, ways));
            all.push(ListeningTarget {
                variant,
                name: format!("{}-far", variant.name),
                address: twin,
                line: Some(*line),
            });
        }
    }
    write_files(&args.dir, &all, &key, &host_key)?;
    let looked = check::all(&all, &key, host_key.public_key()).await;
    let mut out = std::io::stdout().lock();
    let mut wrong = 0;
    for seen in &looked {
        wrong += usize::from(seen.wrong.is_some());
        writeln!(out, "{seen}").map_err(MockError::Stdio)?;
    }
    if wrong > 0 {
        let text = format!(
            "{wrong} of {} servers do not do what they are for",
            looked.len()
        );
        return Err(MockError::Usage(text));
    }
    let hosts = args.dir.join(HOSTS);
    writeln!(out, "ready: {}", hosts.display()).map_err(MockError::Stdio)?;
    out.flush().map_err(MockError::Stdio)?;
    drop(out);
    let ended =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    let _ = ended.await;
    Ok(0)
}

/// Passes connections on to a server over the bad lines of the first twins, as long as its runtime is there; gives an
/// address for each line.
///
/// # Errors
/// If no port is free.
pub async fn bad_lines(to: SocketAddr, count: usize) -> std::io::Result<Vec<SocketAddr>> {
    let mut all = Vec::new();
    for line in LINES.into_iter().take(count) {
        let listener = TcpListener::bind((LOOPBACK, 0)).await?;
        all.push(listener.local_addr()?);
        tokio::spawn(delay::run(listener, to, line, DelayDirection::There));
    }
    Ok(all)
}

/// Returns the servers of these names, with their numbers.
fn choose_targets(only: &[String]) -> Result<Vec<(u16, ServerVariant)>, MockError> {
    let all = (0..).zip(VARIANTS);
    if let Some(unknown) = only
        .iter()
        .find(|name| VARIANTS.iter().all(|variant| variant.name != **name))
    {
        let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        let text = format!(
            "there is no server \"{unknown}\"; there are {}",
            names.join(", ")
        );
        return Err(MockError::Usage(text));
    }
    let is_chosen =
        |variant: &ServerVariant| only.is_empty() || only.iter().any(|name| name == variant.name);
    Ok(all.filter(|(_, variant)| is_chosen(variant)).collect())
}

fn own_address(text: &str) -> Result<IpAddr, String> {
    match text.parse() {
        Ok(address) if [LOOPBACK, FARM_TARGET].contains(&address) => Ok(address),
        _ => Err("it has to be 127.0.0.1, or 10.178.0.20 in the target of lab farm".to_owned()),
    }
}

async fn listen(
    (to, first): (IpAddr, u16),
    at: u16,
) -> Result<(TcpListener, SocketAddr), MockError> {
    let port = match first {
        0 => 0,
        first => first.checked_add(at).ok_or_else(|| {
            MockError::Usage(format!(
                "--port {first} is too high: the last server is {at} further"
            ))
        })?,
    };
    let address = SocketAddr::new(to, port);
    let failed = |source| MockError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Returns the name of the host that has this port by default.
#[must_use]
pub fn name_of(port: u16) -> Option<String> {
    let at = port.checked_sub(FIRST_PORT)?;
    let variant = VARIANTS.get(usize::from(at % TWIN_PORTS))?;
    match at / TWIN_PORTS {
        0 => Some(variant.name.to_owned()),
        1 => Some(format!("{}-far", variant.name)),
        _ => None,
    }
}

fn fresh_key() -> Result<PrivateKey, MockError> {
    sshd::fresh_key().map_err(|source| MockError::Path {
        path: RANDOM.into(),
        source,
    })
}

/// Writes what a client needs: the key, the host keys, and a file of hosts for `durward ssh serve --hosts`.
fn write_files(
    dir: &Path,
    all: &[ListeningTarget],
    key: &PrivateKey,
    host_key: &PrivateKey,
) -> Result<(), MockError> {
    let unwritten = |error: std::io::Error| MockError::Usage(error.to_string());
    let private = sshd::key_file(key).map_err(unwritten)?;
    let (mut known, mut hosts) = (String::new(), String::new());
    for listens in all {
        let (ip, port) = (listens.address.ip(), listens.address.port());
        known.push_str(&sshd::known_hosts_line(listens.address, host_key).map_err(unwritten)?);
        let credential = match listens.variant.admits {
            AdmissionRule::KeyOnly => "key".to_owned(),
            AdmissionRule::PasswordAndKey | AdmissionRule::Nobody => {
                listens.variant.user.to_owned()
            }
        };
        let _ = writeln!(
            hosts,
            "  {}: {{ address: {ip}, port: {port}, credential: {credential} }}",
            listens.name
        );
    }
    let mut credentials = format!("  key: {{ user: testuser, key: {KEY_FILE} }}\n");
    let mut users: Vec<(&str, &str)> = VARIANTS.map(|v| (v.user, v.password())).to_vec();
    users.sort_unstable();
    users.dedup();
    for (user, password) in users {
        let _ = writeln!(
            credentials,
            "  {user}: {{ user: {user}, password_file: {user}.password }}"
        );
        write(&dir.join(format!("{user}.password")), password)?;
    }
    write(&dir.join(KEY_FILE), &private)?;
    write(&dir.join(KNOWN_HOSTS), &known)?;
    let text = format!("known_hosts: [{KNOWN_HOSTS}]\ncredentials:\n{credentials}hosts:\n{hosts}");
    write(&dir.join(HOSTS), &text)
}

fn write(path: &Path, text: &str) -> Result<(), MockError> {
    let mut options = fs::OpenOptions::new();
    let opened = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| MockError::Path {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_names_by_their_ports() {
        for (port, name) in [
            (2222, Some("standard")),
            (2228, Some("root")),
            (2229, None),
            (2322, Some("standard-far")),
            (2328, Some("root-far")),
            (2422, None),
            (22, None),
        ] {
            assert_eq!(name_of(port).as_deref(), name, "{port}");
        }
    }

    #[test]
    fn servers_are_chosen_by_name() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            let chosen = choose_targets(&only).map_err(|error| error.to_string())?;
            Ok::<_, String>(
                chosen
                    .iter()
                    .map(|(at, v)| format!("{at} {}", v.name))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(names(&[]).unwrap().len(), 7);
        assert_eq!(
            names(&["root", "keyonly"]).unwrap(),
            ["1 keyonly", "6 root"]
        );
        let wrong = names(&["rot"]).unwrap_err();
        assert!(
            wrong.contains("\"rot\"") && wrong.contains("denyall"),
            "{wrong}"
        );
    }
}
