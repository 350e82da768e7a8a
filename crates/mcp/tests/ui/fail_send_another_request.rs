use gate::Permit;
use mcp::upstream::{Frame, Link};

fn send(link: &Link, mut permit: Permit<Frame>, other: Frame) {
    *permit.request() = other;
    let _ = link.send(permit);
}

fn main() {
    let _ = send;
}
