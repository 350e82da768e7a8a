use gate::{InFlight, Permit};
use mcp::upstream::Frame;

fn build(request: Frame, flight: InFlight) -> Permit<Frame> {
    Permit { request, flight }
}

fn main() {
    let _ = build;
}
