//! The server's bounds, each crossed over a real socket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use net::http::server::{
    Drained, Handler, Options, Request, Response, Threads, plain, serve, stream,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Answers {
    /// Requests that were handled to their end.
    answered: AtomicUsize,
    /// Requests or streams that were dropped by a client that went away.
    dropped: Arc<AtomicUsize>,
    /// Lets `/wait` go on.
    go: Notify,
    /// Requests for `/wait` that have come.
    waits: AtomicUsize,
    /// Parts that `/endless` could hand over.
    parts: Arc<AtomicUsize>,
    /// `/hold` is met here twice: when it holds its thread up, and when it goes on.
    hold: Meeting,
}

/// Where two threads meet.
struct Meeting(Barrier);

impl Default for Meeting {
    fn default() -> Self {
        Self(Barrier::new(2))
    }
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Handler for Answers {
    async fn handle(&self, mut request: Request) -> Response {
        let response = match request.head.uri.path() {
            "/wait" => {
                self.waits.fetch_add(1, Ordering::SeqCst);
                let guard = Counted(Arc::clone(&self.dropped));
                self.go.notified().await;
                std::mem::forget(guard);
                plain(http::StatusCode::OK, "waited")
            }
            "/thread" => {
                let thread = std::thread::current();
                let name = format!("[{}]", thread.name().unwrap_or_default());
                http::Response::new(name.into_bytes().into())
            }
            // Holds up its thread, not only its connection.
            "/hold" => {
                self.hold.0.wait();
                self.hold.0.wait();
                plain(http::StatusCode::OK, "held")
            }
            "/endless" => {
                let (sender, body) = stream(4);
                let (dropped, parts) = (Arc::clone(&self.dropped), Arc::clone(&self.parts));
                tokio::spawn(async move {
                    let part = bytes::Bytes::from(vec![b'x'; 64 * 1024]);
                    while sender.send(part.clone()).await.is_ok() {
                        parts.fetch_add(1, Ordering::SeqCst);
                    }
                    dropped.fetch_add(1, Ordering::SeqCst);
                });
                http::Response::new(body)
            }
            _ => match request.read_body().await {
                Ok(body) => http::Response::new(body.into()),
                Err(fault) => plain(fault.status(), fault.sentence()),
            },
        };
        self.answered.fetch_add(1, Ordering::SeqCst);
        response
    }
}

struct Running {
    address: std::net::SocketAddr,
    answers: Arc<Answers>,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Drained>,
}

async fn start(options: Options) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answers = Arc::new(Answers::default());
    let (stop, stopped) = oneshot::channel();
    let handler = Arc::clone(&answers);
    let ended = tokio::spawn(async move {
        let stopped = async {
            drop(stopped.await);
        };
        serve(listener, options, handler, stopped, std::future::pending()).await
    });
    Running {
        address,
        answers,
        stop,
        ended,
    }
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends this on a fresh connection and reads until the server closes.
    async fn exchange(&self, sent: &[u8]) -> String {
        let mut client = self.connect().await;
        // The server may close while we still send.
        let _ = client.write_all(sent).await;
        rest(&mut client).await
    }

    async fn stop(self) -> Drained {
        drop(self.stop);
        tokio::time::timeout(PATIENCE, self.ended)
            .await
            .unwrap()
            .unwrap()
    }
}

async fn rest(client: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut text)).await;
    // A reset after the answer is as good as an end.
    let _ = read.expect("the server did not close the connection");
    String::from_utf8_lossy(&text).into_owned()
}

async fn read_until(client: &mut TcpStream, mark: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(mark) {
        let count = tokio::time::timeout(PATIENCE, client.read(&mut buffer)).await;
        let count = count.unwrap().unwrap();
        assert!(count > 0, "closed before {mark:?}: {text:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

fn head(path: &str, further: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{further}\r\n")
}

#[tokio::test]
async fn a_kept_connection_answers_one_request_after_the_other() {
    let server = start(Options::default()).await;
    let mut client = server.connect().await;
    for number in 0..50 {
        let body = format!("body {number};");
        let request = head("/", &format!("content-length: {}\r\n", body.len())) + &body;
        client.write_all(request.as_bytes()).await.unwrap();
        read_until(&mut client, &body).await;
    }
    drop(client);
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 50);
    assert_eq!(server.stop().await, Drained { cut_off: 0 });
}

#[tokio::test]
async fn who_sends_on_gets_every_answer_in_order_beside_others_who_wait_for_theirs() {
    const MANY: usize = 400;
    let server = start(Options::default()).await;
    let request = |body: &str| head("/", &format!("content-length: {}\r\n", body.len())) + body;
    let (mut flood, mut other) = (server.connect().await, server.connect().await);
    let all: String = (0..MANY)
        .map(|number| request(&format!("<{number}>")))
        .collect();
    let sent_and_read = async {
        flood.write_all(all.as_bytes()).await.unwrap();
        read_until(&mut flood, &format!("<{}>", MANY - 1)).await
    };
    let mut calls = 0;
    let calling = async {
        loop {
            let body = format!("({calls})");
            other.write_all(request(&body).as_bytes()).await.unwrap();
            read_until(&mut other, &body).await;
            calls += 1;
        }
    };
    let text = tokio::select! {
        text = sent_and_read => text,
        () = calling => unreachable!(),
    };
    let answers: Vec<&str> = text
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .map(|(number, _)| number)
        .collect();
    assert!(
        answers
            .iter()
            .copied()
            .eq((0..MANY).map(|number| number.to_string()))
    );
    assert!(calls > 0, "nobody else was answered meanwhile");
}

#[tokio::test]
async fn who_sends_nothing_more_gets_the_answers_to_what_was_sent() {
    let server = start(Options {
        ended_wait_ms_max: 60_000,
        ..Options::default()
    })
    .await;
    let long = "long".repeat(2_000_000);
    for (number, paths) in [(1, ["/wait", "/"]), (2, ["/", "/wait"])] {
        let (mut reading, mut writing) = server.connect().await.into_split();
        let sent = async {
            for path in paths {
                let length = if path == "/" { long.len() } else { 0 };
                let request = head(path, &format!("content-length: {length}\r\n"));
                writing.write_all(request.as_bytes()).await.unwrap();
                writing.write_all(&long.as_bytes()[..length]).await.unwrap();
            }
            writing.shutdown().await.unwrap();
        };
        let let_go = async {
            let waits = || server.answers.waits.load(Ordering::SeqCst);
            eventually("it waits", || waits() == number).await;
            server.answers.go.notify_one();
        };
        let mut text = String::new();
        let read = tokio::time::timeout(PATIENCE, reading.read_to_string(&mut text));
        let (read, (), ()) = tokio::join!(read, sent, let_go);
        read.unwrap().unwrap();
        assert_eq!(text.matches("waited").count(), 1, "{number}");
        assert_eq!(text.matches("long").count(), 2_000_000, "{number}");
    }
}

#[tokio::test]
async fn who_has_gone_is_not_waited_for_beyond_the_bound() {
    let server = start(Options {
        ended_wait_ms_max: 20,
        ..Options::default()
    })
    .await;
    for (number, path) in [(1, "/wait"), (2, "/endless")] {
        let mut client = server.connect().await;
        let request = head(path, "");
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        eventually("it is dropped", || {
            server.answers.dropped.load(Ordering::SeqCst) == number
        })
        .await;
    }
}

#[tokio::test]
async fn a_head_that_comes_too_slowly_is_not_waited_for() {
    let server = start(Options {
        header_wait_ms_max: 100,
        ..Options::default()
    })
    .await;
    // A byte now and then does not extend the time.
    let mut client = server.connect().await;
    let mut sent = 0;
    for byte in head("/", "x-slow: 1\r\n").bytes().cycle() {
        if client.write_all(&[byte]).await.is_err() {
            break;
        }
        sent += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(sent < 1_000, "the server never closed");
        let mut probe = [0; 1];
        if matches!(client.try_read(&mut probe), Ok(0)) {
            break;
        }
    }
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn heads_beyond_the_bounds_are_refused() {
    let server = start(Options::default()).await;
    let long = head("/", &format!("x-long: {}\r\n", "x".repeat(17 * 1024)));
    assert!(
        server
            .exchange(long.as_bytes())
            .await
            .starts_with("HTTP/1.1 431")
    );
    let many: String = (0..100).map(|n| format!("x-{n}: 1\r\n")).collect();
    let many = head("/", &many);
    assert!(
        server
            .exchange(many.as_bytes())
            .await
            .starts_with("HTTP/1.1 431")
    );
    let split = head("/", "x: a\rb\r\n");
    assert!(
        server
            .exchange(split.as_bytes())
            .await
            .starts_with("HTTP/1.1 400")
    );
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn bodies_beyond_the_bound_are_refused() {
    let server = start(Options {
        body_bytes_max: 1_000,
        ..Options::default()
    })
    .await;
    let announced = head("/", "content-length: 1001\r\n");
    assert!(
        server
            .exchange(announced.as_bytes())
            .await
            .starts_with("HTTP/1.1 413")
    );
    // Endless: chunk after chunk until the server has had enough.
    let mut endless = head("/", "transfer-encoding: chunked\r\n");
    for _ in 0..3 {
        endless.push_str(&format!("200\r\n{}\r\n", "x".repeat(0x200)));
    }
    assert!(
        server
            .exchange(endless.as_bytes())
            .await
            .starts_with("HTTP/1.1 413")
    );
    let fits = head("/", "content-length: 1000\r\nconnection: close\r\n") + &"y".repeat(1_000);
    assert!(
        server
            .exchange(fits.as_bytes())
            .await
            .ends_with(&"y".repeat(1_000))
    );
}

#[tokio::test]
async fn j21_heads_that_two_programs_read_in_two_ways_are_refused() {
    let server = start(Options::default()).await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let both = format!(
        "content-length: {}\r\ntransfer-encoding: chunked\r\n",
        5 + smuggled.len()
    );
    let chunks = format!("0\r\n\r\n{smuggled}");
    let bare = head("/", "").replace("\r\n", "\n");
    let one_bare = head("/", "x: 1\r\n").replacen("x: 1\r\n", "x: 1\n", 1);
    for sent in [
        head("/", &both) + &chunks,
        head("/", "transfer-encoding: chunked\r\ncontent-length: 3\r\n") + &chunks,
        head("/", "content-length: 3\r\ncontent-length: 3\r\n") + "abc",
        head("/", "transfer-encoding: gzip, chunked\r\n") + &chunks,
        bare,
        one_bare,
    ] {
        let answer = server.exchange(sent.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{sent:?}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer:?}");
    }
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 0);
    // Several requests at once are no less readable.
    let twice = head("/", "content-length: 2\r\n") + "ab";
    let last = head("/", "connection: close\r\ntransfer-encoding: chunked\r\n");
    let sent = twice.repeat(2) + &last + "2\r\ncd\r\n0\r\n\r\n";
    let answer = server.exchange(sent.as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 ").count(), 3, "{answer:?}");
    assert!(answer.contains("cd"), "{answer:?}");
    let behind = head("/", "").replace("\r\n", "\n");
    let chunked = head("/", "transfer-encoding: chunked\r\n");
    for odd in ["2;a=b\nX\r\nab\r\n0\r\n\r\n", "2\r\nab\r\n0\r\nt: 1\n\r\n"] {
        // What comes behind it is not answered either.
        let sent = format!("{chunked}{odd}{behind}");
        let answer = server.exchange(sent.as_bytes()).await;
        assert!(!answer.contains("HTTP/1.1 200 "), "{odd:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_refused() {
    let server = start(Options {
        body_wait_ms_max: 50,
        ..Options::default()
    })
    .await;
    let begun = head("/", "content-length: 10\r\n") + "12345";
    assert!(
        server
            .exchange(begun.as_bytes())
            .await
            .starts_with("HTTP/1.1 408")
    );
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_and_one_at_work_is_not() {
    let server = start(Options {
        idle_ms_max: 1_000,
        header_wait_ms_max: 1_000,
        ..Options::default()
    })
    .await;
    assert_eq!(rest(&mut server.connect().await).await, "");
    let mut after = server.connect().await;
    after.write_all(head("/", "").as_bytes()).await.unwrap();
    assert!(rest(&mut after).await.starts_with("HTTP/1.1 200"));
    // Longer at work than it might be idle.
    let mut busy = server.connect().await;
    busy.write_all(head("/wait", "").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    server.answers.go.notify_one();
    read_until(&mut busy, "waited").await;
}

#[tokio::test]
async fn a_body_that_comes_after_its_head_does_not_count_as_the_next_head() {
    let server = start(Options {
        header_wait_ms_max: 1_000,
        ..Options::default()
    })
    .await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        client
            .write_all(head("/", "content-length: 4\r\n").as_bytes())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.write_all(b"late").await.unwrap();
        read_until(&mut client, "late").await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = start(Options {
        connections_max: 2,
        ..Options::default()
    })
    .await;
    let mut first = server.connect().await;
    let second = server.connect().await;
    first.write_all(head("/", "").as_bytes()).await.unwrap();
    read_until(&mut first, "200 OK").await;
    assert!(server.exchange(b"").await.starts_with("HTTP/1.1 503"));
    // A place that becomes free is given again.
    drop(second);
    let mut tries = 0;
    while !server
        .exchange(head("/", "connection: close\r\n").as_bytes())
        .await
        .starts_with("HTTP/1.1 200")
    {
        tries += 1;
        assert!(tries < 1_000);
    }
}

#[tokio::test]
async fn foreign_names_never_reach_the_handler() {
    let server = start(Options::default()).await;
    let cases = [
        ("host: evil.example\r\n", "403"),
        ("host: localhost\r\norigin: http://evil.example\r\n", "403"),
        ("host: localhost\r\nhost: localhost\r\n", "400"),
        ("", "400"),
        ("host: localhost\r\norigin: http://localhost:5\r\n", "403"),
        ("host: localhost:5\r\norigin: http://localhost:5\r\n", "200"),
    ];
    for (headers, status) in cases {
        let request = format!("POST / HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
        let answer = server.exchange(request.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{headers} {answer}"
        );
    }
    let absolute =
        b"POST http://evil.example/ HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(server.exchange(absolute).await.starts_with("HTTP/1.1 403"));
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_request() {
    let server = start(Options::default()).await;
    let mut client = server.connect().await;
    client
        .write_all(head("/wait", "").as_bytes())
        .await
        .unwrap();
    let mut streamed = server.connect().await;
    streamed
        .write_all(head("/endless", "").as_bytes())
        .await
        .unwrap();
    read_until(&mut streamed, "xxx").await;
    drop(client);
    drop(streamed);
    let dropped = Arc::clone(&server.answers.dropped);
    eventually("both are dropped", || dropped.load(Ordering::SeqCst) == 2).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_its_stream_and_is_left_in_the_end() {
    let server = start(Options {
        write_wait_ms_max: 300,
        ..Options::default()
    })
    .await;
    let mut client = server.connect().await;
    client
        .write_all(head("/endless", "").as_bytes())
        .await
        .unwrap();
    let dropped = Arc::clone(&server.answers.dropped);
    eventually("the stream is given up", || {
        dropped.load(Ordering::SeqCst) == 1
    })
    .await;
    // Socket buffers and a few parts, not as much as could be sent in that time.
    let parts = server.answers.parts.load(Ordering::SeqCst);
    assert!(parts < 1_024, "{parts} parts were taken");
    drop(client);
}

#[tokio::test]
async fn where_much_waits_for_readers_who_takes_too_little_is_left_and_who_reads_is_not() {
    let server = start(Options {
        unsent_bytes_max: 1_000,
        unsent_wait_ms_max: 300,
        ..Options::default()
    })
    .await;
    let (mut slow, mut other) = (server.connect().await, server.connect().await);
    for client in [&mut slow, &mut other] {
        let request = head("/endless", "");
        client.write_all(request.as_bytes()).await.unwrap();
    }
    let dropped = Arc::clone(&server.answers.dropped);
    let mut buffer = vec![0; 256 * 1024];
    let reading = async {
        while other.read(&mut buffer).await.unwrap() > 0 {}
        panic!("whoever reads was left");
    };
    tokio::select! {
        () = reading => {}
        () = eventually("the slow one is left", || dropped.load(Ordering::SeqCst) == 1) => {}
    }
    let read = tokio::time::timeout(PATIENCE, other.read(&mut buffer)).await;
    assert!(read.unwrap().unwrap() > 0);
    drop(slow);
}

#[tokio::test]
async fn what_is_under_way_may_end_and_what_does_not_is_cut_off() {
    let server = start(Options::default()).await;
    let mut client = server.connect().await;
    let mut idle = server.connect().await;
    client
        .write_all(head("/wait", "").as_bytes())
        .await
        .unwrap();
    idle.write_all(head("/", "").as_bytes()).await.unwrap();
    read_until(&mut idle, "200 OK").await;
    let answers = Arc::clone(&server.answers);
    let stopping = tokio::spawn(server.stop());
    assert_eq!(rest(&mut idle).await, "");
    answers.go.notify_one();
    assert!(rest(&mut client).await.ends_with("waited"));
    assert_eq!(stopping.await.unwrap(), Drained { cut_off: 0 });

    let server = start(Options {
        drain_ms: 50,
        ..Options::default()
    })
    .await;
    let mut client = server.connect().await;
    client
        .write_all(head("/wait", "").as_bytes())
        .await
        .unwrap();
    let mut other = server.connect().await;
    other.write_all(head("/", "").as_bytes()).await.unwrap();
    read_until(&mut other, "200 OK").await;
    assert_eq!(server.stop().await, Drained { cut_off: 1 });
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn a_connection_that_rests_goes_on_where_its_client_does() {
    let server = start(Options {
        rest_ms: 1,
        ..Options::default()
    })
    .await;
    let mut client = server.connect().await;
    let pause = || tokio::time::sleep(Duration::from_millis(15));
    for number in 0..10 {
        let body = format!("body {number};");
        let request = head("/", &format!("content-length: {}\r\n", body.len())) + &body;
        // In pieces, cut elsewhere each time: nothing is lost of what comes while it rests.
        let (first, second) = request.as_bytes().split_at(1 + number * 6);
        client.write_all(first).await.unwrap();
        pause().await;
        client.write_all(second).await.unwrap();
        read_until(&mut client, &body).await;
        pause().await;
    }
    // Two that come together.
    let two =
        head("/", "content-length: 2\r\n") + "a;" + &head("/", "content-length: 2\r\n") + "b;";
    client.write_all(two.as_bytes()).await.unwrap();
    read_until(&mut client, "b;").await;
    pause().await;
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 12);
    assert_eq!(server.stop().await, Drained { cut_off: 0 });
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn a_connection_that_rests_is_closed_when_it_was_idle_for_long() {
    let server = start(Options {
        rest_ms: 1,
        idle_ms_max: 100,
        ..Options::default()
    })
    .await;
    let mut client = server.connect().await;
    client.write_all(head("/", "").as_bytes()).await.unwrap();
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 200"));
}

/// The thread that a connection is served by.
async fn thread_of(client: &mut TcpStream) -> String {
    let request = head("/thread", "");
    client.write_all(request.as_bytes()).await.unwrap();
    let text = read_until(client, "]").await;
    text.rsplit_once('[').unwrap().1.to_owned()
}

#[tokio::test]
async fn a_connection_stays_with_its_thread_and_waits_for_no_other_one() {
    let server = start(Options {
        threads: Some(Threads::start(2).unwrap()),
        ..Options::default()
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = server.connect().await;
        let thread = thread_of(&mut client).await;
        clients.push((client, thread));
    }
    for (client, thread) in &mut clients {
        assert_eq!(thread_of(client).await, *thread);
    }
    let names: Vec<&str> = clients.iter().map(|(_, thread)| thread.as_str()).collect();
    for name in ["serve-0]", "serve-1]"] {
        let count = names.iter().filter(|of| **of == name).count();
        assert_eq!(count, 2, "{names:?}");
    }
    // One thread is held up; the connections of the other one are served.
    let (mut holding, blocked) = clients.remove(0);
    let request = head("/hold", "");
    holding.write_all(request.as_bytes()).await.unwrap();
    server.answers.hold.0.wait();
    for (client, thread) in &mut clients {
        if *thread != blocked {
            assert_eq!(thread_of(client).await, *thread);
        }
    }
    server.answers.hold.0.wait();
    read_until(&mut holding, "held").await;
    drop((holding, clients));
    assert_eq!(server.stop().await, Drained { cut_off: 0 });
}

#[tokio::test]
async fn what_does_not_end_is_cut_off_at_every_thread() {
    let server = start(Options {
        threads: Some(Threads::start(3).unwrap()),
        drain_ms: 50,
        ..Options::default()
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        let request = head("/thread", "") + &head("/wait", "");
        client.write_all(request.as_bytes()).await.unwrap();
        read_until(&mut client, "]").await;
        clients.push(client);
    }
    eventually("all wait", || {
        server.answers.waits.load(Ordering::SeqCst) == 3
    })
    .await;
    let dropped = Arc::clone(&server.answers.dropped);
    assert_eq!(server.stop().await, Drained { cut_off: 3 });
    for client in &mut clients {
        assert_eq!(rest(client).await, "");
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn tls_is_spoken_where_a_certificate_is_given() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let config = net::http::server::server_config(certificate.as_bytes(), key.as_bytes()).unwrap();
    let server = start(Options {
        tls: Some(config),
        header_wait_ms_max: 200,
        ..Options::default()
    })
    .await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let name = "localhost".try_into().unwrap();
    let mut tls = connector
        .connect(name, server.connect().await)
        .await
        .unwrap();
    let request = head("/", "content-length: 6\r\nconnection: close\r\n") + "secret";
    tls.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let _ = tls.read_to_string(&mut text).await;
    assert!(text.ends_with("secret"), "{text}");
    // Plain HTTP, and a handshake that is never finished.
    assert!(
        !server
            .exchange(head("/", "").as_bytes())
            .await
            .contains("HTTP/1.1 200")
    );
    assert_eq!(server.exchange(&[22, 3, 1]).await, "");
    assert_eq!(server.answers.answered.load(Ordering::SeqCst), 1);
}

#[test]
fn texts_that_are_no_certificate_or_key_are_named() {
    use net::http::server::server_config;
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let cases = [
        ("", key.as_str(), "there is no PEM certificate in it"),
        ("nonsense", &key, "there is no PEM certificate in it"),
        (&certificate, "", "there is no PEM private key in it"),
        (
            &certificate,
            &certificate,
            "there is no PEM private key in it",
        ),
        (
            &certificate,
            &other.signing_key.serialize_pem(),
            "certificate and key cannot be used",
        ),
    ];
    for (certificate, key, expect) in cases {
        let fault = server_config(certificate.as_bytes(), key.as_bytes()).unwrap_err();
        assert!(fault.to_string().starts_with(expect), "{fault}");
    }
}
