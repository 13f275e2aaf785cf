//! Conversations with disciplines, and what holds for all of them.
mod bed;
mod cake;
mod codel;
mod fq;
mod fq_codel;
mod htb;
mod netem;
mod pie;
mod prio;
mod properties;
mod red;
mod sfq;
mod tbf;
