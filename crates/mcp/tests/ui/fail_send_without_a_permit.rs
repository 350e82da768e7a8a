use mcp::upstream::{Frame, Upstream};

fn send(upstream: &mut Upstream, frame: Frame) {
    let _ = upstream.send(frame);
}

fn main() {
    let _ = send;
}
