//! Conversations with disciplines, and what holds for all of them.
#[path = "disciplines/bed.rs"]
mod bed;
#[path = "disciplines/codel.rs"]
mod codel;
#[path = "disciplines/fq.rs"]
mod fq;
#[path = "disciplines/fq_codel.rs"]
mod fq_codel;
#[path = "disciplines/htb.rs"]
mod htb;
#[path = "disciplines/netem.rs"]
mod netem;
#[path = "disciplines/pie.rs"]
mod pie;
#[path = "disciplines/prio.rs"]
mod prio;
#[path = "disciplines/properties.rs"]
mod properties;
#[path = "disciplines/red.rs"]
mod red;
#[path = "disciplines/sfq.rs"]
mod sfq;
#[path = "disciplines/tbf.rs"]
mod tbf;
