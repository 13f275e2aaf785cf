"""An unmodified Python on a stack that reaches only itself: sockets among other descriptors."""
import asyncio, errno, os, select, signal, socket, subprocess, tempfile, threading

OWN = "10.0.0.2"
# The library read the variable when the program began: later changes have no effect.
del os.environ["FIRSTBYTE"]


def listener(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((OWN, port))
    s.listen(16)
    return s


def pair(port):
    with listener(port) as server:
        client = socket.create_connection((OWN, port))
        return client, server.accept()[0]


def numbers_are_the_kernels():
    a = socket.socket()
    b = os.open("/dev/null", os.O_RDONLY)
    c = socket.socket()
    used = {a.fileno(), b, c.fileno()}
    assert len(used) == 3 and max(used) < 100, used
    freed = a.fileno()
    a.close()
    assert os.open("/dev/null", os.O_RDONLY) == freed
    os.close(freed), os.close(b), c.close()


def duplicates_share_one_socket():
    client, server = pair(9)
    copies = [server.dup(), socket.socket(fileno=os.dup(server.fileno()))]
    os.dup2(server.fileno(), copies[0].fileno())
    server.close()
    client.send(b"ab")
    assert [copy.recv(1) for copy in copies] == [b"a", b"b"]
    r, w = os.pipe()
    os.dup2(r, copies[0].fileno())
    os.write(w, b"c")
    assert os.read(copies[0].fileno(), 1) == b"c", "the number is the pipe's now"
    copies[1].close()
    assert client.recv(1) == b"", "the last one was closed"
    client.close(), os.close(copies[0].detach()), os.close(r), os.close(w)


def what_is_not_tcp_is_the_kernels():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.sendto(b"x", udp.getsockname())
        assert udp.recv(10) == b"x"
    a, b = socket.socketpair()
    a.send(b"y")
    assert b.recv(10) == b"y"
    a.close(), b.close()
    with socket.socket() as s:
        try:
            s.bind(("192.0.2.1", 0))
            assert False, "nobody here has this address"
        except OSError as e:
            assert e.errno == errno.EADDRNOTAVAIL, e


def loopback_addresses_are_the_kernels():
    with socket.socket() as server, socket.socket() as client, socket.socket() as refused:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        # Not blocking, with an option, watched and duplicated before it is known whose it is.
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        copy, poll = client.dup(), select.epoll()
        poll.register(client, select.EPOLLOUT | select.EPOLLONESHOT)
        assert client.connect_ex(server.getsockname()) == errno.EINPROGRESS
        accepted, peer = server.accept()
        assert poll.poll(5) == [(client.fileno(), select.EPOLLOUT)]
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert peer == client.getsockname() == copy.getsockname() and peer[0] == "127.0.0.1"
        accepted.send(b"z")
        copy.setblocking(True)
        assert copy.recv(1) == b"z"
        accepted.close(), copy.close(), poll.close()
        free = server.getsockname()
        server.close()
        try:
            refused.connect(free)
            assert False, "nobody listens"
        except ConnectionRefusedError:
            pass
    with socket.socket() as s:
        s.bind((OWN, 0))
        assert s.getsockname()[0] == OWN, "what is the stack's stays so"


def children_execute_other_programs():
    client, server = pair(19)
    said = subprocess.run(["echo", "hello"], stdout=subprocess.PIPE, check=True, close_fds=True).stdout
    assert said == b"hello\n"
    assert os.system("exit 3") >> 8 == 3
    client.send(b"still")
    assert server.recv(5) == b"still"
    client.close(), server.close()


def waits(port, look):
    """look(descriptors, seconds) -> those that can be read"""
    client, server = pair(port)
    r, w = os.pipe()
    assert look([server.fileno(), r], 0.02) == []
    os.write(w, b"1")
    assert look([server.fileno(), r], 5) == [r]
    client.send(b"2")
    while len(look([server.fileno(), r], 5)) < 2:
        pass
    assert os.read(r, 1) == b"1" and look([server.fileno(), r], 5) == [server.fileno()]
    assert server.recv(1) == b"2" and look([server.fileno(), r], 0) == []
    # Asleep, and woken by either kind.
    for wake in (lambda: client.send(b"3"), lambda: os.write(w, b"3")):
        later = threading.Timer(0.05, wake)
        later.start()
        [ready] = look([server.fileno(), r], 5)
        assert os.read(ready, 1) == b"3"
        later.join()
    client.close(), server.close(), os.close(r), os.close(w)


def by_select(fds, seconds):
    return sorted(select.select(fds, [], [], seconds)[0], key=fds.index)


def by_poll(fds, seconds):
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return sorted((fd for fd, _ in poll.poll(seconds * 1000)), key=fds.index)


def by_epoll(fds, seconds):
    with select.epoll() as epoll:
        for fd in fds:
            epoll.register(fd, select.EPOLLIN)
        return sorted((fd for fd, _ in epoll.poll(seconds)), key=fds.index)


def by_poll_of_epoll(fds, seconds):
    with select.epoll() as epoll:
        for fd in fds:
            epoll.register(fd, select.EPOLLIN)
        ready = by_poll([epoll.fileno()], seconds)
        found = sorted((fd for fd, _ in epoll.poll(0)), key=fds.index)
        assert bool(ready) == bool(found)
        return found


def one_at_a_time():
    client, server = pair(13)
    r, w = os.pipe()
    client.send(b"1"), os.write(w, b"1")
    while len(by_poll([server.fileno(), r], 5)) < 2:
        pass
    with select.epoll() as epoll:
        epoll.register(server, select.EPOLLIN), epoll.register(r, select.EPOLLIN)
        seen = [epoll.poll(5, maxevents=1)[0][0] for _ in range(10)]
    assert seen.count(r) == 5, seen
    client.close(), server.close(), os.close(r), os.close(w)


def asyncio_serves():
    async def echo(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def visit(at):
        reader, writer = await asyncio.open_connection(OWN, 20)
        data = bytes([at]) * 200000
        writer.write(data)
        writer.write_eof()
        assert await reader.read() == data
        writer.close()

    async def all_of_them():
        server = await asyncio.start_server(echo, OWN, 20)
        await asyncio.gather(*(visit(at) for at in range(50)))
        server.close()

    asyncio.run(all_of_them())


def files_are_sent():
    client, server = pair(21)
    data = os.urandom(400000)
    got = bytearray()
    reader = threading.Thread(target=lambda: [got.extend(part) for part in iter(lambda: server.recv(65536), b"")])
    reader.start()
    with tempfile.TemporaryFile() as file:
        file.write(data)
        assert os.sendfile(client.fileno(), file.fileno(), 1000, 300000) == 300000
        file.seek(301000)
        assert client.sendfile(file, 301000) == 99000
        refusals = [
            (errno.EINVAL, client.fileno(), file.fileno(), -1),
            (errno.EINVAL, client.fileno(), client.fileno(), None),
            (errno.ESPIPE, client.fileno(), client.fileno(), 0),
            (errno.EBADF, client.fileno(), 99, 0),
        ]
        for expected, to, source, offset in refusals:
            try:
                os.sendfile(to, source, offset, 10)
                assert False
            except OSError as error:
                assert error.errno == expected, (error, expected)
    client.close()
    reader.join()
    assert bytes(got) == data[1000:]
    server.close()


def handlers_interrupt():
    class Late(Exception):
        pass

    def late(*_):
        raise Late

    signal.signal(signal.SIGALRM, late)
    with listener(22) as server:
        for call in (server.accept, lambda: select.select([server], [], [])):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                call()
                assert False
            except Late:
                pass


def children_have_none():
    client, server = pair(23)
    child = os.fork()
    if child == 0:
        try:
            client.send(b"x")
        except OSError as e:
            os._exit(0 if e.errno == errno.ENETDOWN else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    client.send(b"z")
    assert server.recv(10) == b"z"
    client.close(), server.close()


numbers_are_the_kernels()
duplicates_share_one_socket()
what_is_not_tcp_is_the_kernels()
loopback_addresses_are_the_kernels()
children_execute_other_programs()
waits(10, by_select)
waits(11, by_poll)
waits(12, by_epoll)
waits(14, by_poll_of_epoll)
one_at_a_time()
asyncio_serves()
files_are_sent()
handlers_interrupt()
children_have_none()
