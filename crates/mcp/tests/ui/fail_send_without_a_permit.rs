use mcp::upstream::{Frame, Link};

fn send(link: &Link, frame: Frame) {
    let _ = link.send(frame);
}

fn main() {
    let _ = send;
}
