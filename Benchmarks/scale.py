#!/usr/bin/env python3
"""What a cache of very many resources costs: start, first hit, eviction, listing, /metrics, memory.

    Benchmarks/scale.py [--resources 1000000] [--compare 50000] [--repetitions 5] [--directory DIR] [--json FILE]

Fills a cache's index with that many resources of one chunk each (and, beside it, a second cache with few, to compare with), and measures
a release build. The first HITS resources have real bytes; the files of the others are there but sparse, as a million times 64 KiB need
not be written to be found, listed and evicted. Prints a table; all times are medians. DIR needs some 3 GB and 1.1 million inodes.
"""
import argparse
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LENGTH = 65_536
OVERHEAD = 8192
HITS = 10_000
SEAL = 981_173_106  # the time of modification by which the store knows files that it left in order


class Proxy:
    """A proxy on a cache directory, from its start to its end."""

    def __init__(self, binary, cache, max_size):
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0", "--cache-dir", cache, "--max-size", str(max_size), "--min-free", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if "serves at http://" not in line:
            raise SystemExit(f"the proxy did not start: {line}{self.process.stderr.read()}")
        self.port = int(line.split("http://127.0.0.1:")[1].split(",")[0])
        connection = self.connection()
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
        self.start_seconds = time.perf_counter() - begun
        self.cache = cache

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        return {name: int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon", "RssFile")}

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)

    def set_limit(self, size):
        with open(os.path.join(self.cache, "control-token")) as file:
            token = file.read().strip()
        connection = self.connection()
        connection.request("PATCH", "/api/v1/cache", json.dumps({"max_size": size}),
                           {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == 200, body
        return body


def url(number):
    return f"https://media{number % 97}.example.org/library/season-{number // 1000}/episode-{number}.mp4"


def target(number):
    return "/https/" + url(number).removeprefix("https://")


def content(number):
    return random.Random(number).randbytes(LENGTH)


def generate(binary, cache, count):
    """Writes the rows and files of a closed cache."""
    Proxy(binary, cache, 20_000_000_000).stop()
    index = sqlite3.connect(os.path.join(cache, "index.sqlite"))
    index.execute("PRAGMA synchronous = OFF")
    fields = json.dumps([["Content-Type", "video/mp4"], ["ETag", '"0123456789abcdef"'], ["Last-Modified", "Sat, 01 Aug 2026 10:00:00 GMT"]])
    session = index.execute("SELECT value FROM meta WHERE name = 'session'").fetchone()[0]
    now = int(time.time() * 1e6)
    # In the order of their tables, and the other orders at the end: a tenth of the time.
    orders = index.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    for name, _ in orders:
        index.execute(f"DROP INDEX {name}")
    numbers = sorted((number * 0x9E3779B97F4A7C15 % (1 << 47) << 16 | 0x7777, number) for number in range(count))
    # Those with bytes were read last, so that they are evicted last.
    access = [now - number * 1_000_000 for number in range(count)]
    index.executemany("INSERT INTO resource (id, key, pinned, hits, last_access, cached) VALUES (?, ?, 0, ?, ?, ?)",
                      ((number + 1, url(number), number % 50, access[number], LENGTH) for number in range(count)))
    index.executemany(
        "INSERT INTO generation (id, resource, length, status, fields, final_url, chunk_size, stored_at, overhead) VALUES (?, ?, ?, 200, ?, ?, 65536, ?, ?)",
        ((identifier, number + 1, LENGTH, fields, url(number), access[number] // 1_000_000, OVERHEAD) for identifier, number in numbers))
    index.executemany(
        "INSERT INTO extent (generation, ordinal, present, checksums, last_access, session, pinned) VALUES (?, 0, 1, ?, ?, ?, 0)",
        ((identifier, number.to_bytes(8, "little"), access[number], session) for identifier, number in numbers))
    for _, sql in orders:
        index.execute(sql)
    index.execute("INSERT OR REPLACE INTO meta VALUES ('data_bytes', ?)", (count * (LENGTH + OVERHEAD),))
    index.commit()
    index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    index.close()
    for identifier, number in numbers:
        make_file(cache, f"{identifier:016x}", number, now)
    return os.path.getsize(os.path.join(cache, "index.sqlite"))


def make_file(cache, name, number, now):
    shard = os.path.join(cache, "data", name[:2])
    os.makedirs(shard, 0o700, exist_ok=True)
    descriptor = os.open(os.path.join(shard, name), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    if number < HITS:
        os.write(descriptor, content(number))
    else:
        os.ftruncate(descriptor, LENGTH)
    os.utime(descriptor, ns=(now * 1000, SEAL * 10**9))
    os.close(descriptor)


def get(connection, number):
    begun = time.perf_counter()
    connection.request("GET", target(number))
    answer = connection.getresponse()
    body = answer.read()
    seconds = time.perf_counter() - begun
    assert answer.status == 200 and answer.getheader("Cache-Status", "").startswith("reelcache; hit"), (answer.status, answer.getheaders())
    assert body == content(number), f"wrong bytes of {number}"
    return seconds


def scrape(connection):
    """Milliseconds until the numbers for Prometheus have arrived."""
    begun = time.perf_counter()
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read()
    milliseconds = (time.perf_counter() - begun) * 1e3
    assert answer.status == 200 and b"reelcache_cache_open_resources" in text, text[:200]
    return milliseconds


def command(binary, *arguments):
    begun = time.perf_counter()
    outcome = subprocess.run([binary, *arguments], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return time.perf_counter() - begun, outcome.stdout


def measure(binary, cache, count, repetitions):
    size = count * (LENGTH + OVERHEAD) * 2 + 10_000_000_000
    samples = {}

    def note(name, value):
        samples.setdefault(name, []).append(value)

    for repetition in range(repetitions):
        proxy = Proxy(binary, cache, size)
        note("start after an orderly end, s", proxy.start_seconds)
        note("resident, idle, MB", proxy.resident()["VmRSS"] / 1e6)
        note("first hit of the process, ms", get(proxy.connection(), repetition) * 1e3)
        others = random.Random(repetition).sample(range(100, min(count, HITS)), 200)
        connection = proxy.connection()
        note("first hit of a resource, p50 of 200, ms", statistics.median(get(connection, number) for number in others) * 1e3)
        note("/metrics, first of the process, ms", scrape(connection))
        note("/metrics, p50 of 50, ms", statistics.median(scrape(connection) for _ in range(50)))
        for order in ("recent", "size", "hits", "name"):
            seconds, text = command(binary, "ls", "--limit", "20", "--sort", order, "--cache-dir", cache)
            note(f"ls --limit 20 --sort {order}, through the proxy, s", seconds)
        seconds, text = command(binary, "ls", "--limit", "20", "--filter", f"episode-{HITS // 2}.", "--cache-dir", cache)
        assert url(HITS // 2) in text
        note("ls --limit 20 --filter, through the proxy, s", seconds)
        proxy.stop()
        note("ls --limit 20, alone, s", command(binary, "ls", "--limit", "20", "--cache-dir", cache)[0])
        proxy = Proxy(binary, cache, size)
        # One round of eviction, of some 700 extents. The store keeps some room free below the limit: that is made first.
        report = proxy.set_limit(size)
        reached = proxy.set_limit(report["size"])
        begun = time.perf_counter()
        after = proxy.set_limit(reached["size"] - 50_000_000)
        seconds = time.perf_counter() - begun
        evicted = reached["resources"] - after["resources"]
        assert evicted > 0, (report, reached, after)
        note("eviction round, extents", evicted)
        note("eviction, µs for each extent", seconds / evicted * 1e6)
        assert after["size"] <= after["max_size"], after
        proxy.set_limit(size)
        proxy.stop()
    proxy = Proxy(binary, cache, size)
    connection = proxy.connection()
    begun = time.perf_counter()
    hits = min(HITS, count)
    for number in range(hits):
        get(connection, number)
    note(f"{hits} distinct hits, s", time.perf_counter() - begun)
    resident = proxy.resident()
    note(f"resident after {hits} distinct hits, MB", resident["VmRSS"] / 1e6)
    note("of these its own, MB", resident["RssAnon"] / 1e6)
    # At the end: what a killed proxy leaves is verified, and these rows have no checksums.
    for _ in range(repetitions):
        proxy.stop(signal.SIGKILL)
        proxy = Proxy(binary, cache, size)
        note("start after kill -9, s", proxy.start_seconds)
    proxy.stop()
    return {name: statistics.median(values) for name, values in samples.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resources", type=int, default=1_000_000)
    parser.add_argument("--compare", type=int, default=50_000, help="resources of the small cache")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--directory", default=os.environ.get("REELCACHE_BENCH_DIR"))
    parser.add_argument("--json", help="also write the medians to a file")
    options = parser.parse_args()
    binary = os.environ.get("REELCACHE", os.path.join(ROOT, ".build/release/reelcache"))
    if not os.access(binary, os.X_OK):
        sys.exit("scale: no release build; run swift build -c release, or set REELCACHE")
    directory = tempfile.mkdtemp(prefix="reelcache-scale-", dir=options.directory)
    columns = {}
    try:
        for count in (options.compare, options.resources):
            cache = os.path.join(directory, str(count))
            begun = time.perf_counter()
            size = generate(binary, cache, count)
            print(f"scale: {count} resources made in {time.perf_counter() - begun:.0f} s, index {size / 1e6:.0f} MB", file=sys.stderr)
            columns[count] = {"index, MB": size / 1e6} | measure(binary, cache, count, options.repetitions)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"| | {options.compare:,} resources | {options.resources:,} resources | ratio |\n|---|---|---|---|")
    small, large = columns[options.compare], columns[options.resources]
    for name, value in large.items():
        print(f"| {name} | {small[name]:.3g} | {value:.3g} | {value / small[name]:.2f} |" if name in small else f"| {name} | | {value:.3g} | |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(columns, file, indent=2)


if __name__ == "__main__":
    main()
