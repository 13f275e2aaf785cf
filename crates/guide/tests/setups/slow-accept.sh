# A server on port 8080 that accepts nothing, and a client that tries five times a second.
exec python3 -c '
import socket, time
server = socket.create_server(("127.0.0.1", 8080), backlog=4)
clients = []
begun = False
while True:
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", 8080))
    clients.append(client)
    if len(clients) > 8 and not begun:
        begun = True
        print("ready", flush=True)
    time.sleep(0.05)
'
