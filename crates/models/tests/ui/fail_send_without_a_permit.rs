use models::{Address, ModelRequest, Provider, Sent};

async fn send(provider: &dyn Provider, request: ModelRequest, to: Address<'_>) -> Sent {
    provider.send(request, to).await
}

fn main() {
    let _ = send;
}
