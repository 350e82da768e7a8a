use gate::{ControlKind, Gate};
use mcp::upstream::{Frame, Link};

fn ping(gate: &Gate, link: &Link, frame: Frame) {
    let _ = link.send(gate.control(ControlKind::Ping, link.id(), frame));
}

fn main() {
    let _ = ping;
}
