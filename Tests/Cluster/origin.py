#!/usr/bin/env python3
"""The origin of the cluster: films with ranges and entity tags, and counters of what was sent for whom.

origin.py ADDRESS PORT. GET /__state tells what was counted since the last time that counting began again, and /__set?rate=BYTES&hold=1&latency=SECONDS&reset=1
changes how it answers: the rate of each connection, whether bodies wait, how late the answer is.
"""
import json
import re
import socket
import sys
import threading
import time
import urllib.parse

import films


class Counts:
    """Bytes are those handed to sockets."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        self.requests, self.bytes, self.running, self.paths, self.log = 0, 0, 0, {}, []

    def begin(self, path, wanted):
        with self.lock:
            self.requests += 1
            self.paths.setdefault(path, [0, 0])[0] += 1
            self.log = self.log[-999:] + [f"{path} {wanted}"]

    def sent(self, path, count):
        with self.lock:
            self.bytes += count
            self.paths.setdefault(path, [0, 0])[1] += count

    def running_changed(self, by):
        with self.lock:
            self.running += by

    def state(self):
        with self.lock:
            return {"requests": self.requests, "bytes": self.bytes, "running": self.running, "paths": self.paths, "log": self.log}


class Manner:
    """How the origin answers at the moment."""

    def __init__(self):
        self.rate, self.latency = 0, 0.0
        self.released = threading.Event()
        self.released.set()

    def change(self, query):
        settings = dict(urllib.parse.parse_qsl(query))
        self.rate = int(settings.get("rate", self.rate))
        self.latency = float(settings.get("latency", self.latency))
        if settings.get("hold") == "1":
            self.released.clear()
        elif settings.get("hold") == "0":
            self.released.set()
        if "reset" in settings:
            COUNTS.reset()


COUNTS, MANNER = Counts(), Manner()
PLAYLIST = """#EXTM3U
#EXT-X-TARGETDURATION:6
#EXTINF:6,
http://origin.example/live/news/1.ts
#EXTINF:6,
/live/news/2.ts
#EXT-X-ENDLIST
"""


class Connection:
    def __init__(self, socket):
        self.socket, self.data = socket, b""

    def serve(self):
        try:
            while head := self.read_head():
                self.answer(head)
        except OSError:
            pass
        finally:
            self.socket.close()

    def read_head(self):
        while b"\r\n\r\n" not in self.data:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.data += data
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        return head.decode("latin-1")

    def answer(self, head):
        method, target, _ = head.split("\r\n")[0].split(" ")
        path, _, query = target.partition("?")
        if path.startswith("/__"):
            if path == "/__set":
                MANNER.change(query)
            return self.send_text("200 OK", json.dumps(COUNTS.state()))
        if path.startswith("/live/"):
            return self.send_text("200 OK\r\nContent-Type: application/vnd.apple.mpegurl\r\nETag: \"1\"", PLAYLIST)
        if (size := films.size(path)) is None:
            return self.send_text("404 Not Found", "no film\n")
        self.send_film(method, path, size, fields(head))

    def send_text(self, status, text):
        self.socket.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    def send_film(self, method, path, size, fields):
        tag = f'"{size:x}"'
        wanted = fields.get("range") if fields.get("if-range", tag) == tag else None
        start, end = parse_range(wanted, size)
        COUNTS.begin(path, wanted or "whole")
        COUNTS.running_changed(1)
        try:
            time.sleep(MANNER.latency)
            if start >= end:
                return self.socket.sendall(f"HTTP/1.1 416 No\r\nContent-Range: bytes */{size}\r\nContent-Length: 0\r\n\r\n".encode())
            status = f"206 Partial Content\r\nContent-Range: bytes {start}-{end - 1}/{size}" if wanted else "200 OK"
            self.socket.sendall((f"HTTP/1.1 {status}\r\nContent-Length: {end - start}\r\nETag: {tag}\r\nAccept-Ranges: bytes\r\nContent-Type: video/mp4\r\n"
                                 "Cache-Control: public, max-age=86400\r\n\r\n").encode())
            if method == "GET":
                self.send_body(path, start, end)
        finally:
            COUNTS.running_changed(-1)

    def send_body(self, path, start, end):
        began, offset = time.monotonic(), start
        MANNER.released.wait()
        while offset < end:
            length = min(films.PIECE if not MANNER.rate else 16 * films.KIB, end - offset)
            self.socket.sendall(films.piece(path, offset, length))
            COUNTS.sent(path, length)
            offset += length
            if MANNER.rate:
                time.sleep(max(0, began + (offset - start) / MANNER.rate - time.monotonic()))


def fields(head):
    lines = (line.partition(":") for line in head.split("\r\n")[1:])
    return {name.lower(): value.strip() for name, _, value in lines}


def parse_range(field, size):
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", field or "")
    if not match:
        return 0, size
    return int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)


def main():
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=1024)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=Connection(connection).serve, daemon=True).start()


if __name__ == "__main__":
    main()
