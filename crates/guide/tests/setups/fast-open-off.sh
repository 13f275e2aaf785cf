# A host that has Fast Open off.
sysctl -qw net.ipv4.tcp_fastopen=0
echo ready
