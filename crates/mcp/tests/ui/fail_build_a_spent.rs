use gate::journal::OpId;
use gate::{PeerId, Spent};
use mcp::upstream::Frame;

fn build(request: Frame, at: PeerId, op: OpId) -> Spent<Frame> {
    Spent { request, at, op }
}

fn main() {
    let _ = build;
}
