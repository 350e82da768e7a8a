use gate::Permit;
use mcp::upstream::Frame;

fn copy(permit: &Permit<Frame>) -> Permit<Frame> {
    permit.clone()
}

fn main() {
    let _ = copy;
}
