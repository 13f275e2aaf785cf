# A download over a path of 50 ms by a program that sets a small SO_RCVBUF.
exec bash "${0%/*}/transfer.bash" down SO_RCVBUF 16384 rtt=50ms
