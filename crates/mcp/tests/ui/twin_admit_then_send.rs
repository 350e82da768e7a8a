use gate::{Admission, Call, Gate};
use mcp::upstream::{Frame, Upstream};

async fn send(gate: &Gate, upstream: &mut Upstream, call: Call<Frame>) {
    if let Admission::Permit(permit) = gate.admit(call).await {
        let _ = upstream.send(permit);
    }
}

fn main() {
    let _ = send;
}
