# An upload over a path of 5 ms that loses 3 % of the packets.
exec bash "${0%/*}/transfer.bash" up none 0 rtt=5ms loss=3% towards=server
