# A client whose connections are in TIME-WAIT: it may use few ports and closes first.
sysctl -qw net.ipv4.ip_local_port_range="40000 40999" net.ipv4.tcp_tw_reuse=0
exec python3 -c '
import socket, threading
server = socket.create_server(("127.0.0.1", 8081), backlog=64)
def accept():
    while True:
        stream, _ = server.accept()
        stream.recv(1)
        stream.close()
threading.Thread(target=accept, daemon=True).start()
for count in range(970):
    socket.create_connection(("127.0.0.1", 8081)).close()
print("ready", flush=True)
threading.Event().wait()
'
