//! Bodies of model APIs, without I/O: requests, replies, streams, errors, and their translation.
//!
//! A body is read and never rewritten: [`Body`] finds the members of the top, refuses names that are repeated or can be
//! read as one that matters, and replaces single members; every other byte stays. Only if a provider speaks another
//! dialect than the caller is a body written again ([`translate`]). Replies of a provider are read leniently: every
//! field may be missing.

mod anthropic;
mod body;
mod choices;
mod counted;
mod dialect;
mod endpoint;
mod error;
mod form;
mod json;
mod offered;
mod openai;
mod report;
mod request_members;
mod responses;
mod stream_state;
pub mod translate;
mod usage;
mod watch;
mod write;

pub use body::{Body, BodyFault};
pub use choices::{chooses_model, hides, leads_away, names_another};
pub use counted::{read_of, written_of};
pub use dialect::Dialect;
pub use endpoint::Endpoint;
pub use error::{
    ErrorText, error_body, error_event, is_error, is_error_reply, is_reply, message_of,
};
pub use form::{FormFault, MultipartForm, is_form};
pub use json::{elements, members, number, text};
pub use report::ErrorReport;
pub use stream_state::StreamEvent;
pub use usage::{Tokens, of_reply};
pub use watch::StreamWatch;
