//! Plain connections, for protocols that bring their own encryption.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

/// Connects, without delaying small packets.
///
/// # Errors
/// Of kind [`io::ErrorKind::TimedOut`] after `wait`, else whatever the system says.
pub async fn connect(host: &str, port: u16, wait: Duration) -> io::Result<TcpStream> {
    let connecting = async {
        let socket = TcpStream::connect((host, port)).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    };
    match tokio::time::timeout(wait, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
