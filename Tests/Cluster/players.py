"""Players that believe nothing: each byte, length and range is checked. They behave as players do: whoever is cut off asks for the rest."""
import asyncio
import itertools
import socket
import time

import films

# How often a player asks for the rest of a film before it gives up.
PATIENCE = 5
# Of the films that players compare with. The origin has version 1.
VERSION = 1


class Wrong(Exception):
    """An answer that no retry makes good."""


class Cut(Exception):
    """An answer that ended before its announced length, where the player can see that."""


class Tally:
    """What players report. Times are in seconds, by the event loop's clock."""

    def __init__(self):
        self.plays = self.requests = self.bytes = self.cuts = self.failures = 0
        self.wrong, self.first_bytes, self.wanted = [], [], {}

    def want(self, path, start, end):
        self.wanted.setdefault(path, []).append((start, end))

    def distinct(self):
        """The bytes in the union of all wanted ranges."""
        return sum(union(parts) for parts in self.wanted.values())

    def slowest(self, since, until=float("inf")):
        """The slowest first byte of the requests that began meanwhile."""
        return max((seconds for began, seconds in self.first_bytes if since <= began < until), default=0.0)


def union(parts):
    total = reached = 0
    for start, end in sorted(parts):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


class Player:
    """One viewer with a connection that is kept, and an address of its own."""

    def __init__(self, tally, server, source, host="media.example"):
        self.tally, self.server, self.source, self.host = tally, server, source, host
        self.reader = self.writer = None
        # Each viewer has links of their own, which mean the same film.
        self.query = f"?expires={hash(source) % 10**9}&token={source}" if hash(source) % 2 else f"?token={source}"

    async def play(self, path, start=0, end=None, pace=0, pause=0):
        """Reads a range of a film, asking again where it is cut off. Everything wrong is in the tally.

        - pace: bytes per second.
        - pause: seconds after the first bytes.
        """
        size = films.size(path)
        stop = end or size
        self.tally.plays += 1
        self.tally.want(path, start, stop)
        for attempt in itertools.count():
            try:
                async for data in self.request(path, start, stop if end else None, size):
                    start += len(data)
                    await asyncio.sleep(pause)
                    pause = 0
                    if pace:
                        await asyncio.sleep(len(data) / pace)
                return
            except Wrong as error:
                self.tally.wrong.append(f"{path}: {error}")
                return self.close()
            except (Cut, OSError, asyncio.IncompleteReadError) as error:
                self.close()
                self.tally.cuts += 1
                if attempt == PATIENCE:
                    self.tally.failures += 1
                    self.tally.wrong.append(f"{path}: given up at {start}: {error!r}")
                    return
                # What was received counts; a player asks for the rest.

    async def request(self, path, start, end, size):
        """Pieces of a body, each of which has been compared."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(*self.server, local_addr=(self.source, 0), limit=films.PIECE)
            # As on a network where bytes are on their way for long: what a player hasn't read is mostly at the node.
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, films.PIECE)
        began = time.monotonic()
        wanted = f"Range: bytes={start}-{end - 1 if end else ''}\r\n" if start or end else ""
        self.writer.write(f"GET {path}{self.query} HTTP/1.1\r\nHost: {self.host}\r\n{wanted}\r\n".encode())
        self.tally.requests += 1
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        self.check(head, start, end or size, size, bool(wanted))
        async for data in self.body(path, start, end or size):
            if began:
                self.tally.first_bytes.append((began, time.monotonic() - began))
                began = None
            yield data
        if "connection: close" in head:
            self.close()

    def check(self, head, start, end, size, partial):
        status = head.split(" ", 2)[1]
        if status != ("206" if partial else "200"):
            # Whoever could not be served sees an error; that is not a wrong byte, but a failed request.
            self.tally.failures += 1
            raise Wrong(f"status {status}: {head.splitlines()[0]}")
        if f"content-length: {end - start}\r\n" not in head:
            raise Wrong(f"another length than {end - start}: {head}")
        if partial and f"content-range: bytes {start}-{end - 1}/{size}\r\n" not in head:
            raise Wrong(f"another range than {start}-{end - 1}: {head}")

    async def body(self, path, start, end):
        while start < end:
            data = await self.reader.read(min(films.PIECE, end - start))
            if not data:
                raise Cut(f"ended at {start} of {end}")
            if data != films.piece(path, start, len(data), VERSION):
                raise Wrong(f"wrong bytes between {start} and {start + len(data)}")
            self.tally.bytes += len(data)
            start += len(data)
            yield data

    def close(self):
        if self.writer is not None:
            self.writer.transport.abort()
        self.reader = self.writer = None
