//! Bodies that come in pieces, at moments that nobody chose: whoever waits for more of one is woken.

mod dice;

use std::time::Duration;

use bytes::Bytes;
use net::http::server::{Handler, Options, Request, Response, plain, serve};
use net::outbound::http::{HttpClient, HttpOptions, Lane, Method, Target};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use dice::Dice;

const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 150;

/// The next message whose length stands in its head: its body.
async fn take(stream: &mut TcpStream, come: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(end) = come.windows(4).position(|is| is == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&come[..end]).to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
            if come.len() >= end + 4 + length {
                let message: Vec<u8> = come.drain(..end + 4 + length).collect();
                return Some(message[end + 4..].to_vec());
            }
        }
        if stream.read_buf(come).await.unwrap() == 0 {
            return None;
        }
    }
}

struct Echo;

impl Handler for Echo {
    async fn handle(&self, mut request: Request) -> Response {
        match request.read_body().await {
            Ok(body) => http::Response::new(body.into()),
            Err(fault) => plain(fault.status(), fault.sentence()),
        }
    }
}

async fn a_server_reads_them() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // No timer makes up for a task that is not woken.
    let options = Options {
        body_wait_ms_max: 3_600_000,
        header_wait_ms_max: 3_600_000,
        idle_ms_max: 3_600_000,
        rest_ms: 3_600_000,
        ..Options::default()
    };
    let serving = tokio::spawn(serve(
        listener,
        options,
        std::sync::Arc::new(Echo),
        std::future::pending(),
        std::future::pending(),
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.set_nodelay(true).unwrap();
    let (mut dice, mut come) = (Dice(1), Vec::new());
    for round in 0..ROUNDS {
        let body = dice.body();
        let message = dice.message("POST / HTTP/1.1\r\nhost: localhost\r\n", &body);
        let exchange = async {
            dice.send(&mut client, &message).await;
            take(&mut client, &mut come).await
        };
        let echoed = tokio::time::timeout(PATIENCE, exchange).await;
        let echoed = echoed.unwrap_or_else(|_| panic!("round {round}: no answer"));
        assert!(
            echoed.as_deref() == Some(body.as_slice()),
            "round {round}: {} bytes",
            body.len()
        );
    }
    serving.abort();
}

async fn a_client_reads_them() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut dice = Dice(2);
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut come = Vec::new();
            while let Some(body) = take(&mut stream, &mut come).await {
                let message = dice.message("HTTP/1.1 200 OK\r\n", &body);
                dice.send(&mut stream, &message).await;
            }
        }
    });
    let client =
        HttpClient::new(Target::parse(&url, false).unwrap(), &HttpOptions::default()).unwrap();
    let mut dice = Dice(3);
    for round in 0..ROUNDS {
        let body = Bytes::from(dice.body());
        let mut outgoing = client.outgoing(Method::POST, Lane::Call, 60_000);
        outgoing.body = body.clone();
        let exchange = async {
            let mut reply = client.send(outgoing).await.unwrap();
            reply.bytes(1 << 20).await.unwrap()
        };
        let echoed = tokio::time::timeout(PATIENCE, exchange).await;
        let echoed = echoed.unwrap_or_else(|_| panic!("round {round}: no answer"));
        assert!(echoed == body, "round {round}: {} bytes", body.len());
    }
    serving.abort();
}

#[tokio::test]
async fn bodies_in_pieces_are_read_on_one_thread() {
    a_server_reads_them().await;
    a_client_reads_them().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn bodies_in_pieces_are_read_on_several_threads() {
    a_server_reads_them().await;
    a_client_reads_them().await;
}
