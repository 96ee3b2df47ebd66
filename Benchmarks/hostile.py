#!/usr/bin/env python3
"""What hostile origins and small limits cost the proxy: memory, threads, descriptors, the time that others wait.

    REELCACHE=.build/release/reelcache Benchmarks/hostile.py [--only heads,names] [--cache-dir DIR] [--json FILE]

    heads       600 URLs whose answers have heads of 64 KiB, or as long as is taken, in tiny fields: own memory after them
    connection  a head with `Connection: a,a,a,...` of 64 KiB, or as long as is taken: how long a cached hit beside it takes at most
    names       1,200 requests at once for names whose server does not answer: threads and descriptors while they wait, and how long a cached hit
                beside them takes at most (needs root: the proxy gets a resolv.conf of its own)
    announced   127 URLs that announce 1 TiB each, then 50 that are small: how many of those are answered; address space, own memory
    faroff      20 ranges from far within 1 TiB that is not to be stored, read while their transfers stay open: own memory
    players     600 files under `ulimit -n 1024` and 8 loops, then 330 players at once, each of a new file whose origin takes a second to answer: how
                many are answered
    small       8,000 files of 3,000 bytes under a limit of 16 MB: the most that is allocated on the disk, unlinked files that are open included
    unread      600 players at once that do not read: answers of 8 MB that are not to be stored, errors of 8 MB, answers to POST of 8 MB: own memory
                beside them, what `/stats` counts as in transit, and descriptors besides those of the players
    mapped      a file of 1 GiB is read twice: own memory and PSS at once, and PSS ten seconds later

Each row begins with an empty cache; --cache-dir says on which disk (its file system decides what `small` takes). REELCACHE may name several
binaries, separated by colons: each row is measured with one after the other.
"""
import argparse
import atexit
import concurrent.futures
import json
import os
import re
import resource
import shutil
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path

import bench
from bench import BIG, DATA, PORT_B, RUN, TOOLS, Service

PORT = 28023
TIB = 1 << 40


class HostileOrigin:
    """Answers by path, each connection on a thread of its own."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]

    def start(self):
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
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
            except OSError:
                pass

    def answer(self, connection, head):
        """Whether the connection stays."""
        kind, number = re.match(rb"(?:GET|POST) /(\w+)/(\d+)", head).groups()
        return getattr(self, kind.decode())(connection, int(number), head)

    def file(self, connection, size, fields="", body=None):
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nCache-Control: max-age=9999\r\nETag: \"a\"\r\n"
                           f"Content-Type: video/mp4\r\n{fields}\r\n".encode() + (bytes(size) if body is None else body))
        return body is None

    def small(self, connection, number, head):
        return self.file(connection, 3000)

    def middle(self, connection, number, head):
        return self.file(connection, 20_000)

    def heads(self, connection, number, head):
        # `number` is how long a head is taken.
        count = number // 11
        return self.file(connection, 1000, "".join(f"X{index:05x}: b\r\n" for index in range(count)))

    def connection(self, connection, number, head):
        return self.file(connection, 1000, "Connection: " + "a," * (number // 2) + "a\r\n")

    def announced(self, connection, number, head):
        self.file(connection, TIB, body=bytes(1 << 20))
        # As one does that is slow: the connection stays.
        connection.recv(1)
        return False

    def faroff(self, connection, number, head):
        first, last = map(int, re.search(rb"[Rr]ange: bytes=(\d+)-(\d+)", head).groups())
        connection.sendall(f"HTTP/1.1 206 Partial Content\r\nContent-Length: {last - first + 1}\r\nContent-Range: bytes {first}-{last}/{TIB}\r\n"
                           "Cache-Control: no-store\r\n\r\n".encode() + bytes((last - first) // 2))
        connection.recv(1)
        return False

    def unread(self, connection, number, head, status="200 OK"):
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 8000000\r\nCache-Control: no-store\r\n\r\n".encode() + bytes(8_000_000))
        return True

    def error(self, connection, number, head):
        return self.unread(connection, number, head, "403 Forbidden")

    def slow(self, connection, number, head):
        time.sleep(1)
        return self.file(connection, 20_000)


def far(number):
    """Where a range begins."""
    return TIB - (number + 1) * (TIB // 25)


class Proxy:
    """One with an empty cache."""

    def __init__(self, binary, options, *flags, files=None, threads=2, names=None):
        run = bench.fresh(RUN / "hostile-proxy")
        self.cache = Path(options.cache_dir or run) / "hostile-cache"
        shutil.rmtree(self.cache, ignore_errors=True)
        argv = [binary, "serve", "--listen", f"127.0.0.1:{PORT}", "--cache-dir", str(self.cache), "--min-free", "100MB", "--allow", "127.0.0.1",
                "--threads", str(threads), "--log-level", "critical", *flags]
        if files:
            argv = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *argv]
        if names:
            argv = ["unshare", "-m", "sh", "-c", f'mount --bind {names} /etc/resolv.conf; exec "$@"', "sh", *argv]
        self.service = Service("proxy", argv, PORT, run)
        self.pid = self.service.pid

    def stop(self):
        self.service.stop()
        shutil.rmtree(self.cache, ignore_errors=True)

    def get(self, target, fields="", timeout=60):
        """The status; 0 where the connection ends before there is one, or before the body has ended."""
        try:
            with socket.create_connection(("127.0.0.1", PORT), timeout) as player:
                player.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n{fields}Connection: close\r\n\r\n".encode())
                data = b""
                while chunk := player.recv(1 << 20):
                    if len(data) < 100_000:
                        data += chunk
            return int(data.split(b" ", 2)[1]) if data else 0
        except (OSError, ValueError, IndexError):
            return 0

    def memory(self):
        """Own (anonymous and shared) and proportional memory, in MB."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        number = lambda name: int(re.search(rf"^{name}:\s+(\d+)", rollup, re.M)[1]) * 1024 / 1e6  # noqa: E731
        return {"own MB": round(number("Pss_Anon") + number("Pss_Shmem"), 1), "PSS MB": round(number("Pss"), 1)}

    def counts(self):
        return {"threads": len(os.listdir(f"/proc/{self.pid}/task")), "descriptors": len(os.listdir(f"/proc/{self.pid}/fd"))}

    def space(self):
        return round(int(Path(f"/proc/{self.pid}/statm").read_text().split()[0]) * 4096 / 1e9, 1)

    def allocated(self):
        """What the cache takes, in MB: its directory, and unlinked files that are open."""
        total = 0
        for folder, _, names in os.walk(self.cache):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except OSError:
                    pass
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                if "(deleted)" in os.readlink(f"/proc/{self.pid}/fd/{name}"):
                    total += os.stat(f"/proc/{self.pid}/fd/{name}").st_blocks * 512
            except OSError:
                pass
        return total / 1e6


def many(calls, workers):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda call: call(), calls))


def longest(proxy, base, kind):
    """The longest head of a kind that is taken, to 64 KiB."""
    return next((size for size in (65_000, 60_000, 31_000, 15_000, 7_000, 2_500, 1_000) if proxy.get(f"{base}/{kind}/{size}?probe") == 200), 0)


def heads(binary, options, origin, base):
    proxy = Proxy(binary, options)
    size = longest(proxy, base, "heads")
    before = proxy.memory()["own MB"]
    answers = many([lambda number=number: proxy.get(f"{base}/heads/{size}?{number}") for number in range(600)], 8)
    row = {"head bytes": size, "answered": answers.count(200), "own MB more": round(proxy.memory()["own MB"] - before, 1)}
    proxy.stop()
    return row


def connection(binary, options, origin, base):
    proxy = Proxy(binary, options, threads=1)
    size = longest(proxy, base, "connection")
    proxy.get(f"{base}/small/1")
    worst, done = 0.0, threading.Event()

    def hits():
        nonlocal worst
        while not done.is_set():
            begin = time.time()
            proxy.get(f"{base}/small/1")
            worst = max(worst, time.time() - begin)
    watcher = threading.Thread(target=hits)
    watcher.start()
    for number in range(5):
        proxy.get(f"{base}/connection/65000?{number}")
        proxy.get(f"{base}/connection/{size}?{number}")
    done.set()
    watcher.join()
    proxy.stop()
    return {"head bytes taken": size, "slowest hit s": round(worst, 3)}


def names(binary, options, origin, base):
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.9", 53))
    settings = RUN / "resolv.conf"
    settings.write_text("nameserver 127.0.0.9\n")
    proxy, most, players, worst = Proxy(binary, options, names=settings), {"threads": 0, "descriptors": 0}, [], 0.0
    proxy.get(f"{base}/small/1")
    for number in range(1200):
        player = socket.create_connection(("127.0.0.1", PORT), 10)
        player.sendall(f"GET /http/dead-{number}.example/a.mp4 HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
        players.append(player)
        if number % 20 == 0:
            most = {name: max(count, most[name]) for name, count in proxy.counts().items()}
            begin = time.time()
            proxy.get(f"{base}/small/1")
            worst = max(worst, time.time() - begin)
    most = {name: max(count, most[name]) for name, count in proxy.counts().items()}
    for player in players:
        player.close()
    proxy.stop()
    silent.close()
    return {**most, "of which players": 1200, "slowest hit s": round(worst, 3)}


def announced(binary, options, origin, base):
    proxy = Proxy(binary, options, "--max-size", "2GB", "--fill", "read")
    before = proxy.space()
    players = []
    for number in range(127):
        player = socket.create_connection(("127.0.0.1", PORT), 10)
        player.sendall(f"GET {base}/announced/{number} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
        player.settimeout(10)
        try:
            player.recv(65536)
        except OSError:
            pass
        players.append(player)
    row = {"address space GB more": round(proxy.space() - before, 1), **proxy.memory()}
    row["of 50 small answered"] = many([lambda number=number: proxy.get(f"{base}/small/{number}") for number in range(50)], 4).count(200)
    for player in players:
        player.close()
    proxy.stop()
    return row


def faroff(binary, options, origin, base):
    proxy = Proxy(binary, options, "--fill", "read")
    before, players = proxy.memory()["own MB"], []
    for number in range(20):
        player = socket.create_connection(("127.0.0.1", PORT), 10)
        player.sendall(f"GET {base}/faroff/{number} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nRange: bytes={far(number)}-{far(number) + 99_999}\r\n\r\n".encode())
        players.append(player)
    answers = [player.recv(1000).startswith(b"HTTP/1.1 206") for player in players]
    row = {"answered": answers.count(True), "own MB more": round(proxy.memory()["own MB"] - before, 1)}
    for player in players:
        player.close()
    proxy.stop()
    return row


def players(binary, options, origin, base):
    proxy = Proxy(binary, options, files=1024, threads=8)
    many([lambda number=number: proxy.get(f"{base}/middle/{number}") for number in range(600)], 8)
    answers = many([lambda number=number: proxy.get(f"{base}/slow/{number}") for number in range(330)], 330)
    row = {"of 330 answered": answers.count(200), "503": answers.count(503), "cut": answers.count(0), **proxy.counts()}
    proxy.stop()
    return row


def small(binary, options, origin, base):
    proxy, most, done = Proxy(binary, options, "--max-size", "16MB"), 0.0, threading.Event()

    def watch():
        nonlocal most
        while not done.is_set():
            most = max(most, proxy.allocated())
            done.wait(0.05)
    watcher = threading.Thread(target=watch)
    watcher.start()
    answers = many([lambda number=number: proxy.get(f"{base}/small/{number}") for number in range(8000)], 4)
    done.set()
    watcher.join()
    row = {"answered": answers.count(200), "most allocated MB": round(most, 1), "at the end MB": round(proxy.allocated(), 1)}
    proxy.stop()
    return row


def unread(binary, options, origin, base):
    row = {}
    for kind, method, target in (("not stored", "GET", f"{base}/unread"), ("errors", "GET", f"{base}/error"), ("POST", "POST", "/m/unread")):
        proxy, readers = Proxy(binary, options, "--mount", f"/m/=http://127.0.0.1:{origin.port}/"), []
        before = proxy.memory()["own MB"]
        for number in range(600):
            player = socket.socket()
            player.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            player.connect(("127.0.0.1", PORT))
            player.sendall(f"{method} {target}/{number} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
            readers.append(player)
        former, now = -1, 0
        while now != former:
            time.sleep(2)
            former, now = now, proxy.memory()["own MB"]
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/stats") as answer:
            transit = json.load(answer).get("transit", {}).get("bytes")
        row[kind] = {"own MB more": round(now - before, 1), "in transit MB": transit and round(transit / 1e6, 1),
                     "descriptors besides": proxy.counts()["descriptors"] - len(readers)}
        for player in readers:
            player.close()
        proxy.stop()
    return row


def mapped(binary, options, origin, base):
    bench.prepare([BIG])
    Service("origin", [str(TOOLS / "slorigin"), "--port", str(PORT_B), "--root", str(DATA), "--log", str(RUN / "requests.log")], PORT_B, RUN)
    proxy = Proxy(binary, options, "--max-size", "8GB")
    target = f"/http/127.0.0.1:{PORT_B}/{BIG[0]}"
    statuses = [proxy.get(target), proxy.get(target)]
    row = {"answered": statuses.count(200), **proxy.memory()}
    time.sleep(10)
    row["PSS MB 10 s later"] = proxy.memory()["PSS MB"]
    proxy.stop()
    bench.stop_all()
    return row


ROWS = [heads, connection, names, announced, faroff, players, small, unread, mapped]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="ROW,ROW", help=", ".join(row.__name__ for row in ROWS))
    parser.add_argument("--cache-dir", metavar="DIR")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if "REELCACHE" not in os.environ:
        sys.exit("name the binary of a release build in REELCACHE")
    atexit.register(bench.stop_all)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    origin = HostileOrigin()
    origin.start()
    results = []
    for row in ROWS:
        if options.only and row.__name__ not in options.only.split(","):
            continue
        for binary in os.environ["REELCACHE"].split(":"):
            try:
                result = row(binary, options, origin, f"/http/127.0.0.1:{origin.port}")
            except (OSError, RuntimeError) as error:
                result = {"the proxy ended": str(error)}
                bench.stop_all()
            results.append({"row": row.__name__, "binary": binary, **result})
            print(f"{row.__name__:<11} {os.path.basename(binary):<16} " + ", ".join(f"{name}: {value}" for name, value in result.items()), flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
