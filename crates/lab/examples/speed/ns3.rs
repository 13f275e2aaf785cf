//! The benchmark's case in ns-3: `bottleneck.cc`, built with the machine's compiler and ns-3's
//! headers and libraries.

use std::path::PathBuf;
use std::process::Command;

/// Packages that must be installed, by their Debian names.
const NEEDS: &str = "libns3-dev and g++";
/// Path of the headers in Debian's package.
const HEADERS: &str = "/usr/include/ns3/core-module.h";
const LIBRARIES: [&str; 5] =
    ["-lns3-applications", "-lns3-internet", "-lns3-traffic-control", "-lns3-network", "-lns3-core"];

/// The compiled ns-3 program.
pub(crate) struct Ns3 {
    program: PathBuf,
}

impl Ns3 {
    /// Builds the program. The error says why that is impossible.
    pub(crate) fn build() -> Result<Ns3, String> {
        if !std::path::Path::new(HEADERS).exists() {
            return Err(format!("ns-3 is not installed: it needs Debian's {NEEDS}"));
        }
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/speed/bottleneck.cc");
        let program = std::env::temp_dir().join(format!("firstbyte-bottleneck-{}", std::process::id()));
        let mut compiler = Command::new("g++");
        compiler.args(["-O2", "-std=c++17", source, "-o"]).arg(&program).args(LIBRARIES);
        let status = compiler.status().map_err(|error| format!("g++: {error}; it needs Debian's {NEEDS}"))?;
        status.success().then_some(Ns3 { program }).ok_or_else(|| "g++ could not build bottleneck.cc".into())
    }

    /// Runs the program and returns packets and seconds of processor time.
    pub(crate) fn share(&self, flows: usize, bytes: usize) -> (u64, f64) {
        let mut run = Command::new(&self.program);
        // Suppresses the libraries' logging.
        run.args([flows.to_string(), bytes.to_string()]).env_remove("NS_LOG");
        let output = run.output().expect("it was built");
        let text = String::from_utf8_lossy(&output.stdout);
        let told = text.trim().split_once(' ').filter(|_| output.status.success());
        let told = told.and_then(|(packets, seconds)| Some((packets.parse().ok()?, seconds.parse().ok()?)));
        told.unwrap_or_else(|| panic!("{}{text}", String::from_utf8_lossy(&output.stderr)))
    }
}

impl Drop for Ns3 {
    fn drop(&mut self) {
        // The program lies in a temporary folder; a failure to remove it does no harm.
        _ = std::fs::remove_file(&self.program);
    }
}
