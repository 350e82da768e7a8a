//! What reaches out: children. Faces may name these types only in their `upstream` modules.

mod child;

pub use child::{Child, ChildSpec, describe};
