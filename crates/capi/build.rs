//! Names the shared library by its interface, as dynamic linkers expect (`SONAME`).

fn main() {
    // Programs that are linked now run with every later library of the same major version.
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfirstbyte.so.{major}");
    println!("cargo::rerun-if-changed=build.rs");
}
