# An upload over a path of 20 ms and 5 Mbit/s whose queue holds 200 packets.
exec bash "${0%/*}/transfer.bash" up none 0 rtt=20ms rate=5mbit queue=200 towards=server
