//! The language: what is read, printed and refused.

mod errors;
mod round_trip;
