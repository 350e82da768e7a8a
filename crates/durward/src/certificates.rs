//! Certificates of our own, and when they end: a start refuses one that has ended, and warns of one that soon will.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use admin::status::CertificateStatus;
use net::timers::kept;
use toolkit::measure::{Measure, Measured};

use crate::config::Settings;
use crate::config::server::Server;
use crate::failure::Failure;
use crate::local;

/// Days before the end from which a warning is given, and from which it is given again.
const WARN_DAYS: i64 = 14;
const URGENT_DAYS: i64 = 7;
/// How often the ends are compared with the clock, in milliseconds.
const LOOK_MS: u64 = 600_000;
/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
const DAY_S: i64 = 86_400;

/// One certificate that we show to others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnCertificate {
    /// What it is used for: `tls.cert`, or `servers.NAME.client_cert`.
    name: String,
    path: PathBuf,
    /// Its end, in seconds since 1970.
    not_after_s: i64,
}

/// How near the end of a certificate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Far,
    Near,
    Urgent,
    Ended,
}

/// All certificates of our own that could be read when the instance started.
#[derive(Debug, Clone, Default)]
pub struct Certificates(Arc<[OwnCertificate]>);

impl Certificates {
    /// Those of `durward serve`: its own, which a flag may name, and those shown to servers over HTTP.
    pub fn of_serve(flag: Option<&PathBuf>, settings: &Settings) -> Self {
        let configured = settings.tls.as_ref().map(|tls| &tls.cert.value);
        let own = flag.or(configured);
        let own = own.map(|path| ("tls.cert".to_owned(), path.as_path()));
        Self::read(
            own.into_iter()
                .chain(settings.servers.iter().filter_map(of_server)),
        )
    }

    /// That of `durward run`: the one shown to its server.
    pub fn of_run(flag: Option<&PathBuf>, server: Option<&Server>) -> Self {
        let flag = flag.map(|path| ("--client-cert".to_owned(), path.as_path()));
        Self::read(flag.or(server.and_then(of_server)).into_iter())
    }

    fn read<'p>(named: impl Iterator<Item = (String, &'p Path)>) -> Self {
        let read = named.filter_map(|(name, path)| {
            let is_short = std::fs::metadata(path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
            // Who uses the file says what else is wrong with it.
            let pem = is_short.then(|| std::fs::read(path).ok()).flatten()?;
            Some(OwnCertificate {
                name,
                path: path.to_path_buf(),
                not_after_s: net::certificate::not_after_s(&pem)?,
            })
        });
        Self(read.collect())
    }

    /// Refuses a certificate that has ended.
    ///
    /// # Errors
    /// Names the first one.
    pub fn check(&self) -> Result<(), Failure> {
        let now_s = local::now_ms() / 1_000;
        let mut ended = self
            .0
            .iter()
            .filter(|own| own.nearness(now_s) == Nearness::Ended);
        ended.next().map_or(Ok(()), |own| {
            Err(Failure::configuration(format!(
                "{}\n  hint: replace the certificate and its key",
                own.sentence(now_s)
            )))
        })
    }

    /// Returns a sentence for each certificate that ends within 14 days.
    pub fn warnings(&self) -> Vec<String> {
        let now_s = local::now_ms() / 1_000;
        let near = self
            .0
            .iter()
            .filter(|own| own.nearness(now_s) > Nearness::Far);
        near.map(|own| own.sentence(now_s)).collect()
    }

    /// Returns whether one has ended while the instance ran.
    pub fn has_ended(&self) -> bool {
        let now_s = local::now_ms() / 1_000;
        self.0
            .iter()
            .any(|own| own.nearness(now_s) == Nearness::Ended)
    }

    /// Logs each certificate whose end is near: once at 14 days, again at 7, and when it has ended. Runs until it is dropped.
    pub async fn watch(self) {
        let mut logged = vec![Nearness::Far; self.0.len()];
        loop {
            let now_s = local::now_ms() / 1_000;
            for (own, logged) in self.0.iter().zip(&mut logged) {
                let nearness = own.nearness(now_s);
                if nearness > *logged {
                    match nearness {
                        Nearness::Ended => tracing::error!("{}", own.sentence(now_s)),
                        _ => tracing::warn!("{}", own.sentence(now_s)),
                    }
                    *logged = nearness;
                }
            }
            if self.0.is_empty() {
                return;
            }
            kept(|| tokio::time::sleep(Duration::from_millis(LOOK_MS))).await;
        }
    }

    /// Returns each with its end, and a warning if that is near.
    pub fn statuses(&self) -> Vec<CertificateStatus> {
        let now_s = local::now_ms() / 1_000;
        let all = self.0.iter().map(|own| {
            let near = own.nearness(now_s) > Nearness::Far;
            CertificateStatus {
                name: own.name.to_string(),
                file: own.path.display().to_string(),
                not_after: own.end(),
                warning: near.then(|| own.sentence(now_s)),
            }
        });
        all.collect()
    }

    /// Returns the end of each as a metric.
    pub fn measures(&self) -> Vec<Measure> {
        let measure = |own: &OwnCertificate| {
            Measure::new(
                "durward_certificate_not_after_timestamp_seconds",
                "When a certificate of our own ends, in seconds since 1970",
                &[("certificate", own.name.as_str())],
                Measured::Level(u64::try_from(own.not_after_s).unwrap_or(0)),
            )
        };
        self.0.iter().map(measure).collect()
    }
}

/// The certificate that is shown to a server.
fn of_server(server: &Server) -> Option<(String, &Path)> {
    let path = server.http.as_ref()?.client_cert.as_ref()?;
    Some((
        format!("servers.{}.client_cert", server.name),
        path.as_path(),
    ))
}

impl OwnCertificate {
    fn nearness(&self, now_s: i64) -> Nearness {
        match self.not_after_s.saturating_sub(now_s) {
            left if left < 0 => Nearness::Ended,
            left if left <= URGENT_DAYS * DAY_S => Nearness::Urgent,
            left if left <= WARN_DAYS * DAY_S => Nearness::Near,
            _ => Nearness::Far,
        }
    }

    /// Its end, as text.
    fn end(&self) -> String {
        gate::journal::format_utc(self.not_after_s.saturating_mul(1_000))
    }

    fn sentence(&self, now_s: i64) -> String {
        let Self { name, path, .. } = self;
        let (path, end) = (path.display(), self.end());
        let left = self.not_after_s.saturating_sub(now_s);
        match self.nearness(now_s) {
            Nearness::Ended => format!("{name}: the certificate {path} has expired ({end})"),
            _ => format!(
                "{name}: the certificate {path} expires in {} ({end})",
                crate::plural::count(usize::try_from(left / DAY_S).unwrap_or(0), "day")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_given_at_fourteen_days_and_again_at_seven() {
        let own = OwnCertificate {
            name: "tls.cert".into(),
            path: "c.pem".into(),
            not_after_s: 100 * DAY_S,
        };
        for (day, nearness) in [
            (0, Nearness::Far),
            (85, Nearness::Far),
            (86, Nearness::Near),
            (92, Nearness::Near),
            (93, Nearness::Urgent),
            (100, Nearness::Urgent),
            (101, Nearness::Ended),
        ] {
            assert_eq!(own.nearness(day * DAY_S), nearness, "{day}");
        }
        let sentence = own.sentence(90 * DAY_S);
        assert!(sentence.contains("c.pem expires in 10 days"), "{sentence}");
    }
}
