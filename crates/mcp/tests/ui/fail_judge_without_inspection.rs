use std::sync::Arc;

use gate::facts::Facts;
use gate::{Caller, Call, Gate, Origin, PeerId};
use mcp::upstream::Frame;

async fn judge(gate: &Arc<Gate>, caller: Caller, server: &PeerId, request: Frame) {
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
