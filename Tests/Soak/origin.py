"""An origin of the media of the soak: a correct one, or one whose answers are broken in the ways that networks and servers break them.

What it says of a body is always true of the bytes it sends: a fault is a cut, a refusal, a silence or another answer than the one that was
asked for, never a lie that no proxy could see through. Each answer with media names its version in X-Version.
"""
import random
import re
import socket
import struct
import threading
import time
from email.utils import formatdate

import media
from media import PIECE

# Faults, each with its share among them.
FAULTS = {
    "cut": 12, "reset": 6, "silence": 5, "garbage": 2, "busy": 6, "throttled": 2, "failed": 4, "missing": 1, "stall": 1, "shifted": 5, "beginning": 4,
    "whole": 5, "wrong-total": 4, "surplus": 3, "coded": 3, "multipart": 4, "folded": 2, "many-fields": 2, "portal": 2, "extreme": 3, "untagged": 4,
    "refused-range": 2, "slow": 6, "odd-status": 2, "two-lengths": 2,
}


class Origin:
    """Listens, and answers each connection on a thread of its own."""

    def __init__(self, host, faults, rate, stall, seed):
        self.host, self.fault_share, self.rate, self.stall = host, faults, rate, stall
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.requests = self.sent = 0
        self.faults = {}
        self.stopping = threading.Event()
        self.listener = socket.create_server((host, 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        self.stopping.set()
        self.listener.close()

    def fault(self):
        """The fault of this answer; None for most."""
        with self.lock:
            self.requests += 1
            if self.random.random() >= self.fault_share:
                return None
            name = self.random.choices(list(FAULTS), FAULTS.values())[0]
            self.faults[name] = self.faults.get(name, 0) + 1
            return name

    def chance(self, upper):
        with self.lock:
            return self.random.randrange(max(1, upper))

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(120)
        try:
            held = b""
            while True:
                while b"\r\n\r\n" not in held:
                    data = connection.recv(65536)
                    if not data:
                        return
                    held += data
                head, _, held = held.partition(b"\r\n\r\n")
                if not self.answer(connection, head):
                    return
        except (OSError, ValueError, IndexError, KeyError):
            pass
        finally:
            connection.close()

    def answer(self, connection, head):
        """Whether the connection stays open."""
        return Answer(self, connection, head.decode("latin-1")).send()


class Answer:
    """One request and its answer."""

    def __init__(self, origin, connection, head):
        lines = head.split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        self.fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.origin, self.connection = origin, connection
        self.kind, self.size, self.version = media.kind(self.target), media.size(self.target), media.version(self.target)
        self.fault = origin.fault()

    def send(self):
        """Returns whether the connection goes on."""
        if self.kind == "moved":
            return self.refuse(302, [f"Location: /film/{int(self.target[7:10]):03}.mp4"])
        early = {
            "silence": self.hang_up, "garbage": self.garble, "busy": lambda: self.refuse(503, ["Retry-After: 1"]),
            "throttled": lambda: self.refuse(429, ["Retry-After: 1"]), "failed": lambda: self.refuse(500), "missing": lambda: self.refuse(404),
            "portal": self.capture, "extreme": self.exaggerate, "refused-range": lambda: self.refuse(416, [f"Content-Range: bytes */{self.size}"]),
            "odd-status": lambda: self.refuse(self.origin.random.choice([206, 304, 204, 299, 600, 999, 100, 300, 412])),
        }.get(self.fault)
        return early() if early else self.send_media()

    # The right answer, and what may be wrong with it

    def send_media(self):
        if self.is_unchanged():
            return self.refuse(304, self.validators())
        wanted = self.wanted()
        if wanted == ():
            return self.refuse(416, [f"Content-Range: bytes */{self.size}"])
        if self.fault == "multipart" and wanted:
            return self.send_parts(wanted)
        start, stop = wanted or (0, self.size)
        fields = ["Content-Type: video/mp4", *self.validators(), *self.policy()]
        # Who knows nothing yet could not see through it.
        total = self.size + 1 if self.fault == "wrong-total" and "if-range" in self.fields else self.size
        if wanted:
            fields.append(f"Content-Range: bytes {start}-{stop - 1}/{total}")
        if self.fault == "folded":
            fields.insert(0, "X-Folded: one\r\n two")
        if self.fault == "many-fields":
            fields += [f"X-{number}: {'a,' * 20}" for number in range(900)]
        if self.fault == "coded":
            fields.append("Transfer-Encoding: gzip, chunked")
            self.write_head(206 if wanted else 200, fields)
            self.connection.sendall(b"5\r\n\x1f\x8b\x08\x00\x00\r\n0\r\n\r\n")
            return True
        if self.kind == "chunked":
            fields.append("Transfer-Encoding: chunked")
        elif self.kind == "closed":
            fields.append("Connection: close")
        else:
            fields.append(f"Content-Length: {stop - start}")
        # Where there is none besides, it would be one that is wrong, and nobody could tell before the end.
        if self.fault == "two-lengths" and self.kind != "closed":
            fields.append(f"Content-Length: {stop - start + 1}")
        self.write_head(206 if wanted else 200, fields)
        return self.method == "HEAD" or self.write_body(start, stop)

    def is_unchanged(self):
        if "if-none-match" in self.fields:
            return media.tag(self.target, self.version) in self.fields["if-none-match"] and self.kind not in ("dated", "bare")
        return self.kind in ("dated", "revised") and self.fields.get("if-modified-since") == self.date()

    def wanted(self):
        """The half-open range to send; None for the whole, () where there is none."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.fields.get("range", ""))
        if not match or self.kind in ("whole", "chunked", "closed") or self.fault == "whole":
            return None
        if self.fields.get("if-range", media.tag(self.target, self.version)) not in (media.tag(self.target, self.version), self.date()):
            return None
        first, last = match.groups()
        start = int(first) if first else max(0, self.size - int(last))
        stop = min(self.size, int(last) + 1) if first and last else self.size
        if self.fault == "shifted":
            start, stop = max(0, start - 65536), min(self.size, max(start + 1, stop - 4096))
        if self.fault == "beginning":
            start, stop = 0, max(1, min(self.size, stop - start))
        return (start, stop) if start < stop else ()

    def date(self):
        return formatdate(media.modified(self.version), usegmt=True)

    def validators(self):
        tag = media.tag(self.target, self.version)
        fields = [f"X-Version: {self.version}"]
        if self.kind == "weak":
            fields.append(f"ETag: W/{tag}")
        elif self.kind not in ("dated", "bare", "revised") and self.fault != "untagged":
            fields.append(f"ETag: {tag}")
        if self.kind not in ("bare", "weak", "chunked"):
            fields.append(f"Last-Modified: {self.date()}")
        return fields

    def policy(self):
        return {"short": ["Cache-Control: max-age=3"], "nocache": ["Cache-Control: no-cache"], "nostore": ["Cache-Control: no-store"],
                "changing": ["Cache-Control: max-age=10"], "revised": ["Cache-Control: max-age=10"]}.get(self.kind, ["Cache-Control: max-age=86400"])

    def send_parts(self, wanted):
        start, stop = wanted[0], min(wanted[1], wanted[0] + 2 * PIECE)
        middle = (start + stop + 1) // 2
        body = b""
        for first, last in [(start, middle), (middle, stop)]:
            if first < last:
                body += f"--next\r\nContent-Type: video/mp4\r\nContent-Range: bytes {first}-{last - 1}/{self.size}\r\n\r\n".encode()
                body += b"".join(self.pieces(first, last)) + b"\r\n"
        body += b"--next--\r\n"
        self.write_head(206, ["Content-Type: multipart/byteranges; boundary=next", f"Content-Length: {len(body)}", *self.validators()])
        self.connection.sendall(body)
        return True

    def write_body(self, start, stop):
        cut = start + self.origin.chance(stop - start) if self.fault in ("cut", "reset", "stall") else stop
        rate = 200_000 if self.fault == "slow" else self.origin.rate
        began, sent = time.monotonic(), 0
        for data in self.pieces(start, cut):
            self.connection.sendall(b"%x\r\n%b\r\n" % (len(data), data) if self.kind == "chunked" else data)
            sent += len(data)
            self.origin.sent += len(data)
            if self.origin.stopping.wait(max(0.0, began + sent / rate - time.monotonic())):
                return False
        if self.fault == "stall":
            self.origin.stopping.wait(self.origin.stall)
        # RFC 9112 §8: a body that ends with its connection looks complete wherever that ends in good order; nobody can tell.
        if self.fault == "reset" or self.kind == "closed" and cut < stop:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if cut < stop:
            return False
        if self.kind == "chunked":
            self.connection.sendall(b"0\r\n\r\n")
        if self.fault == "surplus" and self.kind != "closed":
            self.connection.sendall(b"HTTP/1.1 200 surplus" + bytes(100))
        return self.kind != "closed"

    def pieces(self, start, stop):
        while start < stop:
            data = media.piece(self.target, self.version, start, min(PIECE // 4, stop - start))
            start += len(data)
            yield data

    def write_head(self, status, fields):
        lines = [f"HTTP/1.1 {status} Said", f"Date: {formatdate(usegmt=True)}", *fields]
        self.connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())

    # Other answers

    def refuse(self, status, fields=()):
        body = b"" if status in (100, 204, 304) else b"not now\n"
        lengths = [f"Content-Length: {len(body)}", "Content-Type: text/plain", "Cache-Control: no-store"] if body else []
        self.write_head(status, [*fields, *lengths])
        if self.method != "HEAD":
            self.connection.sendall(body)
        return True

    def hang_up(self):
        return False

    def garble(self):
        self.connection.sendall(self.origin.random.randbytes(1 + self.origin.chance(3000)))
        return False

    def capture(self):
        """A captive portal's page."""
        body = b"<html>Please log in</html>\n"
        self.write_head(200, ["Content-Type: text/html", f"Content-Length: {len(body)}"])
        if self.method != "HEAD":
            self.connection.sendall(body)
        return True

    def exaggerate(self):
        """Numbers at the edges of 64 bits."""
        number = self.origin.random.choice([2**63 - 2, 2**63 - 1, 2**63, 2**64 - 1, 2**62, 10**30])
        first = self.origin.random.choice([number, number - 1, 0, self.size])
        total = self.origin.random.choice(["*", number, number + 1])
        self.write_head(206, [f"Content-Range: bytes {first}-{number}/{total}", "Content-Type: video/mp4", f"Age: {number}", *self.validators(),
                              f"Cache-Control: max-age={number}, stale-while-revalidate={number}", f"Retry-After: {number}"])
        return False
