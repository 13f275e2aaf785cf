"""Plays a script of frames and tc commands on a veth pair; prints what came out at the other end, and what tc showed.

send LENGTH PRIORITY NUMBER   a frame of so many bytes with this skb->priority; its payload is the number
pause SECONDS
tc ...                        as it stands
Any output of tc is printed; at the end a line "order" with the numbers as they arrived, and the milliseconds of each.
"""
import os, select, socket, struct, subprocess, sys, time

# One processor: frames of two would pass each other.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
ETHERTYPE = 0x88B5
ETH_P_ALL = 3
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
out.bind(("v0", 0))
back = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
back.bind(("v1", ETH_P_ALL))
back.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
header = b"\x02\0\0\0\0\x02" + b"\x02\0\0\0\0\x01" + struct.pack("!H", ETHERTYPE)
arrived = []
begin = time.monotonic()


def read(seconds):
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        ready, _, _ = select.select([back], [], [], max(left, 0))
        if not ready:
            return
        frame, address = back.recvfrom(65536)
        # Frames that v1 itself sends are seen here too.
        if address[2] != 4 and frame[12:14] == header[12:14]:
            arrived.append((struct.unpack("!I", frame[14:18])[0], time.monotonic() - begin))


for line in sys.stdin:
    words = line.split()
    if not words:
        continue
    if words[0] == "send":
        length, priority, number = (int(word, 0) for word in words[1:])
        out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        frame = header + struct.pack("!I", number)
        try:
            out.send(frame + bytes(length - len(frame)))
        except OSError as error:
            # ENOBUFS: the discipline dropped it, and tells the socket.
            if error.errno != 105:
                raise
    elif words[0] == "pause":
        read(float(words[1]))
    else:
        done = subprocess.run(words, capture_output=True, text=True)
        print(done.stdout + done.stderr, end="")
read(0)
print("order", *(number for number, _ in arrived))
print("times", *(round(at * 1000) for _, at in arrived))
