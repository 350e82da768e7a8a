use gate::{PeerId, Spent};
use mcp::upstream::{Frame, Upstream};

fn send(upstream: &mut Upstream, here: &PeerId, spent: Spent<Frame>) {
    let _ = upstream.send(spent);
    let _ = spent.take(here);
}

fn main() {
    let _ = send;
}
