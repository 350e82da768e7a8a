use std::sync::{Arc, Mutex};

use mcp::notes::Notes;
use mcp::upstream::{Frame, Peer};

fn send(peer: &dyn Peer, frame: Frame, notes: &Arc<Mutex<Notes>>) {
    let _ = peer.send(frame, notes);
}

fn main() {
    let _ = send;
}
