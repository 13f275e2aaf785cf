# An upload over a path of 50 ms by a program that sets a small SO_SNDBUF.
exec bash "${0%/*}/transfer.bash" up SO_SNDBUF 16384 rtt=50ms
