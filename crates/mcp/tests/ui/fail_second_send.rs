use gate::Permit;
use mcp::upstream::{Frame, Link};

fn send(link: &Link, permit: Permit<Frame>) {
    let _ = link.send(permit);
    let _ = link.send(permit);
}

fn main() {
    let _ = send;
}
