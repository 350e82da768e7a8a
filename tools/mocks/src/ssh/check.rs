//! The servers, looked at from outside before anybody relies on them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{self, AuthResult, Config, Handle, Handler};
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{ChannelMsg, Disconnect};
use tokio::time::{Instant, timeout};

use super::ListeningTarget;
use sshd::AdmissionRule;

/// Longest time that looking at one server takes.
const LOOK: Duration = Duration::from_secs(60);
/// Round trips that are measured.
const ROUNDS: usize = 5;
/// Text that a server has to echo.
const WORD: &str = "durward";
/// How much later than its period a server may restart.
const RESTART_LATE: Duration = Duration::from_secs(10);

/// Result of the check of one server.
#[derive(Debug)]
pub struct TargetCheck {
    name: String,
    port: u16,
    about: String,
    /// The fastest of some round trips.
    round_trip: Option<Duration>,
    /// Fault of the server: a missing or a wrong behaviour.
    pub wrong: Option<String>,
}

impl fmt::Display for TargetCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.port, self.name, self.about)?;
        if let Some(took) = self.round_trip {
            write!(f, "; round trip {:.1} ms", took.as_secs_f64() * 1e3)?;
        }
        match &self.wrong {
            None => f.write_str("; as it should be"),
            Some(wrong) => write!(f, "; WRONG: {wrong}"),
        }
    }
}

/// Looks at all of them at once.
pub async fn all(
    all: &[ListeningTarget],
    key: &PrivateKey,
    host_key: &PublicKey,
) -> Vec<TargetCheck> {
    let looking: Vec<_> = all
        .iter()
        .map(|listens| {
            let look = TargetProbe {
                listens: listens.clone(),
                key: key.clone(),
                host_key: host_key.clone(),
            };
            tokio::spawn(look.look())
        })
        .collect();
    let mut seen = Vec::new();
    for looking in looking {
        seen.extend(looking.await);
    }
    seen
}

struct TargetProbe {
    listens: ListeningTarget,
    key: PrivateKey,
    host_key: PublicKey,
}

struct KnownKey(PublicKey);

impl Handler for KnownKey {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        Ok(match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.key_data() == self.0.key_data(),
            PublicKeyOrCertificate::Certificate(_) => false,
        })
    }
}

impl TargetProbe {
    async fn look(self) -> TargetCheck {
        let about = match self.listens.line {
            None => self.listens.variant.about.to_owned(),
            Some(line) => format!(
                "{}, {} ms, jitter {} ms, loss {} %",
                self.listens.variant.about,
                line.delay.as_millis(),
                line.jitter.as_millis(),
                line.loss_percent
            ),
        };
        let looked = timeout(LOOK, self.probe()).await;
        let looked = looked.unwrap_or_else(|_| Err("it took too long".to_owned()));
        let (round_trip, wrong) = match looked {
            Ok(round_trip) => (round_trip, None),
            Err(wrong) => (None, Some(wrong)),
        };
        TargetCheck {
            name: self.listens.name,
            port: self.listens.address.port(),
            about,
            round_trip,
            wrong,
        }
    }

    async fn probe(&self) -> Result<Option<Duration>, String> {
        let variant = self.listens.variant;
        let (user, password) = (variant.user, variant.password());
        for (user, password) in [(user, password), (user, "not it"), ("root", "root")] {
            let is = self.by_password(user, password).await?.is_some();
            let should = variant.takes_password(user, password);
            if is != should {
                return Err(describe_login(&format!("{user} with a password"), is));
            }
        }
        let began = Instant::now();
        let by_key = self.by_key(user).await?;
        let took = began.elapsed();
        let Some(client) = by_key else {
            return match variant.admits {
                AdmissionRule::Nobody => Ok(None),
                AdmissionRule::PasswordAndKey | AdmissionRule::KeyOnly => {
                    Err(describe_login("the key", false))
                }
            };
        };
        if variant.admits == AdmissionRule::Nobody {
            return Err(describe_login("the key", true));
        }
        if took < variant.slow {
            return Err(format!("a login took only {} ms", took.as_millis()));
        }
        let told = echo(&client).await?;
        if told != WORD {
            return Err(format!("it was told {WORD} and said {told:?}"));
        }
        let round_trip = round_trip(&client).await?;
        if let Some(line) = self.listens.line {
            let least = line.delay.saturating_sub(line.jitter);
            if round_trip < least {
                return Err(format!(
                    "a round trip takes only {} ms",
                    round_trip.as_millis()
                ));
            }
        }
        if let Some(period) = variant.restarts {
            let began = Instant::now();
            while !client.is_closed() {
                if began.elapsed() > period + RESTART_LATE {
                    return Err("it does not restart".to_owned());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            return Ok(Some(round_trip));
        }
        let _ = client.disconnect(Disconnect::ByApplication, "", "").await;
        Ok(Some(round_trip))
    }

    /// Returns a connection. A server that restarts just now is tried again.
    async fn connect(&self) -> Result<Handle<KnownKey>, String> {
        let config = Arc::new(Config {
            nodelay: true,
            ..Config::default()
        });
        let mut wrong = String::new();
        for _ in 0..ROUNDS {
            let known = KnownKey(self.host_key.clone());
            match client::connect(Arc::clone(&config), self.listens.address, known).await {
                Ok(client) => return Ok(client),
                Err(error) => wrong = format!("it cannot be connected to: {error}"),
            }
            if self.listens.variant.restarts.is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Err(wrong)
    }

    async fn by_password(
        &self,
        user: &str,
        password: &str,
    ) -> Result<Option<Handle<KnownKey>>, String> {
        let mut client = self.connect().await?;
        let answer = client.authenticate_password(user, password).await;
        let answer = answer.map_err(|error| format!("a login failed: {error}"))?;
        Ok(matches!(answer, AuthResult::Success).then_some(client))
    }

    async fn by_key(&self, user: &str) -> Result<Option<Handle<KnownKey>>, String> {
        let mut client = self.connect().await?;
        let key = PrivateKeyWithHashAlg::new(Arc::new(self.key.clone()), None);
        let answer = client.authenticate_publickey(user, key).await;
        let answer = answer.map_err(|error| format!("a login failed: {error}"))?;
        Ok(matches!(answer, AuthResult::Success).then_some(client))
    }
}

fn describe_login(who: &str, is_let_in: bool) -> String {
    let what = if is_let_in { "is let in" } else { "is refused" };
    format!("{who} {what}")
}

async fn echo(client: &Handle<KnownKey>) -> Result<String, String> {
    let failed = |error: russh::Error| format!("a command failed: {error}");
    let mut channel = client.channel_open_session().await.map_err(failed)?;
    let line = format!("printf {WORD}");
    channel.exec(true, line).await.map_err(failed)?;
    let mut told = Vec::new();
    while let Some(message) = channel.wait().await {
        if let ChannelMsg::Data { data } = message {
            told.extend_from_slice(&data);
        }
    }
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// Returns the fastest of some openings of a channel: one round trip each.
async fn round_trip(client: &Handle<KnownKey>) -> Result<Duration, String> {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let opened = client.channel_open_session().await;
        let channel = opened.map_err(|error| format!("no channel is opened: {error}"))?;
        least = least.min(began.elapsed());
        let _ = channel.close().await;
    }
    Ok(least)
}
