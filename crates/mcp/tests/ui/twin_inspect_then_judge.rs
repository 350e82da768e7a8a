use std::convert::Infallible;

use gate::facts::Facts;
use gate::{Call, Caller, Gate, Origin, PeerId};
use mcp::upstream::Frame;

async fn judge(gate: &Gate, caller: Caller, server: &PeerId, request: Frame) {
    let inspected = gate.inspect(request, |_, request| Ok::<_, Infallible>((request, None)));
    let Ok(request) = inspected;
    let _ = gate
        .admit(Call {
            caller,
            facts: Box::new(Facts::default()),
            origin: Box::new(Origin::default()),
            targets: server.clone().into(),
            request,
        })
        .await;
}

fn main() {
    let _ = judge;
}
