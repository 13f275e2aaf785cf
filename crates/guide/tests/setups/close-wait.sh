# A server that does not close the connections that its clients have closed.
exec python3 -c '
import socket, threading
server = socket.create_server(("127.0.0.1", 8082), backlog=64)
kept = []
for count in range(40):
    client = socket.create_connection(("127.0.0.1", 8082))
    kept.append(server.accept()[0])
    client.close()
print("ready", flush=True)
threading.Event().wait()
'
