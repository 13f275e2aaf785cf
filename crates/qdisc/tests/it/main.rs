//! Disciplines and links from the outside.
//!
//! | module | what |
//! |---|---|
//! | `disciplines` | conversations with each discipline, and what holds for all of them |
//! | `kernel` | the same commands and packets on this machine's kernel |
//! | `nic` | a network card |
//! | `times`, `links` | exact times of links; what holds for every link and every traffic |
extern crate firstbyte_qdisc as qdisc;

mod disciplines;
mod kernel;
mod links;
mod nic;
mod times;
