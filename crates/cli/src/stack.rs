//! Starts a stack on a TUN device from arguments, and checks that packets can reach it. Or uses the
//! kernel's sockets, which need nothing of that.
//!
//! The TUN device is a wire between the kernel and our stack: two hosts of one small network.
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

/// Addresses, device and settings of the stack.
#[derive(Args, Debug)]
#[command(next_help_heading = "Stack and TUN device")]
pub(crate) struct StackArgs {
    /// Use this TUN device; it is created if it does not exist, and then removed at the end
    /// [default: firstbyte0 for serve, firstbyte1 for get]
    #[arg(long, value_name = "NAME")]
    tun: Option<String>,
    /// Address of the stack, with its prefix length, IPv4 or IPv6; repeatable [default:
    /// 10.77.0.2/24 for serve, 10.78.0.2/24 for get]
    #[arg(long, value_name = "ADDR/LEN")]
    address: Vec<Cidr>,
    /// Address of the kernel on the TUN device; repeatable [default: the first other address of
    /// each network for a new device, none for an existing one]
    #[arg(long, value_name = "ADDR/LEN")]
    host_address: Vec<Cidr>,
    /// Start from this set of settings [default: default]
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Read settings from FILE, NAME = VALUE per line like sysctl.conf(5), including
    /// ip_local_port_range and (for serve) tcp_fastopen_key
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Content of the settings file, after it was read.
    #[arg(skip)]
    read: OnceLock<settings::Settings>,
    /// Change a setting, by Linux's name or ours, such as net.ipv4.tcp_fin_timeout=30; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::setting)]
    set: Vec<(String, String)>,
    /// Set the metrics of connections to and from PREFIX, in the words of `ip route`: mtu, advmss,
    /// initcwnd, initrwnd, cwnd, ssthresh, rto_min, quickack, congctl, fastopen_no_cookie, such as
    /// 'default initcwnd 20'; repeatable, the longest prefix wins
    #[arg(long, value_name = "PREFIX METRIC…", value_parser = values::route)]
    route: Vec<values::Route>,
    /// Cache paths (Fast Open cookies and failures, round trips) in FILE: read at the start if it
    /// exists, replaced at the end
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
    /// Use this control socket (Unix, mode 0600) for `firstbyte ss` and `firstbyte route` [default:
    /// for serve, one in $XDG_RUNTIME_DIR/firstbyte or /run/firstbyte; for get, none]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Print every setting with its value, and exit
    #[arg(long)]
    list_settings: bool,
    /// Write every packet to FILE (pcapng, for Wireshark, tshark and tcpdump)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Profile {
    /// This project's defaults
    Default,
    /// The behaviour of Linux 6.18
    Linux,
}

/// Defaults of a verb.
pub(crate) struct Defaults {
    pub(crate) tun: &'static str,
    pub(crate) address: &'static str,
    /// True if the verb opens a control socket by default.
    pub(crate) control: bool,
    /// Least length of the device's queue, packets.
    pub(crate) queue_len: Option<u32>,
    /// Advice to users who cannot create a TUN device.
    pub(crate) without_root: &'static str,
}

/// The network of a verb: the kernel's sockets, or a stack of its own.
pub(crate) struct Running {
    pub(crate) net: Net,
    /// `None` on the kernel's sockets.
    pub(crate) own: Option<OwnStack>,
}

/// A running stack.
pub(crate) struct OwnStack {
    pub(crate) stack: StackHandle,
    /// The TUN device's name.
    pub(crate) tun: String,
    pub(crate) addresses: Vec<Cidr>,
    pub(crate) pcap: Option<PcapFile>,
    pub(crate) control: Option<ControlSocket>,
    cache: Option<PathBuf>,
}

impl Running {
    /// Returns the kernel's sockets.
    pub(crate) fn on_kernel() -> Running {
        Running { net: Net::kernel(), own: None }
    }

    /// Saves the capture and the path cache.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.own.as_ref().map_or(Ok(()), OwnStack::finish)
    }

    /// Returns the name of the TUN device.
    pub(crate) fn tun(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.tun.as_str())
    }

    /// Names the way of the packets.
    pub(crate) fn way(&self) -> &str {
        self.tun().unwrap_or("the kernel")
    }
}

impl OwnStack {
    fn finish(&self) -> Result<(), Failure> {
        let captured = self.pcap.as_ref().map_or(Ok(()), PcapFile::finish);
        if let Some(file) = &self.cache {
            paths::save(file, &self.stack.paths()).map_err(|error| Failure::file("write", file, &error))?;
        }
        captured
    }
}

impl StackArgs {
    /// Returns the options in use.
    pub(crate) fn given_names(&self) -> Vec<&'static str> {
        let StackArgs {
            tun,
            address,
            host_address,
            profile,
            settings,
            read: _,
            set,
            route,
            cache,
            control,
            list_settings,
            pcap,
        } = self;
        let given = [
            ("--tun", tun.is_some()),
            ("--address", !address.is_empty()),
            ("--host-address", !host_address.is_empty()),
            ("--profile", profile.is_some()),
            ("--settings", settings.is_some()),
            ("--set", !set.is_empty()),
            ("--route", !route.is_empty()),
            ("--cache", cache.is_some()),
            ("--control", control.is_some()),
            ("--list-settings", *list_settings),
            ("--pcap", pcap.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// Returns the settings: those of the profile, then of `--settings`, then of every `--set`, in
    /// order.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let mut config = match self.profile {
            None | Some(Profile::Default) => Config::default(),
            Some(Profile::Linux) => Config::linux(),
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

    /// Returns the settings of the file, then of the command line.
    fn given(&self) -> Result<Vec<Given>, Failure> {
        let here = self.set.iter().cloned();
        let here = here.map(|(name, value)| Given { name, value, place: None });
        Ok(self.file()?.given.into_iter().chain(here).collect())
    }

    /// Returns the cookie key of the settings file.
    pub(crate) fn key(&self) -> Result<Option<KeyRing>, Failure> {
        Ok(self.file()?.key)
    }

    /// Returns the content of the settings file, which is read once.
    fn file(&self) -> Result<settings::Settings, Failure> {
        let Some(path) = &self.settings else { return Ok(settings::Settings::default()) };
        if let Some(read) = self.read.get() {
            return Ok(read.clone());
        }
        let read = settings::read(path)?;
        Ok(self.read.get_or_init(|| read).clone())
    }

    /// With `--list-settings`, returns the list of settings.
    pub(crate) fn settings_text(&self, config: &Config) -> Option<String> {
        let lines = config.all().into_iter().map(|(name, value)| format!("{name} = {value}\n"));
        self.list_settings.then(|| lines.collect())
    }

    /// Opens the device and starts the stack. With a recorder, the device has no offloads, so that
    /// packets are recorded as they are on the wire.
    pub(crate) fn start(
        &self,
        defaults: &Defaults,
        config: Config,
        recorder: Option<&Recorder>,
        describe: impl FnOnce(NetBuilder<()>) -> NetBuilder<()>,
    ) -> Result<Running, Failure> {
        // An invalid file must fail before anything is changed.
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
        let tun = open_tun(name, &host_addresses, recorder.is_none(), defaults.without_root)?;
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
        let own = OwnStack { stack, tun: name, addresses, pcap, control, cache: self.cache.clone() };
        Ok(Running { net, own: Some(own) })
    }

    /// Opens the control socket. Fails if a socket that was requested cannot be opened, and warns
    /// about a default one.
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
                    "cannot find an address for the kernel's side: {own} leaves none; give it with \
                    --host-address"
                ))
            })
        };
        addresses.iter().map(neighbour).collect()
    }
}

fn open_tun(name: &str, host_addresses: &[Cidr], offload: bool, without_root: &str) -> Result<Tun, Failure> {
    let builder = Tun::builder().name(name).offload(offload);
    let builder =
        host_addresses.iter().fold(builder, |builder, host| builder.address(host.addr, host.prefix_len));
    builder.open().map_err(|error| {
        let text = error.to_string();
        let advice = match error.kind() {
            ErrorKind::ResourceBusy => " with --tun",
            _ if text.contains("run as root") => without_root,
            _ => "",
        };
        Failure::failed(text + advice)
    })
}

/// Makes the kernel's queue to the stack at least `packets` long. Warns if only root may do this.
fn widen_queue(name: &str, packets: u32) {
    let Ok(found) = interface::find(name) else { return };
    if found.queue_len >= packets {
        return;
    }
    if let Err(error) = interface::set_queue_len(found.index, packets) {
        warn(format!(
            "cannot make the queue of {name} longer than {} packets ({error}), so packets of many \
            simultaneous clients may be dropped; run as root: ip link set dev {name} txqueuelen \
            {packets}",
            found.queue_len
        ));
    }
}

/// True for settings whose name contains the device, which only a running stack knows.
fn is_of_device(name: &str) -> bool {
    name.starts_with("net.ipv4.conf.") && !name.starts_with("net.ipv4.conf.all.")
}

fn unknown_setting(given: &Given, config: &Config) -> Failure {
    let name = given.name.as_str();
    if key::is_setting(name) {
        return match given.place {
            None => key::given_openly(&format!("--set {name}")),
            Some(_) => {
                given.failure(&format!("there is no setting `{name}`; did you mean {}?", key::SETTING))
            }
        };
    }
    let known: Vec<&str> = config.all().into_iter().map(|(name, _)| name).collect();
    let meant = values::meant_setting(name, &known);
    given.failure(&format!("there is no setting `{name}`; {meant}--list-settings prints all of them"))
}
