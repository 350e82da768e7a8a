//! The dialects of model APIs: what a request asks, what a reply and its stream say, how an error is worded.
//!
//! A body is looked at and never written anew: [`Body`] finds the members of the top, refuses names that
//! stand twice or can be read as one that matters, and replaces single members; every other byte stays.
//! Only where a provider speaks another dialect than the caller is a body written anew ([`translate`]).
//! What comes from a provider is read leniently: every field may be missing.

/// The members of a request to a model that the gate reads or writes: those of one dialect, and those that are read in each,
/// because a gateway behind takes one dialect's for another's.
macro_rules! known {
    ($($own:literal),* $(,)?) => {
        &[
            $($own,)*
            "model",
            "stream",
            "background",
            "deferred",
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "max_new_tokens",
            "n_predict",
            "num_predict",
            "best_of",
            "min_tokens",
            "max_gen_len",
            "max_length",
            "max_tokens_to_sample",
            "max_decode_tokens",
            "thinking_budget",
            "additional_tools",
            "n",
            "tools",
            "mcp_servers",
            "web_search_options",
            "search_parameters",
            "plugins",
            "data_sources",
            "enable_search",
            "compound_custom",
            "connectors",
            "vector_store_ids",
        ]
    };
}

mod anthropic;
mod body;
mod choices;
mod counted;
mod endpoint;
mod error;
mod form;
mod json;
mod offered;
mod openai;
mod report;
mod request_members;
mod responses;
pub mod translate;
mod usage;
mod watch;
mod write;

pub use body::{Body, BodyFault};
pub use choices::{chooses_model, hides, leads_away, names_another};
pub use counted::{read_of, written_of};
pub use endpoint::{Dialect, Endpoint};
pub use error::{
    ErrorText, error_body, error_event, is_error, is_error_reply, is_reply, message_of,
};
pub use form::{Form, FormFault, is_form};
pub use json::{elements, members, number, text};
pub use report::ErrorReport;
pub use usage::{Tokens, of_reply};
pub use watch::{Said, Watch};
