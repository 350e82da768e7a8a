use gate::journal::OpId;
use gate::{PeerId, Spent};
use mcp::upstream::Frame;

fn make(request: Frame, at: PeerId, op: OpId) -> Spent<Frame> {
    Spent::new(request, at, op)
}

fn main() {
    let _ = make;
}
