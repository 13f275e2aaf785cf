//! Programs on a stack that reaches only itself. They need no root.

use crate::compile::{Link, program, succeed};
use std::process::Command;

#[test]
fn every_error_is_linuxs_with_the_shared_library() {
    succeed(&mut Command::new(program("tests/c/errors.c", Link::Shared)));
}

#[test]
fn every_error_is_linuxs_with_the_static_library() {
    succeed(&mut Command::new(program("tests/c/errors.c", Link::Static)));
}

#[test]
fn calls_wait_in_many_threads_and_end_by_signals_and_with_the_stack() {
    succeed(&mut Command::new(program("tests/c/threads.c", Link::Shared)));
}

#[test]
fn readiness_is_the_kernels_with_its_descriptors_and_every_signal() {
    succeed(&mut Command::new(program("tests/c/readiness.c", Link::Shared)));
}
