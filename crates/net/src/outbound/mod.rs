//! What reaches out: children and HTTP. Faces may name these types only in their `upstream` modules.

mod child;
pub mod http;

pub use child::{Child, ChildSpec, describe};
