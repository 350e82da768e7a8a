use gate::{ControlKind, Gate};
use mcp::upstream::{Frame, Upstream};

fn ping(gate: &Gate, upstream: &mut Upstream, frame: Frame) {
    let _ = upstream.send(gate.control(ControlKind::Ping, frame));
}

fn main() {
    let _ = ping;
}
