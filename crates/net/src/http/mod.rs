//! HTTP/1.1 as a server speaks it.

pub mod server;
