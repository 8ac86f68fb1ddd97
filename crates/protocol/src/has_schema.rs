//! The bound of types that a schema describes.
//!
//! Only the tests generate schemas: the program reads what it needs of them from committed files, so it contains no code
//! that makes them.

#[cfg(feature = "schema")]
pub use schemars::JsonSchema as HasSchema;

/// Type that a schema describes.
#[cfg(not(feature = "schema"))]
pub trait HasSchema {}

#[cfg(not(feature = "schema"))]
impl<T> HasSchema for T {}
