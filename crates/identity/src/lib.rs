//! People who sign in: access tokens of OpenID Connect issuers, from the bytes of a token to a caller.
//!
//! Invariants, as absences: no key comes out of a token, only out of the issuer's published set; no algorithm
//! counts that the configuration does not allow; no claim is read before the signature is verified, except the issuer's
//! name, which chooses the keys; nothing here follows a redirect, and no document, token, list or wait is unbounded.

mod algorithm;
mod cache;
mod claims;
mod client;
mod issuers;
mod jwks;
mod logout;
mod metadata;
mod options;
mod resource;
#[cfg(test)]
mod signer;
#[cfg(test)]
mod tests;
mod token;
mod upstream;

pub use algorithm::Algorithm;
pub use client::{DeviceCode, LoginFault, OidcClient, TokenSet};
pub use issuers::{Issuers, StartFault};
pub use metadata::MetadataFault;
pub use options::{IdentityOptions, IssuerFault, IssuerOptions};
pub use resource::{ResourceServer, WELL_KNOWN};
pub use token::TOKEN_BYTES_MAX;
pub use upstream::FetchFault;
