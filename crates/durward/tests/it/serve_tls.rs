//! `durward serve` over TLS: to those who trust its certificate; nothing in the clear, and no half handshake holds
//! up anybody.

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use crate::support::guarded::Place;
use crate::support::serving::{Served, call};
use rcgen::CertifiedKey;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn certificate() -> CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

fn place_with(made: &CertifiedKey<rcgen::KeyPair>) -> Place {
    let place = Place::new();
    fs::write(place.path("cert.pem"), made.cert.pem()).unwrap();
    fs::write(place.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    place
}

const FLAGS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

/// One request over TLS by somebody who trusts this certificate; the error where there is no TLS.
fn over_tls(
    served: &Served,
    trusted: &CertificateDer<'static>,
    headers: &str,
    body: &str,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tls = StreamOwned::new(connection, served.connect());
    let request = format!(
        "POST /mcp/echo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    tls.write_all(request.as_bytes())?;
    let mut text = String::new();
    // Whether the end is said or only comes is not looked at.
    let _ = tls.read_to_string(&mut text);
    Ok(text)
}

#[test]
fn calls_pass_over_tls_and_nothing_in_the_clear() {
    let made = certificate();
    let served = Served::start_in(place_with(&made), &FLAGS);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = over_tls(&served, made.cert.der(), "", hello).unwrap();
    let session = opened
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("{opened}"));
    // Those who trust another certificate break off, and those who speak plainly get no word.
    let other = certificate();
    let error = over_tls(&served, other.cert.der(), "", hello).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    for plain in [
        "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "\x16\x03",
        "\0\0\0",
    ] {
        let mut stream = served.connect();
        stream.write_all(plain.as_bytes()).unwrap();
        if plain.starts_with('\x16') {
            // A handshake that never goes on is given up in the end; nobody waits for it.
            continue;
        }
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("HTTP/1.1 200"), "{text}");
    }
    let headers = format!("mcp-session-id: {session}\r\n");
    let answer = over_tls(&served, made.cert.der(), &headers, &call("2", "secret")).unwrap();
    assert!(answer.contains("\"text\":\"secret\""), "{answer}");
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn certificates_that_cannot_be_used_are_named_before_anything_begins() {
    let place = place_with(&certificate());
    fs::write(
        place.path("other.pem"),
        certificate().signing_key.serialize_pem(),
    )
    .unwrap();
    fs::write(place.path("nonsense.pem"), "nonsense").unwrap();
    let run = |flags: &[&str]| {
        let all = [
            &[
                "--no-config",
                "--state-dir",
                "state",
                "serve",
                "--server",
                "a=true",
            ],
            flags,
        ]
        .concat();
        let output = place.durward(&all);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    for (cert, key, word) in [
        ("cert.pem", "other.pem", "other.pem"),
        (
            "nonsense.pem",
            "key.pem",
            "there is no PEM certificate in it",
        ),
        (
            "cert.pem",
            "nonsense.pem",
            "there is no PEM private key in it",
        ),
        ("missing.pem", "key.pem", "missing.pem"),
    ] {
        let (code, text) = run(&["--tls-cert", cert, "--tls-key", key]);
        assert_eq!(code, Some(16), "{text}");
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(run(&["--tls-cert", "cert.pem"]).0, Some(2));
    assert!(!place.path("state/journal").exists());
}
