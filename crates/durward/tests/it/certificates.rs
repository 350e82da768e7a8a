//! Our own certificates: a start refuses one that has ended, and one that soon will is reported.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::guarded::{Place, eventually};
use crate::support::serving::Served;
use serde_json::Value;

const DAY_S: i64 = 86_400;

/// Writes a certificate that ends in so many days, and its key.
fn certify(place: &Place, name: &str, days: i64) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let end_s = u64::try_from(now_s() + days * DAY_S + 3_600).unwrap();
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(end_s);
    let own = params.self_signed(&key).unwrap();
    fs::write(place.path(&format!("{name}.pem")), own.pem()).unwrap();
    fs::write(place.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap()
}

fn ran(place: &Place, words: &[&str]) -> (Option<i32>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = place.durward(words);
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code(), text)
}

/// A configuration whose server is reached with the certificate `own`.
fn reached_with(place: &Place, own: &str) {
    let text = format!(
        "servers: {{ far: {{ url: \"https://localhost:1/mcp\", client_cert: {own}.pem, client_key: {own}.key }} }}\npolicy: policy.json\n"
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
}

#[test]
fn nothing_starts_with_a_certificate_that_has_expired() {
    let place = Place::new();
    certify(&place, "old", -2);
    let mock = place.mock(&["echo"]).join(" ");
    let server = format!("echo={mock}");
    let serve = [
        "--no-config",
        "--state-dir",
        "state",
        "serve",
        "--policy",
        "policy.json",
        "--server",
        &server,
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "old.pem",
        "--tls-key",
        "old.key",
    ];
    // Where it starts all the same, it is ended by the limit of its time.
    let limited = |words: &[&str]| {
        let mut command = std::process::Command::new("timeout");
        command
            .args(["20", crate::support::guarded::binary()])
            .args(words);
        command
            .current_dir(&place.dir)
            .env("XDG_RUNTIME_DIR", place.runtime());
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, text) = limited(&serve);
    assert_eq!(code, Some(16), "{text}");
    assert!(
        text.contains("tls.cert: the certificate old.pem has expired"),
        "{text}"
    );
    reached_with(&place, "old");
    for words in [
        &["check"][..],
        &["serve", "--listen", "127.0.0.1:0"],
        &["run", "far"],
    ] {
        let before = ["--config", "durward.yaml", "--state-dir", "state"];
        let (code, text) = limited(&[&before[..], words].concat());
        assert_eq!(code, Some(16), "{words:?} {text}");
        let says = "servers.far.client_cert: the certificate ";
        assert!(
            text.contains(says) && text.contains("has expired"),
            "{text}"
        );
    }
}

#[test]
fn a_certificate_that_soon_ends_is_reported_everywhere_and_a_fresh_one_nowhere() {
    for (days, is_near) in [(5, true), (12, true), (40, false)] {
        let place = Place::new();
        certify(&place, "own", days);
        reached_with(&place, "own");
        let (code, text) = ran(&place, &["--config", "durward.yaml", "check"]);
        assert_eq!(code, Some(0), "{text}");
        let says = format!("expires in {days} days");
        assert_eq!(text.contains(&says), is_near, "{text}");
        let log = place.path("log");
        let served = served_over_tls(place, &log);
        let output =
            served
                .place
                .durward(&["--no-config", "--state-dir", "state", "status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        let certificates = &status["instances"][0]["certificates"];
        assert_eq!(certificates[0]["name"], "tls.cert", "{status}");
        let warning = certificates[0]["warning"].as_str();
        assert_eq!(
            warning.is_some_and(|text| text.contains(&says)),
            is_near,
            "{status}"
        );
        assert_eq!(status["instances"][0]["healthy"], true, "{status}");
        let (_, text) = ran(
            &served.place,
            &["--no-config", "--state-dir", "state", "status"],
        );
        assert_eq!(text.contains(&says), is_near, "{text}");
        let log_text = || fs::read_to_string(&log).unwrap();
        if is_near {
            eventually("the log says so", || log_text().contains(&says));
        } else {
            assert!(!log_text().contains("expires"), "{}", log_text());
        }
    }
}

fn served_over_tls(place: Place, log: &Path) -> Served {
    let mock = place.mock(&["echo"]).join(" ");
    let server = format!("echo={mock}");
    let words = [
        "--no-config",
        "--state-dir",
        "state",
        "serve",
        "--policy",
        "policy.json",
        "--server",
        &server,
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "own.pem",
        "--tls-key",
        "own.key",
    ];
    Served::spawn_logging(place, &words, log)
}
