//! The systemd units: their syntax, their exposure, and the commands that they start.

use super::super::{files::UNITS, output, write};
use super::expect;
use super::root::Root;
use crate::{packages, skipped};
use std::process::Command;

/// The highest exposure that `systemd-analyze security` may find, in tenths.
const EXPOSURE_MAX: &str = "30";

/// Checks each unit as it was installed.
pub(super) fn check(root: &Root) -> Result<(), String> {
    if packages::installed("systemd-analyze") {
        UNITS.iter().try_for_each(|unit| analyse(root, unit))?;
    } else {
        skipped::say("the systemd units: systemd-analyze is missing (apt-get install systemd)");
    }
    start(root)
}

/// systemd-analyze looks for the command where the unit names it: in the root of this test.
fn analyse(root: &Root, unit: &str) -> Result<(), String> {
    let name = format!("{unit}.service");
    let installed = root.path("usr/lib/systemd/system").join(&name);
    let text = std::fs::read_to_string(&installed)
        .map_err(|error| format!("cannot read {}: {error}", installed.display()))?;
    let here = root.path("units").join(&name);
    let command = root.path("usr/bin/firstbyte");
    write(&here, text.replace("/usr/bin/firstbyte", &command.display().to_string()), 0o644)?;
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(&here);
    let verified = verify.output().map_err(|error| format!("cannot run systemd-analyze: {error}"))?;
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    // It also reports the units of this machine.
    let is_ours = said.lines().any(|line| line.contains(unit));
    expect(verified.status.success() && !is_ours, &format!("systemd-analyze verify {name}"), &said)?;
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--no-pager", "--offline=true", &format!("--threshold={EXPOSURE_MAX}")]);
    let said = output(security.arg(&here))?;
    let line = said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_default();
    println!("{}", line.trim_start_matches(['→', ' ']));
    std::fs::remove_dir_all(root.path("units")).map_err(|error| format!("cannot remove units: {error}"))
}

/// Starts the units' commands without systemd, as an ordinary user with the unit's capabilities.
const PLAY: &str = r#"
set -e
ip link set lo up
mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs'
plain="$nobody --bounding-set=-all --inh-caps=-all --ambient-caps=-all"
admin="$nobody --bounding-set=-all,+net_admin --inh-caps=-all,+net_admin --ambient-caps=-all,+net_admin"
cd "$2"
$admin "$1" serve --quiet --control "$2/socket" --cache paths > serve.log &
server=$!
until [ -S socket ]; do sleep 0.1; kill -0 $server; done
curl --silent --show-error --max-time 30 http://10.77.0.2/ > page
kill -TERM $server
wait $server
[ -s page ] && [ -f paths ]
$admin "$1" key new keys
$admin sh -c 'cat keys > /proc/sys/net/ipv4/tcp_fastopen_key'
$plain "$1" doctor --listen 127.0.0.1:9477 --interval 200ms > doctor.log &
doctor=$!
until curl --silent --max-time 30 http://127.0.0.1:9477/metrics > metrics; do sleep 0.1; kill -0 $doctor; done
kill -TERM $doctor
[ -s metrics ]
"#;

fn start(root: &Root) -> Result<(), String> {
    let needed = ["unshare", "setpriv", "curl", "ip", "mknod"];
    if let Some(missing) = needed.into_iter().find(|name| !packages::installed(name)) {
        skipped::say(&format!("the units' commands as an ordinary user: {missing} is missing"));
        return Ok(());
    }
    if !packages::is_root() {
        skipped::say("the units' commands as an ordinary user: this needs root");
        return Ok(());
    }
    let folder = root.path("play");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    output(Command::new("chmod").arg("777").arg(&folder))?;
    let mut play = Command::new("timeout");
    play.args(["120", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    play.args(["sh", "-c", PLAY, "sh"]).arg(root.path("usr/bin/firstbyte")).arg(&folder);
    output(&mut play)?;
    println!("serve and key run with CAP_NET_ADMIN alone, doctor without any capability");
    std::fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}
