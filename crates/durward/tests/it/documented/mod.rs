//! What the pages and the help tell people to type is typed here: every fenced `sh` block of README and docs, every
//! example of the help, and every policy of the cookbook.

mod cookbook;
mod desk;
mod examples;
mod pages;
mod units;
