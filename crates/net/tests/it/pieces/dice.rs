//! Messages and their pieces, as a seed has it.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Numbers that look random, the same in each run (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((word ^ (word >> 31)) % most as u64).unwrap()
    }

    pub fn body(&mut self) -> Vec<u8> {
        let most = [1, 2, 100, 9_000, 60_000][self.below(5)];
        let length = self.below(most);
        (0..length)
            .map(|_| b'a' + u8::try_from(self.below(26)).unwrap())
            .collect()
    }

    /// A message with this body, whose length stands in its head or in its chunks.
    pub fn message(&mut self, first: &str, body: &[u8]) -> Vec<u8> {
        let mut message = first.as_bytes().to_vec();
        if self.below(2) == 0 {
            message.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
            message.extend(body);
            return message;
        }
        message.extend(b"transfer-encoding: chunked\r\n\r\n");
        let mut rest = body;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(1 + self.below(rest.len()));
            message.extend(format!("{:x}\r\n", chunk.len()).bytes());
            message.extend(chunk);
            message.extend(b"\r\n");
            rest = after;
        }
        message.extend(b"0\r\n\r\n");
        message
    }

    pub async fn send(&mut self, stream: &mut TcpStream, message: &[u8]) {
        let mut rest = message;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + self.below(rest.len()));
            stream.write_all(piece).await.unwrap();
            match self.below(4) {
                0 => tokio::time::sleep(Duration::from_millis(1)).await,
                1 => tokio::task::yield_now().await,
                _ => {}
            }
            rest = after;
        }
    }
}
