//! Model APIs: official libraries in front, scripted and foreign providers behind.

mod approval;
mod bodies;
mod budgets;
mod callers;
mod configured;
mod foreign;
mod gone;
mod provider_faults;
mod records;
mod routing;
mod sdk;
mod support;
mod translated;
