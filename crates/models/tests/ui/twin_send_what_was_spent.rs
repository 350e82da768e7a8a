use gate::{Pass as _, Permit};
use models::{Address, ModelRequest, Provider, Sent};

async fn send(
    provider: &dyn Provider,
    permit: Permit<ModelRequest>,
    to: Address<'_>,
) -> Option<Sent> {
    let (spent, _flight) = permit.spend(provider.peer()).ok()?;
    Some(provider.send(spent, to).await)
}

fn main() {
    let _ = send;
}
