"""A player's side of HTTP/1.1, strict about framing, which compares each byte of media with what it has to be."""
import re
import socket
import struct

import media

TIMEOUT = 90


class Wrong(Exception):
    """The proxy has said or sent something that is false."""


class Cut(Exception):
    """The answer has ended before its end, as its framing tells."""


class Connection:
    """One connection to the proxy."""

    def __init__(self, port, pace, receive_buffer=None):
        self.pace, self.held = pace, b""
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(("127.0.0.1", port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def abort(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, method, path, fields=(), version="1.1", body=b""):
        lines = [f"{method} {path} HTTP/{version}", "Host: 127.0.0.1", *fields]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)

    def receive(self, most=262_144):
        if self.held:
            data, self.held = self.held[:most], self.held[most:]
            return data
        try:
            data = self.socket.recv(most)
        except ConnectionResetError:
            data = b""
        self.pace.note(len(data))
        return data

    def line(self):
        while b"\n" not in self.held:
            if len(self.held) > 1 << 20:
                raise Wrong("a line without an end")
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Cut("no whole line")
            self.held += data
        line, _, self.held = self.held.partition(b"\n")
        return line.rstrip(b"\r").decode("latin-1")

    def answer(self, method="GET"):
        try:
            return Reply(self, method)
        except ConnectionResetError:
            raise Cut("reset before a head") from None


class Reply:
    """The head of an answer, and its body as it comes."""

    def __init__(self, connection, method):
        self.connection = connection
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) ?.*", connection.line())
        if not match:
            raise Wrong("not a status line")
        self.status, self.fields = int(match.group(1)), {}
        while line := connection.line():
            name, _, value = line.partition(":")
            name = name.lower()
            if method != "HEAD" and name in ("content-length", "content-range", "x-version") and name in self.fields:
                raise Wrong(f"two fields {name}: {self.fields[name]} and {value.strip()}, {self.status}, {self.fields}")
            self.fields[name] = value.strip()
        self.left = self.length(method)
        self.is_chunked = self.fields.get("transfer-encoding") == "chunked"

    def length(self, method):
        """The body's; None where it is told by chunks or by the connection's end."""
        if method == "HEAD" or self.status in (204, 304):
            return 0
        stated = self.fields.get("content-length")
        if stated is not None and not stated.isdecimal():
            raise Wrong(f"Content-Length: {stated}")
        return int(stated) if stated is not None else None

    def pieces(self):
        """The body. Raises Cut where its end is missing."""
        if self.left is not None:
            while self.left:
                data = self.connection.receive(min(262_144, self.left))
                if not data:
                    raise Cut(f"{self.left} bytes are missing")
                self.left -= len(data)
                yield data
        elif self.is_chunked:
            while chunk := self.chunk_size():
                while chunk:
                    data = self.connection.receive(min(262_144, chunk))
                    if not data:
                        raise Cut("within a chunk")
                    chunk -= len(data)
                    yield data
                self.connection.line()
            self.connection.line()
            self.left = 0
        else:
            while data := self.connection.receive():
                yield data

    def chunk_size(self):
        line = self.connection.line()
        if not re.fullmatch(r"[0-9A-Fa-f]{1,15}", line):
            raise Wrong(f"a chunk's size: {line[:40]}")
        return int(line, 16)

    def text(self):
        return b"".join(self.pieces())

    @property
    def is_from_cache(self):
        return re.search(r"(^|, *)\S+; *hit", self.fields.get("cache-status", "")) is not None

    @property
    def is_media(self):
        return "x-version" in self.fields

    def range(self, target):
        """The half-open range that the body is of the target, checked against what is known of it."""
        size = media.size(target)
        if self.status == 200:
            start, stop = 0, size
        else:
            match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", self.fields.get("content-range", ""))
            if not match or match.group(3) not in (str(size), "*"):
                raise Wrong(f"Content-Range: {self.fields.get('content-range')} of {size}")
            start, stop = int(match.group(1)), int(match.group(2)) + 1
        if not 0 <= start < stop <= size:
            raise Wrong(f"bytes {start} to {stop} of {size}")
        if self.left not in (None, stop - start):
            raise Wrong(f"Content-Length {self.left} for {stop - start} bytes")
        return start, stop

    def check_validators(self, target):
        tag = self.fields.get("etag", "").removeprefix("W/")
        if tag and tag != media.tag(target, self.fields["x-version"]):
            raise Wrong(f"ETag {tag} with version {self.fields['x-version']}")

    def read_media(self, target, wants=None, pause=None):
        """Compares the body, `wants` bytes of it at most. Returns how many were right; raises Wrong or Cut.

        `pause` is called after each piece with the bytes read so far.
        """
        self.check_validators(target)
        start, stop = self.range(target)
        version, offset = self.fields["x-version"], start
        for data in self.pieces():
            compare(target, version, offset, data, stop)
            offset += len(data)
            if wants is not None and offset - start >= wants:
                return offset - start
            if pause:
                pause(offset - start)
        if offset < stop:
            raise Cut(f"{stop - offset} bytes are missing")
        return offset - start

    def read_parts(self, target):
        """Compares the parts of multipart/byteranges."""
        self.check_validators(target)
        boundary = re.search(r'boundary="?([^";]+)', self.fields["content-type"]).group(1).encode()
        *parts, end = (b"\r\n" + self.text()).split(b"\r\n--" + boundary)
        if not end.startswith(b"--") or parts[0]:
            raise Wrong("multipart without its end")
        count = 0
        for part in parts[1:]:
            head, _, body = part.partition(b"\r\n\r\n")
            match = re.search(rb"content-range: bytes (\d+)-(\d+)/(\d+)", head, re.I)
            if not match or int(match.group(3)) != media.size(target) or int(match.group(2)) - int(match.group(1)) + 1 != len(body):
                raise Wrong(f"a part's head does not fit: {head}")
            compare(target, self.fields["x-version"], int(match.group(1)), body, media.size(target))
            count += len(body)
        return count


def compare(target, version, offset, data, stop):
    if offset + len(data) > stop:
        raise Wrong(f"{offset + len(data) - stop} bytes too many of {target}")
    for at in range(0, len(data), media.PERIOD):
        part = data[at:at + media.PERIOD]
        right = media.piece(target, version, offset + at, len(part))
        if part != right:
            first = next(index for index, (a, b) in enumerate(zip(part, right)) if a != b)
            raise Wrong(f"byte {offset + at + first} of {target}, version {version}; {where(target, part[first:first + 64])}")


def where(target, data):
    """Where bytes that are wrong come from, as far as that can be told."""
    place = media.BASE.find(data)
    return f"they are {data[:16].hex()}" + ("" if place < 0 else f", media of another place, version or URL ({place})")
