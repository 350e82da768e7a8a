use std::sync::{Arc, Mutex};

use gate::{PeerId, Spent};
use mcp::notes::Notes;
use mcp::upstream::{Frame, Peer};

fn send(peer: &dyn Peer, here: &PeerId, spent: Spent<Frame>, notes: &Arc<Mutex<Notes>>) {
    let _ = peer.send(spent, notes);
    let _ = spent.take(here);
}

fn main() {
    let _ = send;
}
