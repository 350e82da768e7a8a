//! The server against a real OpenSSH.

mod commands;
mod target;
