//! From arguments to a running stack on a TUN device, and what keeps packets from finding it.
//!
//! The TUN device is a wire with the kernel at one end and our stack at the other: two hosts of one small network.
mod pcap;
mod route;
mod settings;
mod spool;

pub(crate) use pcap::PcapFile;
use settings::Given;

use crate::control::ControlSocket;
use crate::failure::{Failure, warn};
use crate::metrics::bad_file;
use crate::recorder::Recorder;
use crate::serve::key;
use crate::values::{self, Cidr};
use clap::{Args, ValueEnum};
use firstbyte::device::tun::Tun;
use firstbyte::device::{Device, interface};
use firstbyte::paths::{self, LoadError, Paths};
use firstbyte::{Config, KeyRing, Net, NetBuilder, SettingError, StackHandle};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// Where the stack stands, and how it is set.
#[derive(Args, Debug)]
#[command(next_help_heading = "Stack and TUN device")]
pub(crate) struct StackArgs {
    /// TUN device, created if it is not there (and then gone at the end) [default: firstbyte0 for serve, firstbyte1 for get].
    #[arg(long, value_name = "NAME")]
    tun: Option<String>,
    /// The stack's own address, with its prefix length; repeat it for more, IPv4 and IPv6 [default: 10.77.0.2/24 for serve,
    /// 10.78.0.2/24 for get].
    #[arg(long, value_name = "ADDR/LEN")]
    address: Vec<Cidr>,
    /// The kernel's address on the TUN device; repeatable [default: the first other one of each network, for a device that is
    /// created; none for one that was there].
    #[arg(long, value_name = "ADDR/LEN")]
    host_address: Vec<Cidr>,
    /// Settings to start from.
    #[arg(long, value_enum, default_value_t = Profile::Default)]
    profile: Profile,
    /// Read settings from FILE: NAME = VALUE a line, as sysctl.conf(5) has them, ip_local_port_range and (for serve) tcp_fastopen_key
    /// among them.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// What that file says, once it was read.
    #[arg(skip)]
    read: OnceLock<settings::Settings>,
    /// Change a setting, by Linux's name or ours, e.g. net.ipv4.tcp_fin_timeout=30; repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::setting)]
    set: Vec<(String, String)>,
    /// What connections to and from PREFIX begin with, in the words of `ip route`: mtu, advmss, initcwnd, initrwnd, cwnd, ssthresh,
    /// rto_min, quickack, congctl, fastopen_no_cookie, e.g. 'default initcwnd 20'; repeatable, the longest prefix counts.
    #[arg(long, value_name = "PREFIX METRIC…", value_parser = values::route)]
    route: Vec<values::Route>,
    /// Remember paths (Fast Open cookies and failures, round trips) in FILE: read at the start if it is there, replaced at the end.
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
    /// Where `firstbyte ss` and `firstbyte route` reach this stack: a Unix socket, for its user alone [default: for serve, one of its own in
    /// $XDG_RUNTIME_DIR/firstbyte or /run/firstbyte; for get, none].
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Print every setting with its value, and do nothing else.
    #[arg(long)]
    list_settings: bool,
    /// Write every packet to FILE (pcapng, for Wireshark, tshark and tcpdump).
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Profile {
    /// This project's defaults.
    Default,
    /// What Linux 6.18 does.
    Linux,
}

/// What a verb stands on when the user does not say.
pub(crate) struct Defaults {
    pub(crate) tun: &'static str,
    pub(crate) address: &'static str,
    /// It runs long enough to be asked, so it has a control socket.
    pub(crate) control: bool,
    /// Packets that must find room on the device, where it has less.
    pub(crate) queue_len: Option<u32>,
}

/// A stack that runs.
pub(crate) struct Running {
    pub(crate) net: Net,
    /// The parts of `net` that only a stack has.
    pub(crate) stack: StackHandle,
    /// The TUN device's name.
    pub(crate) tun: String,
    pub(crate) addresses: Vec<Cidr>,
    pub(crate) pcap: Option<PcapFile>,
    pub(crate) control: Option<ControlSocket>,
    cache: Option<PathBuf>,
}

impl Running {
    /// Writes what was captured and learnt.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let captured = self.pcap.as_ref().map_or(Ok(()), PcapFile::finish);
        if let Some(file) = &self.cache {
            paths::save(file, &self.stack.paths()).map_err(|error| Failure::file("write", file, &error))?;
        }
        captured
    }
}

impl StackArgs {
    /// The settings: profile, then those of `--settings`, then every `--set`, in order.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let mut config = match self.profile {
            Profile::Default => Config::default(),
            Profile::Linux => Config::linux(),
        };
        for given in self.given()?.iter().filter(|given| !is_of_device(&given.name)) {
            match config.set(&given.name, &given.value) {
                Ok(None) => {}
                Ok(Some(warning)) => warn(warning),
                Err(SettingError::Unknown) => return Err(unknown_setting(given, &config)),
                Err(why) => return Err(given.failure(&format!("{}={}: {why}", given.name, given.value))),
            }
        }
        Ok(config)
    }

    /// Settings of the file, then of the command line.
    fn given(&self) -> Result<Vec<Given>, Failure> {
        let here = self.set.iter().cloned();
        let here = here.map(|(name, value)| Given { name, value, place: None });
        Ok(self.file()?.given.into_iter().chain(here).collect())
    }

    /// The cookie key of the settings file.
    pub(crate) fn key(&self) -> Result<Option<KeyRing>, Failure> {
        Ok(self.file()?.key)
    }

    /// What the settings file says; it is read once.
    fn file(&self) -> Result<settings::Settings, Failure> {
        let Some(path) = &self.settings else { return Ok(settings::Settings::default()) };
        if let Some(read) = self.read.get() {
            return Ok(read.clone());
        }
        let read = settings::read(path)?;
        Ok(self.read.get_or_init(|| read).clone())
    }

    /// With `--list-settings`, the list of them.
    pub(crate) fn settings_text(&self, config: &Config) -> Option<String> {
        let lines = config.all().into_iter().map(|(name, value)| format!("{name} = {value}\n"));
        self.list_settings.then(|| lines.collect())
    }

    /// Opens the device and starts the stack. With a recorder, the device has no offloads, so that every packet is seen
    /// as it is on the wire.
    pub(crate) fn start(
        &self,
        defaults: &Defaults,
        config: Config,
        recorder: Option<&Recorder>,
        describe: impl FnOnce(NetBuilder<()>) -> NetBuilder<()>,
    ) -> Result<Running, Failure> {
        // Before anything is touched: a bad file ends it here.
        let known = self.known_paths()?;
        let name = self.tun.as_deref().unwrap_or(defaults.tun);
        let addresses = match &self.address[..] {
            [] => vec![defaults.address.parse().map_err(Failure::usage)?],
            given => given.to_vec(),
        };
        let host_addresses = self.host_addresses(name, &addresses)?;
        if interface::find(name).is_err() {
            route::check_unused(&host_addresses)?;
        }
        let tun = open_tun(name, &host_addresses, recorder.is_none())?;
        let name = tun.name().to_owned();
        if let Some(packets) = defaults.queue_len {
            widen_queue(&name, packets);
        }
        route::check(&name, &addresses, &host_addresses)?;
        let mut device: Box<dyn Device + Send> = Box::new(tun);
        if let Some(recorder) = recorder {
            device = Box::new(recorder.watch(device));
        }
        let pcap = self.pcap.as_deref().map(|path| PcapFile::create(path, &name)).transpose()?;
        if let Some(pcap) = &pcap {
            device = Box::new(pcap.watch(device));
        }
        let mut builder = describe(Net::builder()).config(config).device_name(name.as_str());
        for address in &addresses {
            builder = builder.address(address);
        }
        let net = builder
            .device(device)
            .start()
            .map_err(|error| Failure::failed(format!("cannot start the stack: {error}")))?;
        let stack = net.stack().map_err(|error| Failure::failed(error.to_string()))?.clone();
        for given in self.given()?.iter().filter(|given| is_of_device(&given.name)) {
            let Given { name: setting, value, .. } = given;
            stack.set(setting, value).map_err(|error| match error {
                SettingError::Unknown => given.failure(&format!(
                    "there is no setting `{setting}`; the stack's device is {name}: net.ipv4.conf.{name}.rp_filter and log_martians"
                )),
                why => given.failure(&format!("{setting}={value}: {why}")),
            })?;
        }
        for route in &self.route {
            stack.set_route(route.destination, route.metrics);
        }
        if let Some((known, elapsed)) = known {
            stack.add_paths(&known, elapsed);
        }
        let control = self.control_socket(defaults, &name, &stack)?;
        Ok(Running { net, stack, tun: name, addresses, pcap, control, cache: self.cache.clone() })
    }

    /// One that was asked for must be there; of another it is said why it is not.
    fn control_socket(
        &self,
        defaults: &Defaults,
        device: &str,
        net: &StackHandle,
    ) -> Result<Option<ControlSocket>, Failure> {
        if let Some(path) = &self.control {
            return ControlSocket::open(Some(path), device, net).map(Some);
        }
        let opened = defaults.control.then(|| ControlSocket::open(None, device, net));
        Ok(opened.and_then(|opened| opened.map_err(|failure| warn(failure.message())).ok()))
    }

    fn known_paths(&self) -> Result<Option<(Paths, Duration)>, Failure> {
        let Some(file) = &self.cache else { return Ok(None) };
        paths::check_writable(file).map_err(|error| Failure::file("write", file, &error))?;
        match paths::load(file) {
            Ok(known) => Ok(Some(known)),
            Err(LoadError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(bad_file(file, &error)),
        }
    }

    fn host_addresses(&self, tun: &str, addresses: &[Cidr]) -> Result<Vec<Cidr>, Failure> {
        if !self.host_address.is_empty() {
            let both =
                self.host_address.iter().find(|host| addresses.iter().any(|own| own.addr == host.addr));
            return match both {
                Some(both) => Err(Failure::usage(format!(
                    "{} cannot be both the stack's address (--address) and the kernel's (--host-address)",
                    both.addr
                ))),
                None => Ok(self.host_address.clone()),
            };
        }
        if interface::find(tun).is_ok() {
            return Ok(Vec::new());
        }
        let neighbour = |own: &Cidr| {
            own.neighbour().ok_or_else(|| {
                Failure::usage(format!(
                    "{own} leaves no address for the kernel's side; say which with --host-address"
                ))
            })
        };
        addresses.iter().map(neighbour).collect()
    }
}

fn open_tun(name: &str, host_addresses: &[Cidr], offload: bool) -> Result<Tun, Failure> {
    let builder = Tun::builder().name(name).offload(offload);
    let builder =
        host_addresses.iter().fold(builder, |builder, host| builder.address(host.addr, host.prefix_len));
    builder.open().map_err(|error| {
        let text = error.to_string();
        let advice = match error.kind() {
            ErrorKind::ResourceBusy => " with --tun",
            _ if text.contains("run as root") => "\n(firstbyte lab needs no rights at all)",
            _ => "",
        };
        Failure::failed(text + advice)
    })
}

/// Has the kernel keep at least so many packets for the stack while that is busy; an ordinary user may not, who is told what follows.
fn widen_queue(name: &str, packets: u32) {
    let Ok(found) = interface::find(name) else { return };
    if found.queue_len >= packets {
        return;
    }
    if let Err(error) = interface::set_queue_len(found.index, packets) {
        warn(format!(
            "{name} keeps {} packets and may not be given room for more ({error}), so many clients at once will lose some; as root: \
             ip link set dev {name} txqueuelen {packets}",
            found.queue_len
        ));
    }
}

/// The device's own settings have its name, which only a running stack knows.
fn is_of_device(name: &str) -> bool {
    name.starts_with("net.ipv4.conf.") && !name.starts_with("net.ipv4.conf.all.")
}

fn unknown_setting(given: &Given, config: &Config) -> Failure {
    let name = given.name.as_str();
    if key::is_setting(name) {
        return match given.place {
            None => key::given_openly(&format!("--set {name}")),
            Some(_) => given.failure(&format!("there is no setting `{name}`; is it {}?", key::SETTING)),
        };
    }
    let known: Vec<&str> = config.all().into_iter().map(|(name, _)| name).collect();
    let meant = values::meant_setting(name, &known);
    given.failure(&format!("there is no setting `{name}`; {meant}--list-settings prints all of them"))
}
