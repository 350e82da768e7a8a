use gate::inspect::Inspected;
use mcp::upstream::Frame;

fn forge(message: Frame) -> Inspected<Frame> {
    Inspected { message, finding: None }
}

fn main() {
    let _ = forge;
}
