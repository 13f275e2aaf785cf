//! `firstbyte fleet` with etcd: three kernels behind a load balancer. Their keys are rotated while
//! clients connect and processes are killed.
//!
//! - `fleet/site.rs`: the servers, each in a namespace, and the balancer; `fleet/client.rs`: the
//!   clients;
//! - `fleet/members.rs`: hosts that cannot take part, share a name, or have unreadable entries;
//! - `fleet/store.rs`: etcd; `fleet/secured.rs`: etcd with TLS, certificates and passwords, and our
//!   own server as the host.
mod client;
mod members;
mod secured;
mod site;
mod store;

use crate::{firstbyte, run, skipped_without, stderr, stdout};
use client::Clients;
use site::Site;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use store::Etcd;

/// Visits during two rotations.
const VISITS: usize = 10_000;
const SERVERS: usize = 3;
const STEPS: [&str; 3] = ["announced", "switched", "settled"];

#[test]
fn two_rotations_refuse_no_cookie_and_lose_no_visit_whatever_is_killed() {
    if skipped_without("etcd") || skipped_without("ip") {
        return;
    }
    testnet::in_namespace(|| {
        let mut etcd = Etcd::start();
        let url = etcd.url();
        let on_fleet =
            |verb: &str, more: &[&str]| run(&[&["fleet", verb, "web", "--store", &url], more].concat());
        assert_eq!(on_fleet("create", &[]).status.code(), Some(0));
        let mut site = Site::new(SERVERS, &url);
        (0..SERVERS).for_each(|server| site.start(server));
        let clients = Clients::start(&site);

        // A server is killed during the first rotation, and restarts before the rest may continue.
        let mut rotation = Rotation::start(&url);
        rotation.until("switched");
        site.kill(1);
        let second = on_fleet("rotate", &[]);
        assert_eq!(second.status.code(), Some(1), "{}", stdout(&second));
        assert!(stderr(&second).contains("is rotating the keys of this fleet"), "{}", stderr(&second));
        clients.wait_for(500);
        site.start(1);
        rotation.end();

        // In the second rotation the store is killed, and the operator with it.
        let mut rotation = Rotation::start(&url);
        rotation.until("announced");
        etcd.kill();
        drop(rotation);
        clients.wait_for(500);
        assert!(stderr(&on_fleet("status", &[])).contains("cannot reach the store"));
        site.until_cut_off();
        etcd.restart();
        let begun = Instant::now();
        // Waits until the lock of the killed operator has expired.
        while on_fleet("rotate", &["--quiet", "1s"]).status.code() != Some(0) {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody can go on with the rotation");
        }
        let status = on_fleet("status", &["--json"]);
        let status: serde_json::Value = serde_json::from_str(stdout(&status)).unwrap();
        assert_eq!((&status["version"], &status["step"]), (&7.into(), &STEPS[2].into()), "{status}");

        clients.wait_for(VISITS.saturating_sub(clients.done()));
        let visits = clients.stop();
        let counted = |name: &str| (0..SERVERS).map(|server| site.counters(server).of(name)).sum::<i64>();
        assert_eq!(counted("TCPFastOpenPassiveFail"), 0, "a cookie was refused");
        let asked = counted("TCPFastOpenCookieReqd");
        assert_eq!(asked, i64::try_from(client::ADDRESSES).unwrap(), "a cookie was lost");
        assert_eq!(counted("TCPFastOpenPassive"), i64::try_from(visits).unwrap() - asked);
        let refreshed = counted("TCPFastOpenPassiveAltKey");
        assert!(refreshed >= 2 * asked, "each client had two new cookies at least, not {refreshed} in all");
        println!(
            "{visits} visits, {asked} asked for a cookie, {refreshed} brought one of the former key, none was refused"
        );
        site.check_secrets();
    });
}

/// An operator's `fleet rotate`; killed when dropped.
struct Rotation {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Rotation {
    fn start(url: &str) -> Rotation {
        let mut command = firstbyte();
        command.args(["fleet", "rotate", "web", "--quiet", "1s", "--store", url]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Rotation { child, said }
    }

    /// Waits until the plan has reached this step.
    fn until(&mut self, step: &str) {
        let mut lines = (&mut self.said).lines().map(|line| line.unwrap());
        assert!(lines.any(|line| line.contains(&format!(", {step}: "))), "it never came to {step}");
    }

    /// Waits until it is complete.
    fn end(mut self) {
        (&mut self.said).lines().for_each(drop);
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Rotation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
