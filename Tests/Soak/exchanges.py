#!/usr/bin/env python3
"""Fuzzes whole exchanges: clients, one proxy, and origins, with requests and answers mutated on both sides.

Each exchange follows from the seed and its number. Mutated answers are those of URLs of their own, and their bodies are a marker; among them
players read media of two origins, and every byte of those is compared: nothing of a mutated answer may turn up there. What a client that was
not mutated gets has to be sound HTTP. Ends with 1 on a wrong byte, an unsound answer, a proxy that does not answer in time, or one that died.
"""
import argparse
import os
import random
import shutil
import socket
import sys
import threading
import time
from collections import Counter
from email.utils import formatdate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import media  # noqa: E402
import plays  # noqa: E402
import soak  # noqa: E402
from origin import Answer, Origin  # noqa: E402
from player import Connection, Cut, Wrong  # noqa: E402

MARKER = b"MUTATED!"
NUMBERS = ["0", "1", "-1", "7", "65536", "4294967296", "1152921504606846976", "1152921504606846977", "9223372036854775806", "9223372036854775807",
           "9223372036854775808", "18446744073709551616", "9" * 40, "1e9", "0x10", "+5", " 5", "5,5", "5, 6", ""]
DATES = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "0", "soon"]
CODINGS = ["chunked", "gzip, chunked", "chunked, chunked", "identity", "gzip", "Chunked", "chunked;q=1", ", chunked", "x"]


def mutate(random, data):
    """A few changes to bytes."""
    data = bytearray(data)
    for _ in range(random.choice([0, 1, 1, 2, 3, 8])):
        at = random.randrange(len(data) + 1)
        match random.randrange(6):
            case 0 if at < len(data): data[at] = random.randrange(256)
            case 1: del data[at:at + random.randrange(1, 9)]
            case 2: data[at:at] = data[at:at + random.randrange(1, 40)]
            case 3: data[at:at] = random.choice(NUMBERS).encode()
            case 4: data[at:at] = random.choice([b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n ", b"\r\n\r\n", b",", b";", b"\xff"])
            case _: data[at:at] = bytes([random.randrange(256)]) * random.choice([1, 300, 9000])
    return bytes(data)


def some_range(random):
    number = lambda: random.choice(NUMBERS + ["100", "5000", "70000"])  # noqa: E731
    return random.choice([f"bytes={number()}-{number()}", f"bytes={number()}-", f"bytes=-{number()}", f"bytes=0-0,{number()}-{number()},-{number()}", f"items={number()}"])


def request_fields(random):
    """Fields that a request may have, sound or not."""
    fields = []
    for name, values in {
        "Range": [some_range(random)], "If-Range": DATES + ['"a"', 'W/"a"'], "If-None-Match": ["*", '"a"', '"a", W/"b"', "a"], "If-Match": ["*", '"a"'],
        "If-Modified-Since": DATES, "If-Unmodified-Since": DATES,
        "Cache-Control": ["no-cache", "no-store", "only-if-cached", f"max-age={random.choice(NUMBERS)}", "max-stale", f"min-fresh={random.choice(NUMBERS)}"],
        "Connection": ["close", "keep-alive", "range", "upgrade", "a," * 50], "Accept-Encoding": ["gzip", "identity"], "Accept-Language": ["de", "en"],
        "Authorization": ["Basic YTpi"], "Cookie": ["a=b"], "Origin": ["https://page.example", "null"], "TE": ["trailers"], "Expect": ["100-continue"],
        "Max-Forwards": NUMBERS, "Via": ["1.1 reelcache", "1.0 a"], "Pragma": ["no-cache"], "Content-Length": NUMBERS[:4], "Upgrade": ["websocket"],
    }.items():
        if random.random() < 0.15:
            fields.append(f"{name}: {random.choice(values)}")
    random.shuffle(fields)
    return fields


class MutatedOrigin(Origin):
    """Answers below /mutated/ with mutated answers, and all else with media."""

    def answer(self, connection, head):
        target = head.split(b" ")[1].decode("latin-1")
        self.requests += 1
        return self.send_mutated(connection, target, head) if target.startswith("/mutated/") else super().answer(connection, head)

    def send_mutated(self, connection, target, head):
        # Another answer to each request for a URL, so that what is known of it is contradicted.
        chance = random.Random(f"{target} {self.requests}")
        size = chance.choice([0, 1, 100, 65536, 200_000])
        body = (MARKER * (size // 8 + 1))[:size]
        asked = b"\r\nRange:" in head or b"\r\nrange:" in head
        status = chance.choice([206, 206, 206, 200, 416] if asked else [200, 200, 200, 206]) if chance.random() < 0.8 else chance.randrange(100, 1000)
        first = chance.choice(["0", "0", "65536", *NUMBERS])
        last = chance.choice([str(max(0, size - 1)), *NUMBERS])
        values = {
            "Content-Length": [str(size)] * 8 + NUMBERS, "Content-Range": [f"bytes 0-{max(0, size - 1)}/{size}", f"bytes {first}-{last}/*",
                                                                         f"bytes {first}-{last}/{chance.choice(NUMBERS)}", f"bytes */{chance.choice(NUMBERS)}"],
            "ETag": ['"a"', 'W/"a"', '"b"', "a", '"'], "Last-Modified": DATES, "Date": DATES + [formatdate(usegmt=True)], "Expires": DATES, "Age": NUMBERS,
            "Cache-Control": ["no-store", "no-cache", "private", f"max-age={chance.choice(NUMBERS)}", f"stale-if-error={chance.choice(NUMBERS)}", "must-revalidate"],
            "Content-Type": ["video/mp4", "text/html", "multipart/byteranges; boundary=x", "a" * 300, ""], "Transfer-Encoding": CODINGS,
            "Content-Encoding": ["gzip", "identity", "br"], "Vary": ["*", "Accept-Language", "Origin, , Cookie"], "Connection": ["close", "keep-alive", "etag, x"],
            "Location": ["/mutated/x", "http://127.0.0.1:1/", "//a\x1b[2J", "file:///etc/passwd", "?"], "Retry-After": NUMBERS + DATES,
            "Accept-Ranges": ["bytes", "none"], "Trailer": ["X"], "Set-Cookie": ["a=b"], "Content-Disposition": ['attachment; filename="../x"'], "X-Folded": ["a\r\n b"],
            "WWW-Authenticate": ["Basic realm=x"], "Keep-Alive": ["timeout=" + chance.choice(NUMBERS)], "Alt-Svc": ['h2=":1"'],
        }
        often = {"Content-Length": 0.8, "Content-Range": 0.7 if asked else 0.2, "ETag": 0.5, "Last-Modified": 0.4}
        fields = [f"{name}: {chance.choice(choices)}" for name, choices in values.items() if chance.random() < often.get(name, 0.12)]
        if chance.random() < 0.02:
            fields += [f"X-{number}: {'a,' * chance.choice([1, 100])}" for number in range(chance.choice([50, 700]))]
        chance.shuffle(fields)
        if any("chunked" in field for field in fields):
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        answer = "\r\n".join([f"HTTP/1.{chance.choice('1110')} {status} Said", *fields]).encode("latin-1") + b"\r\n\r\n"
        if chance.random() < 0.3:
            answer = mutate(chance, answer)
        if chance.random() < 0.1:
            body = mutate(chance, body) if chance.random() < 0.5 else body[:chance.randrange(len(body) + 1)]
        data = answer + body
        if chance.random() < 0.1:
            data = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * chance.choice([1, 40]) + data
        cut = chance.randrange(1, len(data) + 1) if chance.random() < 0.2 else len(data)
        connection.sendall(data[:cut])


class Exchanges(soak.Soak):
    """The proxy and its origins are those of the soak; what goes on is another."""

    def __init__(self, options):
        super().__init__(options)
        self.faulty.close()
        self.faulty = MutatedOrigin("127.0.0.2", 0, 10**9, 1, options.seed)
        self.number = 0

    def next_number(self):
        with self.lock:
            self.number += 1
            return self.number

    def run_exchanges(self):
        while not self.stopping.is_set():
            number = self.next_number()
            chance = random.Random(f"{self.seed} {number}")
            try:
                if number % 25 == 0:
                    self.attend(chance.choice([plays.ranges, plays.sequential, plays.multiparts]),
                                plays.Visit(self, chance.getrandbits(48), chance.choice(media.targets("seg")), chance.random() < 0.5))
                else:
                    self.exchange(chance, number)
            except Wrong as error:
                self.fail(f"exchange {number} of seed {self.seed}: {error}")
            except (Cut, OSError) as error:
                self.count(f"ended by {type(error).__name__}")
                if isinstance(error, TimeoutError):
                    self.fail(f"exchange {number} of seed {self.seed}: no answer in time")
                if isinstance(error, ConnectionRefusedError):
                    return

    def exchange(self, chance, number):
        """One request, or a few for the same URL, with sound framing or without."""
        # Few URLs, so that answers meet what is stored of others.
        target = f"/mutated/{chance.randrange(40)}-{number // 2000}"
        path = f"/http/127.0.0.2:{self.faulty.port}{target}"
        method = chance.choice(["GET"] * 8 + ["HEAD", "OPTIONS", "POST", "x"])
        with Connection(self.port, self.pace) as connection:
            connection.socket.settimeout(40)
            for _ in range(chance.choice([1, 1, 2, 4])):
                fields = request_fields(chance)
                is_sound = method in ("GET", "HEAD") and not any(field.startswith(("Content-Length", "Expect")) for field in fields)
                request = "\r\n".join([f"{method} {path} HTTP/1.{chance.choice('1110')}", "Host: 127.0.0.1", *fields]).encode() + b"\r\n\r\n"
                if chance.random() < 0.4:
                    request, is_sound = mutate(chance, request), False
                connection.socket.sendall(request)
                self.count("exchanges")
                if not is_sound:
                    connection.socket.shutdown(socket.SHUT_WR)
                    while connection.receive():
                        pass
                    return
                reply = connection.answer(method)
                self.count(f"status {reply.status}")
                length = sum(map(len, reply.pieces()))
                # What an origin says to HEAD is passed on as it is, and has no bytes that could be taken for others.
                if method == "GET" and reply.status == 206 and "content-range" not in reply.fields and not reply.fields.get("content-type", "").startswith("multipart/"):
                    raise Wrong(f"206 without Content-Range; asked with {fields}, answered with {reply.fields}")
                if reply.left is None or "close" in reply.fields.get("connection", "") or length is None:
                    return

    def run(self):
        self.start()
        self.slowest = 0.0
        print(f"fuzz: exchanges with seed {self.seed}, proxy {self.process.pid} at port {self.port}", flush=True)
        began = time.monotonic()
        threads = [threading.Thread(target=self.guarded, args=(run,), daemon=True)
                   for run in [self.run_exchanges] * self.options.players + [self.run_polls]]
        for thread in threads:
            thread.start()
        while time.monotonic() - began < self.options.time and self.process.poll() is None:
            time.sleep(1)
        if self.process.poll() is not None:
            self.fail(f"the proxy has died with {self.process.returncode} near exchange {self.number}; the end of its log:\n{soak.tail(self.log)}")
        self.stopping.set()
        for thread in threads:
            thread.join(timeout=60)
        self.end()
        counts = Counter(self.counts)
        print("answers: " + ", ".join(f"{name.split()[1]} {number}" for name, number in sorted(counts.items()) if name.startswith("status ")))
        print(f"fuzz: {counts['exchanges']} exchanges in {time.monotonic() - began:.0f} s, {counts['plays']} plays and {counts['bytes']} bytes compared, "
              f"{counts['cut'] + counts['ended by Cut']} cut, seed {self.seed}, {len(self.failures)} failed{': FAILED' if self.failures else ''}", flush=True)
        if not self.failures:
            shutil.rmtree(self.directory, ignore_errors=True)
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--for", dest="time", type=soak.span, default=soak.span("1m"), metavar="TIME")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("REELCACHE_SEED") or random.randrange(10**6)))
    parser.add_argument("--players", type=int, default=6, metavar="N", help="exchanges at once")
    parser.add_argument("--cores", type=float, default=2)
    parser.add_argument("--binary", required=True)
    options = parser.parse_args()
    options.rate, options.faults, options.threads, options.dir, options.keep = 10**9, 0, 2, None, False
    sys.exit(Exchanges(options).run())


if __name__ == "__main__":
    main()
