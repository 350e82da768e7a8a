use std::sync::{Arc, Mutex};

use gate::Spent;
use mcp::notes::Notes;
use mcp::upstream::{Frame, Peer};

fn send(peer: &dyn Peer, spent: Spent<Frame>, notes: &Arc<Mutex<Notes>>) {
    let _ = peer.send(spent, notes);
    let _ = spent.take(peer.id());
}

fn main() {
    let _ = send;
}
