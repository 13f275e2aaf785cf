//! Sections of a manual page that no help text has: privileges, environment, files, related pages.

/// Text of a page that the help text of its verb lacks.
pub(super) struct Extra {
    pub(super) privileges: Option<&'static str>,
    pub(super) environment: &'static [(&'static str, &'static str)],
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Related pages; section 1 unless stated.
    pub(super) see_also: &'static [&'static str],
}

/// Returns the sections of the page `name`.
pub(super) fn extra(name: &str) -> Extra {
    let nothing = Extra { privileges: None, environment: &[], files: &[], see_also: &[] };
    match name {
        "firstbyte" => Extra {
            privileges: Some(ALL_VERBS),
            environment: &[NO_COLOR, TERM, LOCALE, RUNTIME],
            files: &[CONTROL, STATE],
            see_also: &["tcp(7)", "ss(8)", "ip(8)"],
        },
        "firstbyte-serve" => Extra {
            privileges: Some(TUN),
            environment: &[RUNTIME, NO_COLOR],
            files: &[DEVICE, CONTROL, UNIT_SERVE],
            see_also: &["firstbyte-get", "firstbyte-ss", "firstbyte-key", "curl"],
        },
        "firstbyte-get" => Extra {
            privileges: Some(TUN),
            environment: &[NO_COLOR],
            files: &[DEVICE],
            see_also: &["firstbyte-serve", "firstbyte-explain", "curl"],
        },
        "firstbyte-link" => Extra {
            privileges: Some("CAP_NET_ADMIN for the TUN devices, CAP_SYS_ADMIN to enter the namespaces."),
            files: &[DEVICE],
            see_also: &["firstbyte-lab", "ip-netns(8)", "tc-netem(8)"],
            ..nothing
        },
        "firstbyte-lab" => Extra {
            privileges: Some(
                "None. Runs beside the kernel (--host) need root: they create network namespaces.",
            ),
            environment: &[NO_COLOR, LOCALE],
            see_also: &["firstbyte-link", "firstbyte-script"],
            ..nothing
        },
        "firstbyte-explain" => Extra {
            privileges: Some("None with the kernel's sockets. CAP_NET_ADMIN with --tun."),
            see_also: &["firstbyte-get", "firstbyte-fleet", "tcptraceroute"],
            ..nothing
        },
        "firstbyte-doctor" => Extra {
            privileges: Some(DOCTOR),
            environment: &[NO_COLOR, RUNTIME],
            files: &[CONTROL, UNIT_DOCTOR],
            see_also: &["firstbyte-watch", "firstbyte-nstat", "firstbyte-ss", "sysctl(8)"],
        },
        "firstbyte-watch" => Extra {
            privileges: Some(DOCTOR),
            environment: &[NO_COLOR, TERM, LOCALE],
            see_also: &["firstbyte-doctor", "firstbyte-ss"],
            ..nothing
        },
        "firstbyte-ss" => Extra {
            privileges: Some(
                "None. With --processes, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH show other users' processes. \
                 With --netns, CAP_SYS_ADMIN.",
            ),
            environment: &[RUNTIME],
            files: &[CONTROL],
            see_also: &["firstbyte-watch", "ss(8)"],
        },
        "firstbyte-nstat" | "firstbyte-sysctl" | "firstbyte-tc" | "firstbyte-nic" | "firstbyte-route" => {
            Extra {
                privileges: Some("None. With --netns, CAP_SYS_ADMIN."),
                see_also: match name {
                    "firstbyte-nstat" => &["nstat(8)"],
                    "firstbyte-sysctl" => &["sysctl(8)", "tcp(7)"],
                    "firstbyte-tc" => &["tc(8)"],
                    "firstbyte-nic" => &["ethtool(8)"],
                    _ => &["ip-route(8)"],
                },
                ..nothing
            }
        }
        "firstbyte-metrics" => Extra {
            privileges: Some("None. With --netns, CAP_SYS_ADMIN."),
            see_also: &["ip-tcp_metrics(8)"],
            ..nothing
        },
        "firstbyte-pcap" => Extra {
            privileges: Some("None, for a file that the user can read."),
            environment: &[NO_COLOR],
            see_also: &["tcpdump(8)", "tshark"],
            ..nothing
        },
        "firstbyte-key" => Extra {
            privileges: Some("None. The kernel's key in /proc/sys/net/ipv4 needs CAP_NET_ADMIN."),
            files: &[KEY],
            see_also: &["firstbyte-fleet", "tcp(7)"],
            ..nothing
        },
        "firstbyte-fleet" => Extra {
            privileges: Some("None. The agent needs CAP_NET_ADMIN."),
            see_also: &["firstbyte-key"],
            ..nothing
        },
        "firstbyte-fleet-agent" => Extra {
            privileges: Some(
                "CAP_NET_ADMIN to set the kernel's cookie key. With --stack or --control, the user of that stack.",
            ),
            environment: &[RUNTIME],
            files: &[STATE, KEY, UNIT_FLEET],
            see_also: &["firstbyte-fleet-rotate", "firstbyte-key"],
        },
        _ => nothing,
    }
}

const ALL_VERBS: &str = "Most verbs need none. serve and get create a TUN device and need CAP_NET_ADMIN; link also needs CAP_SYS_ADMIN; \
     fleet agent needs CAP_NET_ADMIN. The page of each verb says more.";
const TUN: &str = "CAP_NET_ADMIN, to create and configure the TUN device, and access to /dev/net/tun.";
const DOCTOR: &str = "None. As an ordinary user it does not see other users' processes or the cookie key; the report lists what it \
                      could not read. CAP_NET_ADMIN shows the key's state; CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH show \
                      the processes. With --netns, CAP_SYS_ADMIN.";

const NO_COLOR: (&str, &str) = ("NO_COLOR", "If set and not empty, no colours are used.");
const TERM: (&str, &str) = ("TERM", "With the value dumb, no escape sequences are used.");
const LOCALE: (&str, &str) =
    ("LC_ALL, LC_CTYPE, LANG", "Characters beyond ASCII are drawn if the first that is set names UTF-8.");
const RUNTIME: (&str, &str) =
    ("XDG_RUNTIME_DIR", "Control sockets are in its folder firstbyte. If unset, in /run/firstbyte.");

const CONTROL: (&str, &str) = (
    "$XDG_RUNTIME_DIR/firstbyte/*.sock, /run/firstbyte/*.sock",
    "Control sockets of running stacks. --stack finds the only one; --control names one.",
);
const STATE: (&str, &str) = (
    "/var/lib/firstbyte/FLEET.HOST",
    "The keys that fleet agent uses again after a restart. Only their owner can read the file.",
);
const DEVICE: (&str, &str) = ("/dev/net/tun", "The device that creates TUN interfaces.");
const KEY: (&str, &str) = ("/proc/sys/net/ipv4/tcp_fastopen_key", "The kernel's cookie keys.");
const UNIT_SERVE: (&str, &str) =
    ("firstbyte-serve.service, /etc/default/firstbyte-serve", "The systemd unit and its arguments.");
const UNIT_DOCTOR: (&str, &str) = (
    "firstbyte-doctor.service, /etc/default/firstbyte-doctor",
    "The systemd unit of the exporter and its arguments.",
);
const UNIT_FLEET: (&str, &str) = (
    "firstbyte-fleet-agent.service, /etc/default/firstbyte-fleet-agent",
    "The systemd unit and its arguments.",
);
