//! Tests of the lab from outside: transfers over faulty paths, and the text of every scenario.
extern crate firstbyte_lab as lab;

mod faults;
mod golden;
