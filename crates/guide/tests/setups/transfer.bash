# Usage: transfer.bash up|down OPTION VALUE KEY=VALUE...
# An endless transfer between the page's namespace, 10.79.0.1, and a server at 10.79.0.2, over a path
# of these words. The client sets the socket option first.
exec unshare --mount bash -c '
mkdir -p /run/netns
mount -t tmpfs none /run/netns
touch /run/netns/client
mount --bind /proc/self/ns/net /run/netns/client
ip netns add server
cat > /run/netns/transfer.py <<END
import socket, sys
way, option, value = sys.argv[1:]
def transfer(stream, sends):
    while sends or stream.recv(1 << 16):
        sends and stream.sendall(bytes(1 << 16))
if way.startswith("serve"):
    stream, _ = socket.create_server(("", 9000)).accept()
    transfer(stream, way == "serve-down")
stream = socket.socket()
if option != "none":
    stream.setsockopt(socket.SOL_SOCKET, getattr(socket, option), int(value))
stream.connect(("10.79.0.2", 9000))
transfer(stream, way == "up")
END
ip netns exec server timeout --foreground 300 python3 /run/netns/transfer.py serve-$0 none 0 &
until ip netns exec server ss -Htln | grep -q ":9000 "; do sleep 0.02; done
timeout --foreground 300 firstbyte link client server "${@:3}" > /run/netns/link &
until grep -q "are joined" /run/netns/link; do sleep 0.02; done
timeout --foreground 300 python3 /run/netns/transfer.py "$0" "$1" "$2" &
sleep 1
echo ready
wait
' "$@"
