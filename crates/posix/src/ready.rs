//! The readiness of a descriptor.

bitflags::bitflags! {
    /// Bits of `poll` and `epoll`, which have the same values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Ready: u32 {
        /// Data, a connection to accept, or the end.
        const IN = 0x001;
        /// An urgent byte.
        const PRI = 0x002;
        /// Room to write.
        const OUT = 0x004;
        /// An error waits to be told.
        const ERR = 0x008;
        /// Both directions have ended.
        const HUP = 0x010;
        /// Not an open descriptor (`poll` only).
        const NVAL = 0x020;
        /// As `IN`.
        const RDNORM = 0x040;
        /// As `OUT`.
        const WRNORM = 0x100;
        /// The peer has finished, or reading was shut.
        const RDHUP = 0x2000;
    }
}
