//! Stores on real servers, which `scripts/setup-tests` unpacks into `.cache`.

mod redis_counter;
mod redis_stores;
mod server;
