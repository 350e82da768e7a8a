use gate::{Pass, PeerId, Permit};
use models::{Address, ModelRequest, Provider, Sent};

async fn send(provider: &dyn Provider, permit: Permit<ModelRequest>, to: Address<'_>) -> Sent {
    let at: &PeerId = provider.peer();
    let Ok((spent, _flight)) = permit.spend(at) else {
        std::process::exit(1);
    };
    provider.send(spent, to).await
}

fn main() {
    let _ = send;
}
