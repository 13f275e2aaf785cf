//! Linux's one name for two rows: the lowest local port and the highest.
use super::{Config, SettingError};
use alloc::vec::Vec;

pub(super) const NAME: &str = "net.ipv4.ip_local_port_range";

impl Config {
    /// Both, as text with space between; the caller sees to it that nothing has changed where one is refused.
    pub(super) fn assign_port_range(&mut self, value: &str) -> Result<(), SettingError> {
        let ports: Vec<&str> = value.split_whitespace().collect();
        let [low, high] = ports[..] else {
            return Err(SettingError::Invalid(format!(
                "`{value}` is not two ports, the lowest and the highest, such as 32768 60999"
            )));
        };
        self.assign("firstbyte.ip_local_port_low", low)?;
        self.assign("firstbyte.ip_local_port_high", high)
    }
}
