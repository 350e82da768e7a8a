use gate::Permit;
use mcp::upstream::{Frame, Upstream};

fn send(upstream: &mut Upstream, permit: Permit<Frame>) {
    let _ = upstream.send_pass(permit);
}

fn main() {
    let _ = send;
}
