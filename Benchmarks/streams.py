#!/usr/bin/env python3
"""Streams in segments: what a player waits for, what is fetched in vain, and what it costs, beside peers.

    REELCACHE=.build/release/reelcache Benchmarks/streams.py [--only ahead,waste,cached,memory,live] [--rounds 5] [--peers direct,nginx-whole,ours]
        [--binary PATH] [--segments 30] [--json FILE]

ahead    A film of 2-second segments (4 Mbit/s) from an origin that answers after 150 ms and sends 1.5 times the bitrate. A player asks for the next
         segment when it has the former and its buffer is below 10 s. Of all segments after the first two: the share that was there, or on its way,
         when the player asked (the origin had the request before), and how long the first byte took. All peers at once, each with its own origin.
waste    Twenty seeks and ten switches of rendition, two segments played after each: what the origin has sent and nobody has read.
cached   A thousand cached segments of 250 kB against as many plain files of the size: requests per second over four kept connections, in turn.
memory   A playlist of 100,000 segments: resident memory before, after one player, and after ten.
live     A live stream that ffmpeg makes in real time, watched by two players for a minute, directly and through the proxy: requests for the playlist
         for each refresh (half a target duration), and stalls; with nothing said of the playlist's age, with Last-Modified, with Cache-Control.

Figures are medians of rounds; ratios are taken within a round. Ports: those of the peers, and free ones for the origins.
"""
import argparse
import atexit
import http.client
import http.server
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import urllib.parse
from pathlib import Path

import bench

SECONDS, SEGMENT = 2, 1_000_000
BITRATE = SEGMENT / SECONDS  # bytes per second
TARGETS = {"ahead": ">= 0.95", "wait": "<= 2 ms", "waste": "<= 3", "cached": ">= 0.95", "live": "<= 1.1"}


# ---------------------------------------------------------------- origins

class Origin(http.server.ThreadingHTTPServer):
    """Serves what `find(path)` gives (bytes and fields, or None), with a latency, and a rate that all its connections share. Writes each request down."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, find, latency=0.0, rate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.find, self.latency, self.rate = find, latency, rate
        self.port, self.lock, self.free_at, self.log = self.server_address[1], threading.Lock(), 0.0, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that left

    def pause(self, count):
        """Waits until so many bytes may go."""
        if self.rate:
            with self.lock:
                self.free_at = max(self.free_at, time.monotonic()) + count / self.rate
                end = self.free_at
            time.sleep(max(0, end - time.monotonic()))

    def entries(self, path):
        return [entry for entry in list(self.log) if entry["path"] == path]

    def sent(self):
        return sum(entry["sent"] for entry in list(self.log))

    def wait_until_idle(self, seconds=1.5):
        last, since = self.sent(), time.monotonic()
        while time.monotonic() < since + seconds:
            time.sleep(0.05)
            if self.sent() != last:
                last, since = self.sent(), time.monotonic()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        entry = {"path": self.path, "asked": time.monotonic(), "ended": None, "sent": 0}
        self.server.log.append(entry)
        time.sleep(self.server.latency)
        body, fields = self.server.find(self.path) or (None, {})
        status, start, end = 200 if body is not None else 404, 0, len(body or b"")
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if body and asked and int(asked[1]) < end:
            start, status = int(asked[1]), 206
            end = min(end, int(asked[2]) + 1) if asked[2] else end
            fields = {**fields, "Content-Range": f"bytes {start}-{end - 1}/{len(body)}"}
        self.send_response(status)
        for name, value in {"Content-Length": end - start, "Accept-Ranges": "bytes", **fields}.items():
            self.send_header(name, str(value))
        self.end_headers()
        for place in range(start, end, 16_384):
            piece = body[place:min(end, place + 16_384)]
            self.server.pause(len(piece))
            self.wfile.write(piece)
            entry["sent"] += len(piece)
        entry["ended"] = time.monotonic()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


NOISE = random.Random(14).randbytes(4 * SEGMENT)


def noise(number, size):
    """The bytes of a segment: others for each, without storing them."""
    start = number * 7919 % (len(NOISE) - size)
    return NOISE[start:start + size]


def playlist(count, name="s%d.ts"):
    lines = ["#EXTM3U", "#EXT-X-VERSION:3", f"#EXT-X-TARGETDURATION:{SECONDS}", "#EXT-X-MEDIA-SEQUENCE:0", "#EXT-X-PLAYLIST-TYPE:VOD"]
    for number in range(count):
        lines += [f"#EXTINF:{SECONDS:.3f},", name % number]
    return ("\n".join(lines + ["#EXT-X-ENDLIST", ""])).encode()


MULTIVARIANT = (b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=4000000,RESOLUTION=1920x1080\nhigh/index.m3u8\n"
                b"#EXT-X-STREAM-INF:BANDWIDTH=1200000,RESOLUTION=960x540\nlow/index.m3u8\n")
SIZES = {"high": SEGMENT, "low": 300_000, "stream": 250_000, "plain": 250_000}


def film(count):
    """Two renditions of `count` segments, and as many plain files."""
    texts = {"/index.m3u8": MULTIVARIANT}
    texts |= {f"/{folder}/index.m3u8": playlist(count) for folder in ("high", "low", "stream")}

    def find(path):
        if path in texts:
            return texts[path], {"Content-Type": "application/vnd.apple.mpegurl", "ETag": '"1"'}
        match = re.fullmatch(r"/(high|low|stream|plain)/s(\d+)\.(ts|bin)", path)
        if not match or int(match[2]) >= count:
            return None
        return noise(int(match[2]), SIZES[match[1]]), {"Content-Type": "video/mp2t" if match[3] == "ts" else "application/octet-stream", "ETag": '"1"'}
    return find


# ---------------------------------------------------------------- peers and clients

def peer(name, origin):
    """A peer that has just been started with nothing cached; `direct` is the origin."""
    if name == "direct":
        return bench.Direct(origin.port)
    made = bench.Peer(name, tomllib.loads((bench.PEERS / "peers.toml").read_text())[name])
    made.start(origin.port)
    return made


class Client:
    """One kept connection, as players have it."""

    def __init__(self, peer):
        self.peer, self.connection = peer, None

    def get(self, path):
        """The body, and how long its first byte took, in seconds."""
        url = urllib.parse.urlsplit(self.peer.url(path.lstrip("/")))
        if not self.connection:
            self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
            self.connection.connect()
        start = time.monotonic()
        self.connection.request("GET", url.path)
        response = self.connection.getresponse()
        first = response.read(1)
        wait = time.monotonic() - start
        body = first + response.read()
        if response.status not in (200, 206):
            self.close()
            raise OSError(f"{response.status} for {url.path}")
        return body, wait

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Playback:
    """What a player has in its buffer, in seconds of film, and how often and long it ran dry."""

    def __init__(self):
        self.start, self.received, self.stalled, self.stalls = None, 0.0, 0.0, 0

    def take(self, seconds):
        now = time.monotonic()
        if self.start is None:
            self.start = now
        elif self.buffer() < 0:
            self.stalls += 1
            self.stalled += -self.buffer()
        self.received += seconds

    def buffer(self):
        return 0 if self.start is None else self.received - (time.monotonic() - self.start - self.stalled)


# ---------------------------------------------------------------- ahead

def play(origin, peer, count):
    client, playback, rows = Client(peer), Playback(), []
    client.get("/index.m3u8")
    client.get("/high/index.m3u8")
    for number in range(count):
        time.sleep(max(0, playback.buffer() - 10))
        asked = time.monotonic()
        body, wait = client.get(f"/high/s{number}.ts")
        if body != noise(number, SEGMENT):
            raise OSError(f"segment {number} is wrong")
        playback.take(SECONDS)
        before = [entry for entry in origin.entries(f"/high/s{number}.ts") if entry["asked"] < asked]
        there = any(entry["ended"] and entry["ended"] <= asked for entry in before)
        rows.append({"coming": bool(before), "there": there, "wait": wait})
    client.close()
    rows = rows[2:]
    waits = [row["wait"] * 1000 for row in rows if row["there"]]
    return {"share": sum(row["coming"] for row in rows) / len(rows), "there": len(waits) / len(rows),
            "wait": statistics.median(waits) if waits else None,
            "wait99": sorted(waits)[len(waits) * 99 // 100] if waits else None,
            "all": statistics.median(row["wait"] * 1000 for row in rows), "stalls": playback.stalls, "stalled": playback.stalled}


def ahead(options):
    found = {name: [] for name in options.peers}

    def run(name):
        origin = Origin(film(options.segments), latency=0.15, rate=1.5 * BITRATE)
        served = peer(name, origin)
        try:
            found[name].append(play(origin, served, options.segments))
        finally:
            served.stop()
            origin.shutdown()

    for _ in range(options.rounds):
        threads = [threading.Thread(target=run, args=(name,)) for name in options.peers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("\n| ahead | there or coming (target >= 0.95) | there | first byte where there, ms: median (target <= 2), p99 | of all, ms | stalls | n |")
    print("|---|---|---|---|---|---|---|")
    for name, rows in found.items():
        print(f"| {name} | {median(rows, 'share'):.2f} | {median(rows, 'there'):.2f} | {number(median(rows, 'wait'))}, {number(median(rows, 'wait99'))} | "
              f"{median(rows, 'all'):.1f} | {median(rows, 'stalls'):.0f} | {len(rows)} |")
    return found


def median(rows, key):
    values = [row[key] for row in rows if row[key] is not None]
    return statistics.median(values) if values else None


def number(value):
    return "-" if value is None else f"{value:.1f}"


# ---------------------------------------------------------------- waste

def waste(options):
    found = {}
    for name in options.peers:
        found[name] = [jumps(name, seed) for seed in range(options.rounds)]
    print("\n| waste | fetched and not played, MB | in segments for each jump (target <= 3) | n |")
    print("|---|---|---|---|")
    for name, rows in found.items():
        print(f"| {name} | {median(rows, 'bytes') / 1e6:.1f} | {median(rows, 'segments'):.2f} | {len(rows)} |")
    return found


def jumps(name, seed):
    dice = random.Random(seed)
    origin = Origin(film(500), latency=0.02, rate=20_000_000)
    served = peer(name, origin)
    client, played, folder, place = Client(served), set(), "high", 0
    client.get("/index.m3u8")
    for jump in dice.sample(["seek"] * 20 + ["switch"] * 10, 30):
        if jump == "seek":
            place = dice.randrange(490)
        else:
            folder = "low" if folder == "high" else "high"
        client.get(f"/{folder}/index.m3u8")
        for step in range(2):
            path = f"/{folder}/s{place + step}.ts"
            client.get(path)
            played.add(path)
        place += 2
    client.close()
    origin.wait_until_idle()
    unread = [entry for entry in origin.log if entry["path"].endswith(".ts") and entry["path"] not in played]
    unplayed = sum(entry["sent"] for entry in unread)
    units = sum(entry["sent"] / SIZES[entry["path"].split("/")[1]] for entry in unread)
    served.stop()
    origin.shutdown()
    return {"bytes": unplayed, "segments": units / 30}


# ---------------------------------------------------------------- cached

def cached(options):
    bench.prepare([])
    origin, found = Origin(film(1000)), {}
    kinds = {"segments": [f"stream/s{n}.ts" for n in range(1000)], "files": [f"plain/s{n}.bin" for n in range(1000)]}
    for name in [name for name in options.peers if name != "direct"]:
        served = peer(name, origin)
        client = Client(served)
        client.get("/stream/index.m3u8")
        for paths in kinds.values():
            for path in paths:
                client.get(path)
        rows, before = [], origin.sent()
        for index in range(max(options.rounds, 5)):
            row = {}
            for kind in sorted(kinds, reverse=bool(index % 2)):
                result = bench.rload(served, kinds[kind], conns=4, duration=4, seq=True)
                if bench.failures(result):
                    raise OSError(f"{name}: {result['errors']}")
                row[kind] = result["rps"]
            rows.append({**row, "ratio": row["segments"] / row["files"]})
        found[name] = rows
        if origin.sent() != before:
            print(f"cached: {name} asked the origin for {origin.sent() - before} bytes meanwhile", file=sys.stderr)
        served.stop()
    origin.shutdown()
    print("\n| cached | segments, requests/s | files, requests/s | ratio (target >= 0.95) | n |")
    print("|---|---|---|---|---|")
    for name, rows in found.items():
        print(f"| {name} | {median(rows, 'segments'):.0f} | {median(rows, 'files'):.0f} | {median(rows, 'ratio'):.3f} | {len(rows)} |")
    return found


# ---------------------------------------------------------------- memory

def memory(options):
    text = playlist(100_000, "https-segment-with-a-name-of-some-length-%d.ts")
    fields = {"Content-Type": "application/vnd.apple.mpegurl", "ETag": '"1"'}
    origin = Origin(lambda path: (text, fields) if path == "/big.m3u8" else None)
    rows = []
    for _ in range(options.rounds):
        served = peer("ours", origin)
        row = {"before": resident(served)}
        Client(served).get("/big.m3u8")
        row["one"] = resident(served)
        threads = [threading.Thread(target=Client(served).get, args=("/big.m3u8",)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        row["ten"] = resident(served)
        rows.append(row)
        served.stop()
    origin.shutdown()
    print(f"\n| memory, MiB (a playlist of {len(text) / 1e6:.1f} MB) | before | after one player | after ten | n |")
    print("|---|---|---|---|---|")
    print(f"| ours | {median(rows, 'before'):.1f} | {median(rows, 'one'):.1f} | {median(rows, 'ten'):.1f} | {len(rows)} |")
    return {"ours": rows}


def resident(peer):
    """What is the process's own, without pages of files, in MiB."""
    return bench.memory(peer.pids())[1]


# ---------------------------------------------------------------- live

LIVE = {"none": {}, "Last-Modified": {}, "Cache-Control": {"Cache-Control": "max-age=3600"}}


def live_files(folder, kind):
    def find(path):
        file = folder / path.lstrip("/")
        try:
            body, changed = file.read_bytes(), file.stat().st_mtime
        except OSError:
            return None
        if not path.endswith(".m3u8"):
            return body, {"Content-Type": "video/mp2t"}
        dated = {"Last-Modified": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(changed))} if kind == "Last-Modified" else {}
        return body, {"Content-Type": "application/vnd.apple.mpegurl", **LIVE[kind], **dated}
    return find


def watch(peer, seconds, rows):
    """A player of a live stream: it begins three segments before the edge, and asks for the playlist each target duration, or twice as often where
    nothing was new (RFC 8216 section 6.3.4)."""
    client, playback, last, end = Client(peer), Playback(), None, time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            asked = time.monotonic()
            text = client.get("/live.m3u8")[0].decode()
            first = int(re.search(r"MEDIA-SEQUENCE:(\d+)", text)[1])
            names = [line for line in text.splitlines() if line and not line.startswith("#")]
            new = [(first + index, name) for index, name in enumerate(names)]
            new = new[-3:] if last is None else [item for item in new if item[0] > last]
            for sequence, name in new:
                client.get("/" + name)
                playback.take(SECONDS)
                last = sequence
            time.sleep(max(0, asked + (SECONDS if new else SECONDS / 2) - time.monotonic()))
        # What was missing at the end, it waits for still.
        waiting = max(0, -playback.buffer())
        rows.append({"stalls": playback.stalls + (waiting > 1), "stalled": playback.stalled + waiting})
    except OSError as error:
        rows.append({"stalls": 999, "stalled": 0, "error": str(error)})
    client.close()


def live(options):
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, True)
    packager = subprocess.Popen(
        ["ffmpeg", "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=192x108:rate=25", "-c:v", "libx264", "-preset", "ultrafast",
         "-pix_fmt", "yuv420p", "-b:v", "400k", "-g", "50", "-sc_threshold", "0", "-f", "hls", "-hls_time", str(SECONDS), "-hls_list_size", "6",
         "-hls_flags", "delete_segments+temp_file", folder / "live.m3u8"])
    atexit.register(packager.kill)
    while not (folder / "live3.ts").exists():
        time.sleep(0.1)
    found = {}
    for kind in LIVE:
        runs, threads = {}, []
        for name in ("direct", "ours"):
            origin = Origin(live_files(folder, kind))
            served, rows = peer(name, origin), []
            runs[name] = (origin, served, rows)
            threads += [threading.Thread(target=watch, args=(served, options.minutes * 60, rows)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refreshes = options.minutes * 60 / (SECONDS / 2)
        found[kind] = {name: {"per_refresh": len(origin.entries("/live.m3u8")) / refreshes, "players": rows} for name, (origin, _, rows) in runs.items()}
        for origin, served, _ in runs.values():
            served.stop()
            origin.shutdown()
    packager.kill()
    print("\n| live, two players | requests for the playlist per refresh (target <= 1.1) | stalls | stalled, s |")
    print("|---|---|---|---|")
    for kind, names in found.items():
        for name, row in names.items():
            print(f"| {kind}, {name} | {row['per_refresh']:.2f} | {sum(p['stalls'] for p in row['players'])} | "
                  f"{sum(p['stalled'] for p in row['players']):.1f} |")
    return found


# ---------------------------------------------------------------- main

KINDS = {"ahead": ahead, "waste": waste, "cached": cached, "memory": memory, "live": live}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words = lambda text: text.split(",")
    parser.add_argument("--only", type=words, default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=words, default=["direct", "nginx-whole", "ours"])
    parser.add_argument("--binary", help="in place of REELCACHE")
    parser.add_argument("--segments", type=int, default=30, help="of the film that is played")
    parser.add_argument("--minutes", type=float, default=1, help="for which a live stream is watched")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    binary = options.binary or os.environ.get("REELCACHE") or sys.exit("name the binary of a release build in REELCACHE, or with --binary")
    os.environ["REELCACHE"] = os.path.abspath(binary)
    os.environ["REELCACHE_CONFIG"] = "/dev/null"
    unknown = [kind for kind in options.only if kind not in KINDS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    atexit.register(bench.stop_all)
    bench.RUN.mkdir(parents=True, exist_ok=True)
    found = {kind: KINDS[kind](options) for kind in options.only}
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
