use std::sync::{Arc, Mutex};

use gate::Permit;
use mcp::notes::Notes;
use mcp::upstream::{Frame, Peer};

fn send(peer: &dyn Peer, permit: Permit<Frame>, notes: &Arc<Mutex<Notes>>) {
    let _ = peer.send(permit, notes);
}

fn main() {
    let _ = send;
}
