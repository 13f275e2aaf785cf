//! Options of an open connection, and what follows from changing one.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::fresh::send_limit;
use crate::tcp::send::nagle::Nagle;
use crate::tcp::timers::Timer;
use crate::{OptionError, SocketOption, SocketOptions, State};

impl Connection {
    /// Changes one option; what it lets go leaves with the next packets.
    pub(crate) fn set_option(&mut self, cx: &Context, option: SocketOption) -> Result<(), OptionError> {
        match option {
            SocketOption::NoDelay(on) => {
                self.snd.nagle.set(Nagle::OFF, on);
                if on {
                    self.snd.push_queued();
                }
                return Ok(());
            }
            SocketOption::Cork(on) => {
                self.snd.nagle.set(Nagle::CORK, on);
                // An earlier MSG_MORE holds back what that write brought; now everything is looked at anew.
                self.snd.nagle.remove(Nagle::MORE);
                if !on && self.snd.nagle.contains(Nagle::OFF) {
                    self.snd.push_queued();
                }
                return Ok(());
            }
            SocketOption::TxDelay(delay) => {
                let before = self.options.tx_delay;
                self.options.set(option)?;
                if self.state == State::Established {
                    self.rtt.shift(before, delay);
                }
                return Ok(());
            }
            _ => self.options.set(option)?,
        }
        match option {
            SocketOption::Congestion(_) => self.change_congestion(cx),
            SocketOption::MaxSegment(_) => self.clamp_mss(cx),
            SocketOption::QuickAck(on) => self.rcv.set_quickack(&cx.config, on),
            SocketOption::RtoMin(_) | SocketOption::RtoMax(_) => self.bound_rto(&cx.config),
            SocketOption::SendBuffer(_) => self.snd.queue.limit = send_limit(&cx.config, &self.options),
            SocketOption::RecvBuffer(_) => self.rcv.space.choose_buffer(&cx.config, &self.options),
            SocketOption::RecvLowat(bytes) => self.rcv.space.make_room_for(bytes),
            SocketOption::WindowClamp(_) => {
                let advertised = self.rcv.advertised();
                self.rcv.space.choose_clamp(&cx.config, &self.options, advertised);
            }
            SocketOption::RecvBufferGrows => self.rcv.space.unlock(),
            SocketOption::KeepAlive(true) if self.is_open() && !self.timers.is_set(Timer::Life) => {
                self.start_keepalive(cx);
            }
            SocketOption::KeepAlive(false) => self.stop_keepalive(),
            SocketOption::KeepAliveTime(_) => self.restart_keepalive(cx),
            SocketOption::PathMtuDiscovery(_) => self.decide_fragments(cx),
            SocketOption::NotsentLowat(_) => self.wake_writer(cx),
            _ => {}
        }
        Ok(())
    }

    /// All options as they are now.
    pub(crate) fn socket_options(&self) -> SocketOptions {
        SocketOptions {
            nodelay: self.snd.nagle.contains(Nagle::OFF),
            cork: self.snd.nagle.contains(Nagle::CORK),
            ..SocketOptions::clone(&self.options)
        }
    }
}
