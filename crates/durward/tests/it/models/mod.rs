//! Model APIs: official libraries in front, scripted and foreign providers behind.

mod accounts;
mod approval;
mod bedrock;
mod bodies;
mod budgets;
mod cached;
mod callers;
mod configured;
mod defects;
mod explained;
mod foreign;
mod foreign_litellm;
mod gone;
mod inherited;
mod inspected;
mod key_pools;
mod passed;
mod prices;
mod provider_faults;
mod records;
mod rotation;
mod routing;
mod sdk;
pub mod support;
mod translated;
mod users;
