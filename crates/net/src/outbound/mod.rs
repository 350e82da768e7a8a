//! What reaches out: children, HTTP and plain connections. Faces may name these types only in their `upstream` modules.

mod child;
pub mod http;
pub mod tcp;

pub use child::{Child, ChildSpec, NOT_FOUND, describe};
