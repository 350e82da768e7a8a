use gate::{Admission, Call, Gate, Pass as _};
use mcp::upstream::{Frame, Upstream};

async fn send(gate: &Gate, upstream: &mut Upstream, call: Call<Frame>) {
    if let Admission::Permit(permit) = gate.admit(call).await
        && let Ok((spent, flight)) = permit.spend(upstream.id())
    {
        let _ = upstream.send(spent);
        drop(flight);
    }
}

fn main() {
    let _ = send;
}
