use gate::Permit;
use mcp::upstream::{Frame, Upstream};

fn send(upstream: &mut Upstream, mut permit: Permit<Frame>, other: Frame) {
    *permit.request() = other;
    let _ = upstream.send_pass(permit);
}

fn main() {
    let _ = send;
}
