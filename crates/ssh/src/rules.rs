//! The shipped rules.
