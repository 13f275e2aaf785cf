//! Tests of the public interface, one file per subject.
mod arbitrary_bytes;
mod arrival;
mod checksum;
mod common;
mod display;
mod gro_run;
mod icmp;
mod ip;
mod packet;
mod roundtrip;
mod seq;
mod tcp;
