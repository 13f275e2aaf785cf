# The page runs on a client. Over a path of 40 ms: 10.79.0.2, whose kernel answers HTTP on port 80
# without Fast Open, and on port 81 with it.
exec unshare --mount bash -c '
mkdir -p /run/netns
mount -t tmpfs none /run/netns
touch /run/netns/client
mount --bind /proc/self/ns/net /run/netns/client
ip netns add server
ip netns exec server sysctl -qw net.ipv4.tcp_fastopen=3
cat > /run/netns/server.py <<END
import socket, threading, sys
def serve(port, fast_open):
    server = socket.create_server(("", port), backlog=64)
    if fast_open:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
    while True:
        stream, _ = server.accept()
        stream.recv(4000)
        stream.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")
        stream.close()
threading.Thread(target=serve, args=(80, False)).start()
threading.Thread(target=serve, args=(81, True)).start()
END
ip netns exec server timeout --foreground 300 python3 /run/netns/server.py &
until [ "$(ip netns exec server ss -Htln | grep -c ":8[01] ")" = 2 ]; do sleep 0.02; done
timeout --foreground 300 firstbyte link client server rtt=40ms | sed -u "s/.*are joined.*/ready/"
'
