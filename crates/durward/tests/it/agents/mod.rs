//! Agents as models: the loop over the mock provider and a server, as clients of model APIs see it.

mod answers;
mod configured;
mod limits;
mod malformed;
mod support;
