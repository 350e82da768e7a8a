//! The server against a real OpenSSH.

mod access;
mod commands;
mod load;
mod stopping;
mod target;
mod tools;
mod words;
