# As slow-accept, on a host that resets what does not fit into the queue.
sysctl -qw net.ipv4.tcp_abort_on_overflow=1
exec bash "${0%/*}/slow-accept.sh"
