//! Tests of the pages of `docs/reference`: generated blocks are up to date, every method has a section, and examples are
//! valid.

mod examples;
mod facts;
mod links;
mod markdown;
mod pages;
