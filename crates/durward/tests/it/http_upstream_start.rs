//! How a server behind HTTP is found and trusted: URL or command, keys, certificates, and what is wrong with them.

use std::fs;
use std::io::{self, Write as _};

use crate::support::authority::{Authority, secure};
use crate::support::guarded::{
    self, LATEST, Place, binary, call_works, echo, end, eventually, line, wait_for_end,
};
use crate::support::refusals::is_passed;
use crate::support::web::{self, Web, behave, reply};
use mcp::client::{Client, Options};
use rcgen::date_time_ymd;
use rustix::process::{Pid, Signal, kill_process};

/// A port on which nobody listens.
fn free_port() -> u16 {
    mocks::ports::reserved().unwrap()
}

/// A run with a URL first and the echo mock second.
fn either(place: &Place, url: &str, flags: &[&str]) -> Client {
    place.guard_with(&[&["--url", url], flags].concat(), &["echo"])
}

#[test]
fn auto_takes_the_url_where_a_server_answers_and_says_so() {
    let place = Place::new();
    let web = Web::start(behave);
    let mut client = either(&place, &web.url(), &[]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = format!("the server is reached at {}", web.url());
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    assert_eq!(web.texts(), ["x"]);
    assert_eq!(place.counted().len(), 0);
    // The look whether it is there has its own session, and ends it.
    let deleted = web
        .requests()
        .iter()
        .filter(|r| r.method == "DELETE")
        .count();
    assert_eq!((web.of_method("initialize").len(), deleted), (2, 2));
}

#[test]
fn auto_starts_the_command_where_nobody_answers_and_says_so() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let mut client = either(&place, &url, &[]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains(&format!("no server at {url}")),
        "{}",
        ended.stderr
    );
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn auto_finds_a_server_that_comes_up_late() {
    let place = Place::new();
    let port = free_port();
    let mut client = either(&place, &format!("http://127.0.0.1:{port}/mcp"), &[]);
    client.send_request("ping", serde_json::json!({})).unwrap();
    guarded::pause(300);
    let web = Web::start_at(port, behave);
    client.process();
    let answer = line(&mut client);
    assert!(is_passed(&answer), "{answer}");
    call_works(&mut client, "x");
    assert_eq!(web.texts(), ["x"]);
}

#[test]
fn auto_does_not_pass_over_a_server_that_refuses() {
    for status in [
        "401 Unauthorized",
        "404 Not Found",
        "500 Internal Server Error",
    ] {
        let place = Place::new();
        let web = Web::start(move |_, wire| {
            wire.write_all(&reply(status, "", "text/plain", "no"))?;
            Ok(web::Then::Keep)
        });
        let ended = wait_for_end(either(&place, &web.url(), &[]));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let number = status.split(' ').next().unwrap();
        assert!(
            ended.stderr.contains(&format!("status {number}")),
            "{}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("--transport stdio"),
            "{}",
            ended.stderr
        );
        let requests = web.requests();
        let posts = requests.iter().filter(|request| request.method == "POST");
        assert_eq!(posts.count(), 1, "not tried again");
        // Where there may be a server of the older transport, its stream is looked for once.
        assert!(requests.len() <= 2, "{requests:?}");
        assert_eq!(place.counted().len(), 0);
    }
}

#[test]
fn signal_while_a_server_is_looked_for() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let mut client = either(&place, &url, &[]);
    let pid = Pid::from_raw(i32::try_from(client.process().pid()).unwrap()).unwrap();
    eventually("the journal is open", || !place.segments().is_empty());
    guarded::pause(200);
    kill_process(pid, Signal::TERM).unwrap();
    let ended = wait_for_end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.verified();
}

#[test]
fn h4_transport_chooses_one_of_both_and_its_record_names_it() {
    let web = Web::start(behave);
    for (transport, reached, started) in [("stdio", 0, 1), ("http", 1, 0)] {
        let place = Place::new();
        let mut client = either(&place, &web.url(), &["--transport", transport]);
        client.handshake(LATEST).unwrap();
        call_works(&mut client, "x");
        assert_eq!(end(client).code, Some(0));
        assert_eq!(
            (web.texts().len(), place.counted().len()),
            (reached, started)
        );
        let journal = place.records();
        let operations = journal.operations();
        let calls = operations.iter().filter(|r| r["method"] == "tools/call");
        let named: Vec<_> = calls.map(|record| &record["transport"]).collect();
        assert_eq!(named, [transport], "{operations:#?}");
    }
}

#[test]
fn wrong_urls_and_keys_are_named() {
    let place = Place::new();
    fs::write(place.path("empty.pem"), "").unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--url", "http://example.org/mcp"], "--insecure-http"),
        (
            &["--url", "https://me:secret@example.org/"],
            "--api-key-env",
        ),
        (&["--url", "ftp://example.org/"], "must begin with http://"),
        (&["--url", "example.org"], "this is not a URL"),
        (
            &["--url", "https://h/", "--api-key-env", "NOT_SET"],
            "NOT_SET",
        ),
        (
            &["--url", "https://h/", "--api-key-env", "BAD_KEY"],
            "BAD_KEY",
        ),
        (
            &["--url", "https://h/", "--ca", "missing.pem"],
            "missing.pem",
        ),
        (
            &["--url", "https://h/", "--ca", "empty.pem"],
            "no certificate",
        ),
        (
            &["--transport", "stdio", "--url", "https://h/"],
            "needs the server's command",
        ),
    ];
    for (flags, said) in cases {
        let mut args = place.run_args(flags, &[]);
        args.pop();
        let options = Options {
            env: vec![("BAD_KEY".into(), "a\nb".into())],
            ..place.options()
        };
        let ended = wait_for_end(Client::spawn_with(binary(), args, &options).unwrap());
        assert_eq!(ended.code, Some(16), "{flags:?} {ended:?}");
        assert!(ended.stderr.contains(said), "{flags:?} {}", ended.stderr);
        assert!(!ended.stderr.contains("me:secret"), "{}", ended.stderr);
    }
    let flags = ["--url", "https://h/", "--client-cert", "c.pem"];
    let ended = wait_for_end(place.guard_reached(&flags));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(place.segments().len(), 0, "nothing is begun");
}

#[test]
fn key_goes_to_the_server_and_nowhere_else() {
    let place = Place::new();
    let web = Web::start(behave);
    let mut args = place.run_args(
        &["--url", &web.url(), "--api-key-env", "MY_KEY", "-vv"],
        &[],
    );
    args.pop();
    let options = Options {
        env: vec![("MY_KEY".into(), "s3cret-key".into())],
        ..place.options()
    };
    let mut client = Client::spawn_with(binary(), args, &options).unwrap();
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "x");
    let ended = end(client);
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    for request in web.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer s3cret-key"));
    }
    for segment in place.segments() {
        assert!(!fs::read_to_string(segment).unwrap().contains("s3cret"));
    }
}

/// A run over TLS: the reason that the first call gets, or `None` where it is answered.
fn over_tls(web: &Web, trusted: Option<&str>, own: Option<&(String, String)>) -> Option<String> {
    let place = Place::new();
    let url = format!("https://localhost:{}/mcp", web.port);
    let mut flags = vec!["--url", &url];
    let write = |name: &str, text: &str| {
        fs::write(place.path(name), text).unwrap();
    };
    if let Some(pem) = trusted {
        write("ca.pem", pem);
        flags.extend(["--ca", "ca.pem"]);
    }
    if let Some((certificate, key)) = own {
        write("cert.pem", certificate);
        write("key.pem", key);
        flags.extend(["--client-cert", "cert.pem", "--client-key", "key.pem"]);
    }
    let mut client = place.guard_reached(&flags);
    let answer = client.request("tools/call", echo("x")).unwrap();
    let reason = answer
        .error()
        .map(|error| error["data"]["reason"].as_str().unwrap().to_owned());
    if reason.is_none() {
        assert_eq!(answer.text(), Some("x"));
    }
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(web.texts().len(), usize::from(reason.is_none()));
    reason
}

#[test]
fn certificate_of_a_trusted_authority_passes() {
    let authority = Authority::new();
    let web = secure(&authority.certify("localhost", |_| {}), None);
    assert_eq!(over_tls(&web, Some(&authority.pem()), None), None);
}

#[test]
fn certificate_of_an_unknown_authority() {
    let authority = Authority::new();
    let web = secure(&authority.certify("localhost", |_| {}), None);
    let tls = Some("upstream_tls".to_owned());
    assert_eq!(over_tls(&web, Some(&Authority::new().pem()), None), tls);
    assert_eq!(
        over_tls(&web, None, None),
        tls,
        "nor does the system know it"
    );
}

#[test]
fn certificate_for_another_name() {
    let authority = Authority::new();
    let web = secure(&authority.certify("example.org", |_| {}), None);
    let reason = over_tls(&web, Some(&authority.pem()), None);
    assert_eq!(reason.as_deref(), Some("upstream_tls"));
}

#[test]
fn certificate_that_has_expired() {
    let authority = Authority::new();
    let expired = authority.certify("localhost", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let web = secure(&expired, None);
    let reason = over_tls(&web, Some(&authority.pem()), None);
    assert_eq!(reason.as_deref(), Some("upstream_tls"));
}

#[test]
fn server_that_speaks_no_tls() {
    let web = Web::start_over(behave, |mut socket| {
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        guarded::pause(200);
        Err(io::ErrorKind::InvalidData.into())
    });
    let reason = over_tls(&web, Some(&Authority::new().pem()), None);
    assert_eq!(reason.as_deref(), Some("upstream_tls"));
}

#[test]
fn server_that_demands_a_certificate() {
    let authority = Authority::new();
    let own = authority.certify("localhost", |_| {});
    let trusted = authority.pem();
    let client = authority.certify("client", |_| {});
    let stranger = Authority::new().certify("client", |_| {});
    let cases = [
        (None, Some("upstream_tls")),
        (Some(&stranger), Some("upstream_tls")),
        (Some(&client), None),
    ];
    for (certificate, expect) in cases {
        let web = secure(&own, Some(&trusted));
        let reason = over_tls(&web, Some(&trusted), certificate);
        assert_eq!(reason.as_deref(), expect);
    }
}
