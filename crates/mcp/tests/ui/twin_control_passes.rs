use gate::{ControlKind, Gate};
use mcp::upstream::{Frame, Upstream};

fn ping(gate: &Gate, upstream: &mut Upstream, frame: Frame) {
    let pass = gate.control(ControlKind::Ping, upstream.id(), frame);
    let _ = upstream.send_pass(pass);
}

fn main() {
    let _ = ping;
}
