//! Text from people, files and sockets: settings, routes, path files, scripts, requests. Text that
//! is read, printed and read again stays the same.
use control::Request;
use core::time::Duration;
use proto::{Capabilities, Config, Instant, Paths, Stack, parse_route, show_route};

const ETHERNET: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

/// Lines of `name value`; what is taken prints as a value that is taken again and means the same.
pub fn settings(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let mut config = Config::default();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if config.set(name, value).is_ok() {
            let mut again = Config::default();
            for (name, value) in config.all() {
                let set = again.set(name, &value);
                assert!(set.is_ok(), "{name} shows {value}, which is refused: {set:?}");
            }
            assert_eq!(again, config, "after `{line}`");
        }
    }
}

/// A route.
pub fn routes(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok((network, metrics)) = parse_route(text) else { return };
    let shown = show_route(&network, &metrics);
    assert_eq!(parse_route(&shown), Ok((network, metrics)), "`{shown}`");
    let mut stack = Stack::new(Config::default(), ETHERNET, [1; 32]);
    stack.set_route(Instant::ZERO, network, metrics);
}

/// A path file, imported.
pub fn paths(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(paths) = text.parse::<Paths>() else { return };
    let shown = paths.to_string();
    assert_eq!(shown.parse(), Ok(paths.clone()), "{shown}");
    let mut stack = Stack::new(Config::default(), ETHERNET, [1; 32]);
    let now = Instant::ZERO + Duration::from_secs(1);
    stack.import_paths(now, &paths, Duration::from_secs(1));
    let _ = stack.export_paths(now).to_string();
}

/// A script; only read, not run: a script runs for as long as it says.
pub fn scripts(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(script) = script::Script::parse(text) else { return };
    let printed = script.to_string();
    let again = script::Script::parse(&printed);
    assert_eq!(again.map(|script| script.to_string()), Ok(printed));
}

/// A request of the control socket.
pub fn requests(data: &[u8]) {
    let Ok(line) = core::str::from_utf8(data) else { return };
    let Ok(request) = Request::read(line) else { return };
    let again = request.line();
    assert!(!again.contains('\n'), "a request is one line: {again:?}");
    assert_eq!(Request::read(&again), Ok(request), "`{again}`");
}
