use gate::{Admission, Call, Gate};
use mcp::upstream::{Frame, Link};

async fn send(gate: &Gate, link: &Link, call: Call<Frame>) {
    if let Admission::Permit(permit) = gate.admit(call).await {
        let _ = link.send(permit);
    }
}

fn main() {
    let _ = send;
}
