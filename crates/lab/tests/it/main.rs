//! The lab from the outside: what faults of a path leave whole, and the text of every scenario.
extern crate firstbyte_lab as lab;

mod faults;
mod golden;
