use gate::Spent;
use models::{Address, ModelRequest, Provider, Sent};

async fn send(provider: &dyn Provider, spent: Spent<ModelRequest>, to: Address<'_>) -> Sent {
    provider.send(spent, to).await;
    provider.send(spent, to).await
}

fn main() {
    let _ = send;
}
