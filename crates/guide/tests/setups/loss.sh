# An upload over a path of 5 ms that loses 2 % of the packets.
exec bash "${0%/*}/transfer.bash" up none 0 rtt=5ms loss=2% towards=server
