#!/usr/bin/env python3
"""What others wait for while a hostile origin, page or client gives the proxy work, how much memory that takes, and whether the proxy ends.

    REELCACHE=.build/release/reelcache Benchmarks/beside.py [--only timeline,keys] [--seconds 10] [--json FILE]

Each row starts a proxy with one loop and an empty cache. Beside the input of the row, which goes on for some seconds, a process of its own
requests a cached file, /healthz and /api/v1/cache again and again, each on one connection. Printed are the longest wait for each, the process's own
memory above idle at its most and after (at most 70 s later, when freed memory has gone back to the system), and how long SIGTERM takes during the
input with a drain time of 2 s, and a second SIGTERM after it, with a drain time of an hour. What is beyond its limit is marked with !: a hit 20 ms,
the others 200 ms, memory 64 MB, SIGTERM 2.5 s, the second one 1 s. The row `nothing` is the machine alone: compare with it on a busy one.
"""
import argparse
import atexit
import gzip
import http.client
import itertools
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import bench
import hostile
from bench import RUN, Service

PORT = 28024
LIMITS = {"hit ms": 20, "healthz ms": 200, "cache ms": 200, "MB more": 64, "MB after": 64, "SIGTERM s": 2.5, "second s": 1, "answered s": 1}


# ---------------------------------------------------------------- documents

LONG = "http://127.0.0.1/" + "d" * 8000 + "/"


def mpd(inside, attributes='type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z" minimumUpdatePeriod="PT2S"'):
    return (f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {attributes} profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period id="0" start="PT0S">'
            f'<AdaptationSet mimeType="video/mp4">{inside}</AdaptationSet></Period></MPD>').encode()


def representations(count):
    return "".join(f'<Representation id="{index}" bandwidth="{index + 1}"/>' for index in range(count))


def timeline(count):
    template = ('<SegmentTemplate media="$RepresentationID$/$Time$.m4s" timescale="1000"><SegmentTimeline><S t="0" d="1000" r="-1"/></SegmentTimeline>'
                '</SegmentTemplate>')
    return mpd(template + representations(count))


def shared(kind):
    """64 KiB: half of it is what each of many representations inherits."""
    inside = {
        "timeline": '<SegmentTemplate media="$RepresentationID$/$Time$.m4s" timescale="1"><SegmentTimeline>' + "".join(
            f'<S d="{1 + index % 9}"/>' for index in range(3000)) + "</SegmentTimeline></SegmentTemplate>",
        "template": f'<SegmentTemplate media="{"$$" * 16000}$Number$" duration="2" timescale="1"/>',
        "list": '<SegmentList duration="2">' + '<SegmentURL media="a"/>' * 1500 + "</SegmentList>",
        "bases": "".join(f"<BaseURL>http://h{index}.example/{'b' * 3000}/</BaseURL>" for index in range(10)),
    }[kind]
    return mpd(inside + representations(750), 'type="static" mediaPresentationDuration="PT10H"')


def keys(kind):
    key = "".join(f'#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k{index}",KEYFORMAT="f{index}"\n' for index in range(16))
    each = {"keys": "", "parts": '#EXT-X-PART:DURATION=0.2,URI="p"\n' * 4, "hints": '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p"\n' * 4}[kind]
    head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n" + (key if kind == "keys" else "")
    return (head + f"{each}#EXTINF:2,\ns\n" * (2500 if kind == "keys" else 500)).encode()


def feed(kind):
    items = "".join(f'<item><title>{index}</title><enclosure url="{index}.mp3" type="audio/mpeg" length="1"/></item>' for index in range(1500))
    head = '<?xml version="1.0"?>'
    if kind == "attlist":
        attributes = "".join(f' a{index} CDATA "x"' for index in range(3000))
        return (f"{head}<!DOCTYPE rss [<!ATTLIST x{attributes}>]><rss><channel>" + "<x/>" * 9000 + items + "</channel></rss>").encode()
    base = f' xml:base="{LONG}"' if kind == "base" else ""
    return f"{head}<rss{base}><channel><title>t</title>{items}</channel></rss>".encode()


def stream(count):
    return ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n" + "".join(f"#EXTINF:2,\n{index}.ts\n" for index in range(count))
            + "#EXT-X-ENDLIST\n").encode()


DASH, HLS, RSS, PLS = "application/dash+xml", "application/vnd.apple.mpegurl", "application/rss+xml", "audio/x-scpls"
PADDED = 16 << 10
DOCUMENTS = {  # path without its number: type, body; made when first requested
    **{f"timeline{count}": (DASH, lambda count=count: timeline(count)) for count in (1, 20, 50)},
    **{f"shared-{kind}": (DASH, lambda kind=kind: shared(kind)) for kind in ("timeline", "template", "list", "bases")},
    **{f"long-{kind}": (HLS, lambda kind=kind: keys(kind)) for kind in ("keys", "parts", "hints")},
    **{f"feed-{kind}": (RSS, lambda kind=kind: feed(kind)) for kind in ("attlist", "base", "plain")},
    "many": (DASH, lambda: mpd('<SegmentTemplate media="$RepresentationID$/$Number$" duration="2"/>' + representations(16000))),
    "anyhost": (DASH, lambda: mpd('<SegmentTemplate media="http://127.0.0.1:{port}/$RepresentationID$/$Number$" duration="2"/>' + representations(5000))),
    "wide": (DASH, lambda: mpd('<SegmentList duration="2">' + '<SegmentURL media="http://h.example/a"/>' * 1300 + "</SegmentList>"
                                                    + representations(1), 'type="static" mediaPresentationDuration="PT1H"')),
    "short-mpd": (DASH, lambda: mpd(f'<SegmentTemplate media="{"$$" * 7500}$Number$" duration="2"/>' + representations(8))),
    "short-hls": (HLS, lambda: stream(1000)[:PADDED - 1000]),
    "short-pls": (PLS, lambda: ("[playlist]\n" + "".join(f"File{index}=a{index}.mp3\n" for index in range(1, 900))).encode()),
    "stream": (HLS, lambda: stream(300_000)),
}


class Origin(hostile.HostileOrigin):
    """Answers by path in a process of its own, /KIND/NUMBER/NAME, and can be stopped."""

    def __init__(self):
        super().__init__()
        self.made = {}
        self.process = None

    def start(self):
        self.process = multiprocessing.Process(target=self.accept, daemon=True)
        self.process.start()

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.join()
            self.process = None

    def accept(self):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        super().accept()

    def answer(self, connection, head):
        kind = head.split(b" ")[1].decode().split("/")[1]
        if kind in DOCUMENTS:
            if kind not in self.made:
                body = DOCUMENTS[kind][1]().replace(b"{port}", str(self.port).encode())
                self.made[kind] = gzip.compress(body), DOCUMENTS[kind][0]
            body, media_type = self.made[kind]
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: {media_type}\r\nCache-Control: max-age=1\r\n"
                               f"Content-Encoding: gzip\r\nETag: \"{kind}\"\r\n\r\n".encode() + body)
        elif kind in ("unstored", "error"):
            status, body = "200 OK" if kind == "unstored" else "500 No", bytes(4 << 20)
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nContent-Type: video/mp4\r\nCache-Control: no-store\r\n\r\n".encode())
            connection.sendall(body)
        elif kind == "drip":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nContent-Type: video/mp4\r\n\r\n")
            while True:
                connection.sendall(b"x")
                time.sleep(3)
        elif kind == "language":
            self.file(connection, 1000, "Vary: Accept-Language\r\n")
        else:
            self.file(connection, 65536)
        return True


# ---------------------------------------------------------------- proxy, and who watches it

class Proxy(hostile.Proxy):
    def __init__(self, binary, *flags, names=None):
        run = bench.fresh(RUN / "beside-proxy")
        self.cache = run / "cache"
        argv = [binary, "serve", "--listen", f"127.0.0.1:{PORT}", "--cache-dir", str(self.cache), "--min-free", "100MB", "--allow", "127.0.0.1",
                "--threads", "1", "--log-level", "critical", *flags]
        if names:
            argv = ["unshare", "-m", "sh", "-c", f'mount --bind {names} /etc/resolv.conf; exec "$@"', "sh", *argv]
        self.service = Service("proxy", argv, PORT, run)
        self.pid = self.service.pid

    def own(self):
        """Its own memory, in MB. Not from smaps, whose reader holds a lock for which the proxy's mappings wait."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return round(sum(int(kilobytes) for kilobytes in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+)", status, re.M)) * 1024 / 1e6, 1)


def read(connection, target, fields=()):
    connection.request("GET", target, headers=dict(fields))
    answer = connection.getresponse()
    answer.read()
    return answer.status


def watch(target, name, ended, pipe):
    """Requests one thing again and again; sends the longest wait, in ms, and what it got."""
    worst, statuses = 0.0, set()
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    while not ended.is_set():
        begin = time.monotonic()
        try:
            statuses.add(read(connection, target))
        except (OSError, http.client.HTTPException) as error:
            statuses.add(type(error).__name__)
            connection.close()
        worst = max(worst, time.monotonic() - begin)
        ended.wait(0.005 if name == "hit" else 0.05)
    pipe.send((name, round(worst * 1000, 1), statuses - {200}))


class Beside:
    """Watches the proxy during a `with`, in processes of its own."""

    def __init__(self, proxy, base):
        self.proxy, self.row = proxy, {}
        self.targets = {"hit": f"{base}/small/0/hit.mp4", "healthz": "/healthz", "cache": "/api/v1/cache"}

    def __enter__(self):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
        for target in self.targets.values():
            read(connection, target)
        connection.close()
        time.sleep(0.5)
        self.idle = self.most = self.proxy.own()
        self.ended = multiprocessing.Event()
        self.pipe, send = multiprocessing.Pipe(False)
        self.watchers = [multiprocessing.Process(target=watch, args=(target, name, self.ended, send)) for name, target in self.targets.items()]
        self.sampler = threading.Thread(target=self.sample)
        for watcher in [*self.watchers, self.sampler]:
            watcher.start()
        return self

    def sample(self):
        while not self.ended.wait(0.1):
            self.most = max(self.most, self.proxy.own())

    def __exit__(self, kind, error, trace):
        self.ended.set()
        for _ in self.watchers:
            name, worst, others = self.pipe.recv()
            self.row[f"{name} ms"] = worst
            if others:
                self.row[f"{name} also"] = " ".join(map(str, sorted(others, key=str)))
        for watcher in [*self.watchers, self.sampler]:
            watcher.join()
        self.row["MB more"] = round(self.most - self.idle, 1)

    def settle(self):
        """Memory once everything is over."""
        for _ in range(70):
            after = self.proxy.own() - self.idle
            if after < 8:
                break
            time.sleep(1)
        self.row["MB after"] = round(max(0, after), 1)


# ---------------------------------------------------------------- inputs

def ask(target, fields="", timeout=30, body=b"", method="GET", host=None, source="127.0.0.1"):
    """One request; the open connection."""
    player = socket.create_connection(("127.0.0.1", PORT), timeout, (source, 0))
    player.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{PORT}'}\r\n{fields}\r\n".encode() + body)
    return player


def drained(player):
    """The status of a whole answer, or 0."""
    try:
        with player:
            first = b""
            while data := player.recv(1 << 20):
                first = first or data
        return int(first.split(b" ", 2)[1]) if first else 0
    except (OSError, ValueError, IndexError):
        return 0


CLOSE = "Connection: close\r\n"


def repeated(requests, workers=4):
    """An input: the requests, again and again, until the time is over."""
    def load(base, until, held):
        turns = itertools.count()

        def player():
            while time.monotonic() < until:
                for request in requests(base, next(turns)):
                    drained(ask(*request))
        threads = [threading.Thread(target=quietly(player)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {}
    return load


def quietly(work):
    def run():
        try:
            work()
        except OSError:
            pass
    return run


def documents(*kinds, fresh=False, workers=4, fields=CLOSE):
    """The same documents again and again, or each time under another URL."""
    return repeated(lambda base, turn: [(f"{base}/{kind}/{turn % 20 if fresh else 0}/x", fields) for kind in kinds], workers)


def any_host(base, until, held):
    drained(ask(f"{base}/anyhost/0/x", CLOSE))
    return repeated(lambda base, turn: [(f"{base}/{turn % 5000}/{turn % 7}", CLOSE)], 2)(base, until, held)


def hosts(base, until, held):
    drained(ask(f"{base}/wide/0/x", CLOSE))
    return repeated(lambda base, turn: [(f"{base}/wide/0/x", CLOSE, 30, b"", "GET", f"h{turn}.localhost:{PORT}")], 4)(base, until, held)


def kept(requests):
    """An input: open connections that read nothing. What another client waits for a new file beside them is measured."""
    def load(base, until, held):
        for request in requests(base):
            if time.monotonic() > until:
                break
            try:
                held.append(ask(*request))
            except OSError:
                break
        begin = time.monotonic()
        status = drained(ask(f"{base}/small/{time.monotonic_ns()}/x.mp4", CLOSE, 60, source="127.0.0.2"))
        waited = round(time.monotonic() - begin, 2)
        time.sleep(max(0, until - time.monotonic()))
        return {"open": len(held), "new file": status, "answered s": waited}
    return load


def unread(base):
    for index in range(2000):
        kind = ("unstored", "error")[index % 2]
        yield f"{base}/{kind}/{index}/x.mp4", ""


def uploads(base):
    return [("/m/up", "Content-Length: 100000\r\n", 30, b"x", "POST")] * 64


def drips(base):
    return [(f"{base}/drip/{index}/x.mp4", "") for index in range(256)]


def dead(base):
    return [(f"/http/n{index}.dead.example/x.mp4", "") for index in range(600)]


def events(count, is_read):
    def load(base, until, held):
        proxy = Beside.current.proxy
        order(proxy, base, 20_000)
        for _ in range(count):
            held.append(ask("/api/v1/downloads/events?ended=true", f"Authorization: Bearer {token(proxy)}\r\n"))
        def reader(players):
            for player in players:
                player.settimeout(0.01)
            while time.monotonic() < until:
                for player in players:
                    try:
                        player.recv(1 << 20)
                    except OSError:
                        pass
        if is_read:
            reader(held)
        else:
            time.sleep(max(0, until - time.monotonic()))
        return {"streams": count}
    return load


def token(proxy):
    return next(proxy.cache.glob("**/*token*")).read_text().strip()


def order(proxy, base, count):
    """Downloads that wait: nothing of them runs."""
    head = f"Authorization: Bearer {token(proxy)}\r\nContent-Type: application/json\r\n{CLOSE}"
    for first in range(0, count, 1000):
        url = base.removeprefix("/http/")
        body = json.dumps({"downloads": [{"url": f"http://{url}/small/{index}/d.mp4"} for index in range(first, first + 1000)]}).encode()
        status = drained(ask("/api/v1/downloads", head + f"Content-Length: {len(body)}\r\n", 60, body, "POST"))
        if status not in (200, 201):
            raise RuntimeError(f"ordering downloads was answered {status}")


def without_origin(base, until, held):
    """20 players of a long stream that is cached, whose origin is down."""
    drained(ask(f"{base}/stream/0/x", CLOSE))
    time.sleep(1.2)
    Beside.current.origin.stop()
    return repeated(lambda base, turn: [(f"{base}/stream/0/x", CLOSE)], 20)(base, until, held)


def segments(base, until, held):
    drained(ask(f"{base}/stream/0/x", CLOSE))
    url = urllib.parse.quote("http://" + base.removeprefix("/http/") + "/stream/0/x", safe="")
    return repeated(lambda base, turn: [(f"/api/v1/resources?url={url}&segments=true", CLOSE)], 10)(base, until, held)


LANGUAGES = ",".join(f"l{index};q=0.{index % 10}" for index in range(6000))[:60_000]

INPUTS = {  # name: row of the table, input, flags
    "nothing": (0, lambda base, until, held: time.sleep(max(0, until - time.monotonic())) or {}, []),
    **{f"timeline{count}": (1, documents(f"timeline{count}"), []) for count in (1, 20, 50)},
    "shared": (2, documents(*(f"shared-{kind}" for kind in ("timeline", "template", "list", "bases")), fresh=True), []),
    "keys": (3, documents("long-keys", "long-parts", "long-hints", "feed-base", fresh=True), []),
    "attlist": (4, documents("feed-attlist", fresh=True), []),
    "short": (5, documents("short-mpd", "short-hls", "short-pls", "feed-plain", fresh=True), []),
    "many": (6, documents("many", fresh=True), []),
    "anyhost": (7, any_host, []),
    "hosts": (8, hosts, []),
    "unread": (11, kept(unread), []),
    "events": (12, events(20, True), ["--schedule", "Mon 00:00-00:01=1kB"]),
    "events100": (12, events(100, True), ["--schedule", "Mon 00:00-00:01=1kB"]),
    "eventsunread": (12, events(300, False), ["--schedule", "Mon 00:00-00:01=1kB"]),
    "uploads": (13, kept(uploads), ["--mount"]),
    "drips": (13, kept(drips), []),
    "dead": (14, kept(dead), ["--names"]),
    "stream": (15, without_origin, []),
    "languages": (21, repeated(lambda base, turn: [(f"{base}/language/0/x.mp4", f"Accept-Language: {LANGUAGES[:7000]}\r\n" * 8 + CLOSE)]), []),
    "segments": (21, segments, []),
}


def begin(name, binary, origin, base, silent, drain):
    """A proxy with what the input needs."""
    flags, names = ["--drain-time", drain, *INPUTS[name][2]], None
    if "--mount" in flags:
        flags[flags.index("--mount"):] = ["--mount", f"/m/=http://127.0.0.1:{origin.port}/small/"]
    if "--names" in flags:
        flags.remove("--names")
        names = RUN / "beside-resolv.conf"
        names.write_text(f"nameserver {silent.getsockname()[0]}\n")
    return Proxy(binary, *flags, names=names)


def row(name, binary, origin, base, silent, seconds):
    origin.start()
    proxy, held = begin(name, binary, origin, base, silent, "2s"), []
    with Beside(proxy, base) as beside:
        Beside.current, beside.origin = beside, origin
        found = INPUTS[name][1](base, time.monotonic() + seconds, held)
    beside.row.update(found)
    for player in held:
        player.close()
    beside.settle()
    for drain, figure in (("2s", "SIGTERM s"), ("1h", "second s")):
        proxy.stop()
        origin.stop()
        origin.start()
        proxy, held = begin(name, binary, origin, base, silent, drain), []
        Beside.current.proxy = proxy
        drained(ask(f"{base}/small/0/hit.mp4", CLOSE))
        load = threading.Thread(target=quietly(lambda: INPUTS[name][1](base, time.monotonic() + 4, held)), daemon=True)
        load.start()
        load.join(3)
        proxy.service.proc.send_signal(signal.SIGTERM)
        if figure == "second s":
            # One that follows within a second is taken for the first (supervisors send both to a process and its group).
            time.sleep(1.2)
            proxy.service.proc.send_signal(signal.SIGTERM)
        start = time.monotonic()
        try:
            proxy.service.proc.wait(60)
        except subprocess.TimeoutExpired:
            pass
        beside.row[figure] = round(time.monotonic() - start, 2)
        for player in held:
            player.close()
        load.join()
    proxy.stop()
    origin.stop()
    shutil.rmtree(proxy.cache, ignore_errors=True)
    return beside.row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="ROW,ROW", help=", ".join(INPUTS))
    parser.add_argument("--seconds", type=float, default=10, help="how long each input goes on")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if "REELCACHE" not in os.environ:
        sys.exit("name the binary of a release build in REELCACHE")
    multiprocessing.set_start_method("fork")
    atexit.register(bench.stop_all)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.9", 53))
    origin, results = Origin(), []
    atexit.register(origin.stop)
    for name in options.only.split(",") if options.only else INPUTS:
        for binary in os.environ["REELCACHE"].split(":"):
            try:
                result = row(name, binary, origin, f"/http/127.0.0.1:{origin.port}", silent, options.seconds)
            except (OSError, RuntimeError) as error:
                result = {"the proxy ended": str(error)}
                bench.stop_all()
                origin.stop()
            results.append({"row": name, "table": INPUTS[name][0], "binary": binary, **result})
            print(f"{name:<13} {os.path.basename(binary):<12} " + ", ".join(
                f"{figure}: {value}{'!' if value_is_beyond(figure, value) else ''}" for figure, value in result.items()), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


def value_is_beyond(figure, value):
    return figure in LIMITS and value > LIMITS[figure]


if __name__ == "__main__":
    main()
