use gate::{Pass as _, Permit};
use models::{Address, ModelRequest, Provider, Sent};

async fn send(
    provider: &dyn Provider,
    permit: Permit<ModelRequest>,
    to: Address<'_>,
) -> Option<Sent> {
    let (spent, flight) = permit.spend(provider.peer()).ok()?;
    let sent = provider.send(spent, to).await;
    drop(flight);
    Some(sent)
}

fn main() {
    let _ = send;
}
