use std::sync::{Arc, Mutex};

use gate::{Pass as _, Permit};
use mcp::notes::Notes;
use mcp::upstream::{Frame, Peer};

fn send(peer: &dyn Peer, permit: Permit<Frame>, notes: &Arc<Mutex<Notes>>) {
    if let Ok((spent, flight)) = permit.spend(peer.id()) {
        let _ = peer.send(spent, notes);
        drop(flight);
    }
}

fn main() {
    let _ = send;
}
