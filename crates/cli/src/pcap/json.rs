//! Connections and captures as JSON. Times are in milliseconds, timestamps in seconds since 1970;
//! unknown values are null.
use super::account::Account;
use super::text::side_name;
use ::lab::ladder::milliseconds;
use capture::{CaptureFile, Connection, Effect, End, Limit, Side, Tunnel};
use serde_json::{Map, Value, json};
use std::time::Duration;

fn ms(time: Option<Duration>) -> Option<f64> {
    time.map(milliseconds)
}

/// Returns one connection.
pub(super) fn connection(connection: &Connection) -> Value {
    let handshake = connection.handshake();
    let (saved, wasted) = match connection.fast_open_effect() {
        Some(Effect::Saved(time)) => (Some(time), None),
        Some(Effect::Wasted(time)) => (None, Some(time)),
        None => (None, None),
    };
    json!({
        "connection": connection.number(),
        "client": connection.client().to_string(),
        "server": connection.server().to_string(),
        "began_s": connection.first_at().as_secs_f64(),
        "lasted_ms": milliseconds(connection.duration()),
        "packets": connection.packets(),
        "ip_bytes": connection.wire_bytes(),
        "captured_twice": connection.copies(),
        "tunnels": connection.tunnels().iter().map(Tunnel::name).collect::<Vec<_>>(),
        "older_connection_packets": connection.older_packets(),
        "other_server_packets": connection.other_answers(),
        "captured_only": connection.captured_only().map(side_name),
        "opening": {
            "outcome": connection.opening().name(),
            "failed": connection.opening().is_failure(),
            "text": connection.opening().to_string(),
            "simultaneous": handshake.is_simultaneous(),
        },
        "reset_by": connection.reset_by().map(side_name),
        "rtt_ms": ms(connection.rtt()),
        "rtt_to_client_ms": ms(connection.path(Side::Client)),
        "rtt_to_server_ms": ms(connection.path(Side::Server)),
        "first_byte_ms": ms(connection.time_to_first_byte()),
        "fast_open": {
            "class": connection.fast_open().name(),
            "syn_text_bytes": handshake.syn_text_len(),
            "syn_text_acknowledged": handshake.syn_text_acked(),
            "syn_ack_text_bytes": handshake.syn_ack_text_len(),
            "cookie": handshake.syn_option().cookie().map(|cookie| cookie.to_string()),
            "cookie_granted": handshake.syn_ack_option().cookie().map(|cookie| cookie.to_string()),
            "saved_ms": ms(saved),
            "wasted_ms": ms(wasted),
        },
        "syns": handshake.syns(),
        "syn_acks": handshake.syn_acks(),
        "from_client": half(connection, Side::Client),
        "from_server": half(connection, Side::Server),
    })
}

fn half(connection: &Connection, side: Side) -> Value {
    let half = connection.half(side);
    let sender = half.sender();
    let waited: Map<String, Value> = Limit::ALL
        .into_iter()
        .map(|limit| {
            let value = json!({
                "ms": milliseconds(sender.waited(limit)),
                "certain": limit.is_certain(connection, side),
            });
            (limit.name().to_owned(), value)
        })
        .collect();
    json!({
        "segments": half.segments(),
        "bytes": half.text_bytes(),
        "unseen_bytes": half.unseen_bytes(),
        "retransmitted_segments": half.retransmitted_segments(),
        "retransmitted_bytes": half.retransmitted_bytes(),
        "out_of_order": half.out_of_order(),
        "duplicates": half.duplicates(),
        "zero_windows": half.zero_windows(),
        "duplicate_acks": half.duplicate_acks(),
        "probes": half.probes(),
        "fin": half.is_finished(),
        "mss": half.offer().and_then(|offer| offer.mss),
        "window_scale": half.offer().and_then(|offer| offer.window_scale),
        "sack_permitted": half.offer().map(|offer| offer.sack),
        "timestamps": half.offer().map(|offer| offer.timestamps),
        "in_flight_max": sender.flight_max(),
        "delayed_acks_waited_for": sender.delayed_acks(),
        "restarts_after_idle": sender.restarts(),
        "waited": waited,
    })
}

/// Returns the summary of the capture.
pub(super) fn capture(file: &CaptureFile<'_>, account: &Account) -> Value {
    let fast_open: Map<String, Value> = account
        .handshakes()
        .map(|(kind, handshakes)| {
            let value = json!({
                "connections": handshakes.count,
                "rtt_min_ms": ms(handshakes.rtt.map(|(least, _)| least)),
                "rtt_max_ms": ms(handshakes.rtt.map(|(_, most)| most)),
                "saved_ms": milliseconds(handshakes.saved),
                "wasted_ms": milliseconds(handshakes.wasted),
                "advice": kind.advice(),
            });
            (kind.name().to_owned(), value)
        })
        .collect();
    let failures: Map<String, Value> =
        account.failures().map(|(name, failures)| (name.to_owned(), failures.count.into())).collect();
    let others: Map<String, Value> =
        account.others().map(|(why, count)| (why.to_string(), count.into())).collect();
    let tunnels: Map<String, Value> =
        account.tunnels().map(|(tunnels, count)| (tunnels.to_string(), count.into())).collect();
    let ignored: Map<String, Value> =
        file.oddities().map(|(oddity, count)| (oddity.name().to_owned(), count.into())).collect();
    let (end, damage) = match file.end() {
        End::Whole => ("whole", None),
        End::Truncated => ("truncated", None),
        End::Damaged(what) => ("damaged", Some(what)),
    };
    json!({
        "capture": {
            "format": file.format(),
            "compressed": file.is_compressed(),
            "frames": file.frames(),
            "tcp_packets": account.packets(),
            "not_tcp": others,
            "headers_cut": account.headers_cut(),
            "tunnels": tunnels,
            "ignored": ignored,
            "connections": account.connections(),
            "given_up": account.evicted(),
            "unseen_bytes": account.unseen().bytes,
            "one_direction_only": account.unseen().one_way,
            "failed": failures,
            "lasted_ms": milliseconds(account.span()),
            "end": end,
            "damage": damage,
        },
        "fast_open": fast_open,
    })
}
