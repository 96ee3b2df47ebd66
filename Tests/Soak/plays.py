"""What players do, each as a function of a visit: one kind of play, from the first connection to the last."""
import random
import socket
import threading

import media
from media import KIB, MIB
from player import Connection, Cut, Wrong

# What an origin with faults may make the proxy answer.
ERRORS = {204, 299, 300, 302, 404, 412, 416, 429, 500, 502, 503, 504, 599, 600, 999}


class Visit:
    """One player: its random choices, the medium it plays, and what it has read."""

    def __init__(self, soak, seed, target=None, is_faulty=None):
        self.soak, self.random = soak, random.Random(seed)
        self.is_faulty = self.random.random() < 0.5 if is_faulty is None else is_faulty
        self.target = target or self.choose()
        self.size = media.size(self.shown)

    def choose(self):
        kind = self.random.choices(["film", "seg", "other"], [5, 3, 3])[0]
        if kind == "other":
            kind = self.random.choice([kind for kind in media.SIZES if kind not in ("film", "seg")])
        target = self.random.choice(media.targets(kind))
        # A few URLs are always new, as with tokens and sessions.
        return f"{target}?session={self.random.getrandbits(40)}" if kind == "seg" and self.random.random() < 0.01 else target

    @property
    def shown(self):
        """The target whose bytes come: another one where the origin redirects."""
        return f"/film/{int(self.target[7:10]):03}.mp4" if media.kind(self.target) == "moved" else self.target

    @property
    def origin(self):
        return self.soak.faulty if self.is_faulty else self.soak.correct

    @property
    def path(self):
        return f"/http/{self.origin.host}:{self.origin.port}{self.target}"

    @property
    def may_be_cut(self):
        """A new version cannot go on where the old one ended; and a request of its own kind of trouble ends some answers."""
        return self.is_faulty or media.kind(self.target) in ("changing", "revised")

    def connect(self, **options):
        self.soak.pace.wait()
        return Connection(self.soak.port, self.soak.pace, **options)

    def ask(self, connection, fields=(), method="GET", version="1.1", path=None):
        self.soak.pace.wait()
        connection.send(method, path or self.path, fields, version)
        self.soak.count("requests")
        return connection.answer(method)

    def read(self, reply, wants=None, pause=None):
        """Reads an answer that should be media, and counts what it was. Returns whether the connection can be used again."""
        self.soak.count(f"status {reply.status}")
        if not reply.is_media or reply.status in (304, 416):
            return self.read_refusal(reply)
        if reply.status not in (200, 206):
            raise Wrong(f"media with status {reply.status}")
        try:
            if reply.fields.get("content-type", "").startswith("multipart/byteranges"):
                count = reply.read_parts(self.shown)
            else:
                count = reply.read_media(self.shown, wants, pause)
        except Cut:
            self.soak.count("cut")
            if not self.may_be_cut:
                raise
            return False
        self.soak.count("bytes", count)
        return reply.left == 0

    def read_refusal(self, reply):
        if reply.status in (304, 416):
            reply.text()
            return True
        if reply.status in (200, 206) and reply.fields.get("content-type", "").startswith("text/html") and self.is_faulty and not reply.is_from_cache:
            reply.text()
            self.soak.count("captured")
            return True
        if not self.is_faulty or reply.status not in ERRORS:
            raise Wrong(f"{reply.status} {reply.fields} {reply.text()[:200]}")
        try:
            reply.text()
        except Cut:
            return False
        return True


def sequential(visit):
    """The whole film from the beginning, sometimes left early."""
    wants = None if visit.random.random() < 0.5 else visit.random.randrange(1, visit.size + 1)
    with visit.connect() as connection:
        visit.read(visit.ask(connection, ["Range: bytes=0-"] if visit.random.random() < 0.7 else []), wants)


def seeks(visit):
    """A new connection for each seek, which asks to the end and leaves, as players do."""
    for _ in range(visit.random.randrange(2, 10)):
        start = visit.random.randrange(visit.size)
        with visit.connect() as connection:
            visit.read(visit.ask(connection, [f"Range: bytes={start}-"]), visit.random.randrange(1, 2 * MIB))
            if visit.random.random() < 0.3:
                connection.abort()


def ranges(visit):
    """Bounded ranges over one connection, suffixes and ranges beyond the end among them."""
    with visit.connect() as connection:
        for _ in range(visit.random.randrange(1, 12)):
            start = visit.random.randrange(visit.size)
            length = visit.random.choice([1, 2, 100, 65536, 65537, 300_000, visit.size])
            field = visit.random.choice([f"bytes={start}-{start + length - 1}"] * 6 + [f"bytes=-{length}", f"bytes={visit.size - 1}-", f"bytes={start}-"])
            reply = visit.ask(connection, [f"Range: {field}"])
            if not visit.read(reply):
                return


def multiparts(visit):
    """Several ranges in one request."""
    with visit.connect() as connection:
        for _ in range(visit.random.randrange(1, 4)):
            parts = []
            for _ in range(visit.random.randrange(2, 6)):
                start = visit.random.randrange(visit.size)
                parts.append(f"{start}-{min(visit.size - 1, start + visit.random.randrange(1, 50_000))}")
            if not visit.read(visit.ask(connection, ["Range: bytes=" + ", ".join(parts)])):
                return


def crowd(visit):
    """Many readers of one film, who start at the same time."""
    members = [Visit(visit.soak, visit.random.getrandbits(48), visit.target, visit.is_faulty) for _ in range(visit.random.randrange(3, 9))]
    play = visit.random.choice([sequential, seeks])
    threads = [threading.Thread(target=visit.soak.attend, args=(play, member)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def slow(visit):
    """A player whose buffer is full: it reads a little now and then."""
    with visit.connect(receive_buffer=16 * KIB) as connection:
        visit.read(visit.ask(connection, ["Range: bytes=0-"]), visit.random.randrange(200 * KIB, 600 * KIB), lambda _: visit.soak.rest(0.4))


def paused(visit):
    """Reads, pauses for a while, and goes on."""
    places = {visit.random.randrange(1, 2 * MIB) // (256 * KIB) for _ in range(2)}

    def pause(count):
        if count // (256 * KIB) in places:
            places.discard(count // (256 * KIB))
            visit.soak.rest(visit.random.uniform(5, 40))

    with visit.connect() as connection:
        visit.read(visit.ask(connection, ["Range: bytes=0-"]), 3 * MIB, pause)


def old_protocol(visit):
    """HTTP/1.0, with and without keep-alive, by the path and as a proxy."""
    with visit.connect() as connection:
        path = visit.random.choice([visit.path, f"http://{visit.origin.host}:{visit.origin.port}{visit.target}"])
        fields = visit.random.choice([[], ["Connection: keep-alive"]])
        visit.read(visit.ask(connection, fields, version="1.0", path=path), visit.random.choice([None, 100_000]))


def conditional(visit):
    """Asks again with the validators of the first answer, and with others."""
    with visit.connect() as connection:
        reply = visit.ask(connection, ["Range: bytes=0-1023"])
        if not visit.read(reply) or not reply.is_media:
            return
        tag, date = reply.fields.get("etag"), reply.fields.get("last-modified")
        known = [f"If-None-Match: {tag}", f"If-Range: {tag}\r\nRange: bytes=100-", "If-None-Match: *"] if tag else []
        known += [f"If-Modified-Since: {date}", f"If-Range: {date}\r\nRange: bytes=100-"] if date else []
        for field in visit.random.sample(known, len(known)) + ['If-Range: "another"\r\nRange: bytes=100-']:
            if not visit.read(visit.ask(connection, [field])):
                return


def heads(visit):
    with visit.connect() as connection:
        for _ in range(3):
            reply = visit.ask(connection, method="HEAD")
            visit.soak.count(f"status {reply.status}")
            if reply.is_media and reply.status == 200 and reply.fields.get("content-length", str(visit.size)) != str(visit.size):
                raise Wrong(f"HEAD: Content-Length {reply.fields['content-length']} of {visit.size}")


def cached_only(visit):
    """Only what is stored: the answer is media or 504."""
    with visit.connect() as connection:
        reply = visit.ask(connection, ["Cache-Control: only-if-cached", f"Range: bytes={visit.random.randrange(visit.size)}-"])
        if reply.status == 504:
            visit.soak.count("status 504")
            reply.text()
        else:
            visit.may_end = True
            try:
                visit.read(reply, 1 * MIB)
            except Cut:
                pass  # what is not stored cannot be asked for


def pipelined(visit):
    """Several requests in one packet."""
    count = visit.random.randrange(2, 8)
    with visit.connect() as connection:
        starts = [visit.random.randrange(visit.size) for _ in range(count)]
        connection.socket.sendall(b"".join(
            f"GET {visit.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes={start}-{start + 70_000}\r\n\r\n".encode() for start in starts))
        for _ in starts:
            visit.soak.count("requests")
            if not visit.read(connection.answer()):
                return


def deserters(visit):
    """Connections that leave at once, in the midst of a head, or with an answer under way."""
    for _ in range(visit.random.randrange(1, 10)):
        connection = visit.connect()
        request = f"GET {visit.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        try:
            connection.socket.sendall(request[:visit.random.randrange(len(request) + 1)])
            if visit.random.random() < 0.5:
                connection.receive(1000)
        except OSError:
            pass
        connection.abort()


def noise(visit):
    """What is no HTTP, or hardly: it is answered with an error, or the connection is closed."""
    request = bytearray(f"GET {visit.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=1-9\r\nCache-Control: max-age=9\r\n\r\n".encode())
    for _ in range(visit.random.randrange(1, 6)):
        request[visit.random.randrange(len(request))] = visit.random.randrange(256)
    with visit.connect() as connection:
        connection.socket.sendall(bytes(request))
        connection.socket.shutdown(socket.SHUT_WR)
        try:
            while connection.receive():
                pass
        except OSError:
            pass


# Each with its share.
SHARES = {
    sequential: 10, seeks: 12, ranges: 10, multiparts: 5, crowd: 3, slow: 3, paused: 3, old_protocol: 4, conditional: 6, heads: 2, cached_only: 4,
    pipelined: 4, deserters: 4, noise: 4,
}
