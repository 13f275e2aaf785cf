"""A program on the kernel's sockets, told what to do line by line.

Reads one JSON object per line from standard input and answers each with one JSON object on standard output.
Every socket has a time limit, and the program ends with its input.
"""
import json
import socket
import struct
import sys
import threading
import time

TCP_INFO = 11
TCP_FASTOPEN = 23
TCP_FASTOPEN_CONNECT = 30
TCP_FASTOPEN_KEY = 33
TCP_FASTOPEN_NO_COOKIE = 34
MSG_FASTOPEN = 0x20000000
LIMIT = 20.0

listeners = {}
kept = []


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def tcp_info(sock):
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 104)
    return {"state": raw[0], "client_fail": (raw[7] >> 1) & 3}


def read_all(sock):
    chunks = []
    while chunk := sock.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


class Listener:
    """Serves connections one after the other and remembers each."""

    def __init__(self, task):
        self.task = task
        self.connections = []
        sock = socket.socket(family(task["host"]), socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((task["host"], task["port"]))
        if task.get("qlen"):
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, task["qlen"])
        if task.get("no_cookie"):
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        if task.get("key"):
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_KEY, bytes.fromhex(task["key"]))
        sock.listen(task.get("backlog", 128))
        self.sock = sock
        if task.get("accept", True):
            threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.serve(sock)

    def serve(self, sock):
        task = self.task
        sock.settimeout(LIMIT)
        seen = {"data": ""}
        self.connections.append(seen)
        data = b""
        try:
            while len(data) < task["expect"]:
                chunk = sock.recv(65536)
                if not chunk:
                    break
                data += chunk
                seen["data"] = data.decode("latin-1")
            sock.sendall(task["reply"].encode("latin-1"))
            if task["closes"] == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if task["closes"] in ("first", "reset"):
                sock.close()
                return
            if task["closes"] == "never":
                kept.append(sock)
                return
            rest = read_all(sock)
            seen["data"] = (data + rest).decode("latin-1")
        except OSError as error:
            seen["error"] = f"{type(error).__name__}: {error}"
        sock.close()


def exchange(task):
    """One connection as a client: send, read to the end, close."""
    sock = socket.socket(family(task["host"]), socket.SOCK_STREAM)
    sock.settimeout(task.get("limit", LIMIT))
    data = task["data"].encode("latin-1")
    way = task["way"]
    address = (task["host"], task["port"])
    result = {"reply": "", "error": None}
    start = time.monotonic()
    try:
        if way == "plain":
            sock.connect(address)
            sock.sendall(data)
        elif way == "msg_fastopen":
            sock.settimeout(None)
            sent = sock.sendto(data, MSG_FASTOPEN, address)
            sock.settimeout(task.get("limit", LIMIT))
            sock.sendall(data[sent:])
        elif way == "fastopen_connect":
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
            sock.connect(address)
            sock.sendall(data)
        elif way == "no_cookie":
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
            sock.settimeout(None)
            sock.sendto(data, MSG_FASTOPEN, address)
            sock.settimeout(task.get("limit", LIMIT))
        else:
            raise ValueError(way)
        if task.get("closes") == "first":
            sock.shutdown(socket.SHUT_WR)
        first = sock.recv(65536)
        result["first_byte_ms"] = (time.monotonic() - start) * 1000
        result["reply"] = (first + (read_all(sock) if first else b"")).decode("latin-1")
    except OSError as error:
        result["error"] = type(error).__name__
    result["total_ms"] = (time.monotonic() - start) * 1000
    result["info"] = tcp_info(sock)
    sock.close()
    return result


class Echo:
    """Sends back what arrives until the end, from many threads; keeps what each connection sent."""

    def __init__(self, task):
        self.connections = []
        sock = socket.socket(family(task["host"]), socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((task["host"], task["port"]))
        sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, task.get("qlen", 64))
        sock.listen(512)
        self.sock = sock
        for _ in range(task.get("threads", 4)):
            threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            sock.settimeout(LIMIT)
            data = b""
            try:
                while chunk := sock.recv(65536):
                    data += chunk
                    sock.sendall(chunk)
            except OSError as error:
                data += b"!" + type(error).__name__.encode()
            # Before the end that the client waits for, after which the test asks for them.
            self.connections.append(data.decode("latin-1"))
            sock.close()


def handle(task):
    do = task["do"]
    if do == "listen":
        listeners[task["id"]] = Listener(task)
        return {}
    if do == "echo":
        listeners[task["id"]] = Echo(task)
        return {}
    if do == "connections":
        return {"connections": listeners[task["id"]].connections}
    if do == "exchange":
        return exchange(task)
    raise ValueError(do)


for line in sys.stdin:
    try:
        answer = handle(json.loads(line))
    except Exception as error:  # the test prints it
        answer = {"failed": repr(error)}
    print(json.dumps(answer), flush=True)
