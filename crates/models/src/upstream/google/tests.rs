use std::path::PathBuf;
use std::sync::Arc;

use super::*;

/// Something that is no key, and may be shown nowhere.
const CANARY: &str = "c4nary";

fn fault(text: &str) -> CredentialFault {
    GoogleCredential::read(text.as_bytes()).unwrap_err()
}

#[test]
fn what_is_no_credential_is_told_by_what_it_lacks_and_never_repeated() {
    let pem = "-----BEGIN PRIVATE KEY-----\\nYzRuYXJ5\\n-----END PRIVATE KEY-----";
    for (text, says) in [
        ("", "not a JSON file"),
        ("[]", "not a JSON file"),
        (r#"{"type": 7, "private_key": "c4nary"}"#, "not a JSON file"),
        (
            r#"{"type": "external_account", "x": "c4nary"}"#,
            "\"external_account\" cannot be used",
        ),
        (
            r#"{"type": "service_account", "client_email": "c4nary"}"#,
            "no private_key",
        ),
        (
            r#"{"type": "service_account", "private_key": "c4nary"}"#,
            "not an RSA key",
        ),
        (
            &format!(r#"{{"type": "service_account", "private_key": "{pem}"}}"#),
            "not an RSA key",
        ),
        (
            r#"{"type": "authorized_user", "client_id": "x", "client_secret": "c4nary", "refresh_token": ""}"#,
            "no refresh_token",
        ),
    ] {
        let said = fault(text).to_string();
        assert!(said.contains(says), "{text}: {said}");
        assert!(!said.contains(CANARY), "{said}");
    }
}

#[test]
fn no_part_of_a_credential_is_shown() {
    let user = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "c4nary-s", "refresh_token": "c4nary-r", "quota_project_id": "p"}"#;
    let user = GoogleCredential::read(user.as_bytes()).unwrap();
    assert_eq!(user.project(), Some("p"));
    let shown = format!("{user:?} {:?}", user.way);
    assert!(!shown.contains(CANARY), "{shown}");
}

fn tokens(path: PathBuf) -> Tokens {
    Tokens::new(GoogleCredential::token_file(path), false).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// The file is this test's alone.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("durward-{}-{name}", std::process::id()))
}

#[tokio::test]
async fn a_token_that_was_taken_is_replaced_and_one_that_never_was_is_not_asked_for_again() {
    let path = file("token");
    std::fs::write(&path, "one\n").unwrap();
    let own = tokens(path.clone());
    let one = own.token(soon()).await.unwrap();
    own.taken(&one);
    std::fs::write(&path, "two").unwrap();
    assert!(one.is_same(&own.token(soon()).await.unwrap()), "it is kept");
    assert_eq!(own.refused(&one), Refused::TakeAnother);
    let two = own.token(soon()).await.unwrap();
    assert!(two.is_same(&Key::new("two").unwrap()));
    assert_eq!(own.refused(&one), Refused::TakeAnother, "it is an old one");
    assert_eq!(own.refused(&two), Refused::Wait);
    std::fs::write(&path, "no token\n").unwrap();
    let none = own.token(soon()).await.unwrap_err();
    assert_eq!(none.trouble, Trouble::Credentials);
    std::fs::remove_file(&path).unwrap();
    let none = own.token(soon()).await.unwrap_err();
    assert_eq!(none.trouble, Trouble::Credentials);
}

#[tokio::test]
async fn who_waits_for_a_refresh_that_fails_takes_its_fault() {
    // Nobody listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = gone.local_addr().unwrap().to_string();
    drop(gone);
    let own = Arc::new(Tokens::new(GoogleCredential::metadata(host), false).unwrap());
    let held = own.turn.lock().await;
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let own = Arc::clone(&own);
            tokio::spawn(async move { own.token(soon()).await.err().map(|fault| fault.trouble) })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(held);
    for one in waiting {
        assert_eq!(one.await.unwrap(), Some(Trouble::Unreachable));
    }
    let _held = own.turn.lock().await;
    let late = own.token(Instant::now() + Duration::from_millis(10)).await;
    let late = late.unwrap_err();
    assert_eq!(late.trouble, Trouble::TooSlow);
}
