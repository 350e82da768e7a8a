use gate::Permit;
use models::{Address, ModelRequest, Provider, Sent};

async fn send(provider: &dyn Provider, permit: Permit<ModelRequest>, to: Address<'_>) -> Sent {
    provider.send(permit, to).await
}

fn main() {
    let _ = send;
}
