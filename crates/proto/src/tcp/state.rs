//! States of a connection and what moves between them (RFC 9293 §3.3.2).
//!
//! ```text
//!             active open                       Fast Open child, or simultaneous open
//!          ┌── SYN-SENT ───────────────┐       ┌── SYN-RECEIVED ─────┬──────────┐
//!          │ SYN-ACK                   │ SYN   │ ACK of SYN    close │          │ FIN
//!          ▼                           └──────►│                     │          │
//!      ESTABLISHED ◄───────────────────────────┘                     │          │
//!   close │      │ FIN                                               │          │
//!         ▼      ▼                                                   ▼          ▼
//!   FIN-WAIT-1  CLOSE-WAIT                                      FIN-WAIT-1  CLOSE-WAIT
//!    │      │ FIN     │ close
//!    │ ACK  ▼         ▼
//!    │   CLOSING    LAST-ACK
//!    ▼      │ ACK     │ ACK
//!  FIN-WAIT-2│        ▼
//!    │ FIN  ▼       CLOSED
//!    └─► TIME-WAIT
//! ```
//!
//! An ordinary half-open peer is no connection yet (a `Request`), LISTEN is a listener, and TIME-WAIT lives in its own table.
//! A Fast Open child may leave SYN-RECEIVED by `close` or by a FIN before its SYN is acknowledged: whether the handshake is
//! complete is a fact of its own (`Connection::handshake`), not of the state.

use crate::State;

/// What changes a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// A SYN-ACK answered our SYN.
    SynAckReceived,
    /// A SYN without ACK crossed ours.
    SynReceived,
    /// Our SYN was acknowledged (passive or simultaneous open).
    SynAcked,
    /// The application ended its direction.
    Close,
    /// Our FIN was acknowledged.
    FinAcked,
    /// The peer ended its direction.
    FinReceived,
}

/// The whole of it. `None`: the event cannot happen, or changes nothing, in that state.
pub(crate) fn next(state: State, event: Transition) -> Option<State> {
    use State::*;
    use Transition as On;
    Some(match (state, event) {
        (SynSent, On::SynAckReceived) => Established,
        (SynSent, On::SynReceived) => SynReceived,
        (SynReceived, On::SynAcked) => Established,
        (SynReceived | Established, On::Close) => FinWait1,
        (SynReceived | Established, On::FinReceived) => CloseWait,
        (FinWait1, On::FinAcked) => FinWait2,
        (FinWait1, On::FinReceived) => Closing,
        (FinWait2, On::FinReceived) => TimeWait,
        (Closing, On::FinAcked) => TimeWait,
        (CloseWait, On::Close) => LastAck,
        (LastAck, On::FinAcked) => Closed,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn the_table_is_this() {
        use State::*;
        let states = [
            SynSent,
            SynReceived,
            Established,
            FinWait1,
            FinWait2,
            CloseWait,
            Closing,
            LastAck,
            TimeWait,
            Closed,
        ];
        let events = [
            Transition::SynAckReceived,
            Transition::SynReceived,
            Transition::SynAcked,
            Transition::Close,
            Transition::FinAcked,
            Transition::FinReceived,
        ];
        let mut table = String::new();
        for state in states {
            for event in events {
                if let Some(to) = next(state, event) {
                    table += &format!("{state:?} --{event:?}--> {to:?}\n");
                }
            }
        }
        let expected = "\
SynSent --SynAckReceived--> Established
SynSent --SynReceived--> SynReceived
SynReceived --SynAcked--> Established
SynReceived --Close--> FinWait1
SynReceived --FinReceived--> CloseWait
Established --Close--> FinWait1
Established --FinReceived--> CloseWait
FinWait1 --FinAcked--> FinWait2
FinWait1 --FinReceived--> Closing
FinWait2 --FinReceived--> TimeWait
CloseWait --Close--> LastAck
Closing --FinAcked--> TimeWait
LastAck --FinAcked--> Closed
";
        assert_eq!(table, expected);
    }
}
