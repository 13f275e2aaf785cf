//! The lab from the outside: what faults of a path leave whole, and the text of every scenario.
mod faults;
mod golden;
