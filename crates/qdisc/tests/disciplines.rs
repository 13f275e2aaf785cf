//! Conversations with disciplines, and what holds for all of them.
#[path = "disciplines/bed.rs"]
mod bed;
#[path = "disciplines/codel.rs"]
mod codel;
#[path = "disciplines/fq_codel.rs"]
mod fq_codel;
#[path = "disciplines/htb.rs"]
mod htb;
#[path = "disciplines/properties.rs"]
mod properties;
#[path = "disciplines/tbf.rs"]
mod tbf;
