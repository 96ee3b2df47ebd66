#!/usr/bin/env python3
"""What it costs the serving path that somebody watches: processor time of the proxy for each GB that it sends to ten players, with and without the
dashboard open, in turn.

    REELCACHE=$(scripts/build-release) Benchmarks/watching.py [--rounds 5] [--seconds 6] [--resources 10000] [--downloads 1000]
        [--streams 25] [--segments 2700]

Each player reads a cached film of 32 MiB again and again, once as fast as it can, once at 1 MB/s. The proxy has that many resources and waiting
downloads in its lists; the first page of the list has that many HLS films of six renditions, each with a playlist of that many segments. A page asks for what the dashboard asks for, as often: the live state, the map of each film every two seconds, its lists every
ten. A slow page opens the live state and never reads. Ratios are computed round by round; their median counts, as the machine may be shared.
Then it asks for a list of the streams alone, as the page does and with what is cached of each, and tells the processor time of each request.
"""
import argparse
import http.client
import json
import os
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=6)
parser.add_argument("--resources", type=int, default=10_000)
parser.add_argument("--downloads", type=int, default=1_000)
parser.add_argument("--streams", type=int, default=25)
parser.add_argument("--segments", type=int, default=2_700, help="of each of a stream's six renditions")
options = parser.parse_args()
binary = os.path.abspath(os.environ.get("REELCACHE") or sys.exit("name the binary of a release build in REELCACHE"))
PLAYERS = 10
SIZE = 32 << 20
PACE = 1_000_000
FILM = os.urandom(SIZE)
RENDITIONS = 6
MAIN = ("#EXTM3U\n" + "".join(f"#EXT-X-STREAM-INF:BANDWIDTH={number + 1}00000\n{number}.m3u8\n" for number in range(RENDITIONS))).encode()
MEDIA = ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n" + "".join(f"#EXTINF:2,\nsegment-{number}.ts\n" for number in range(options.segments))
         + "#EXT-X-ENDLIST\n").encode()


class Origin(socketserver.StreamRequestHandler):
    """Sends films, songs of 1,000 bytes, and playlists."""

    def handle(self):
        while line := self.rfile.readline():
            path = line.split()[1].decode()
            while self.rfile.readline().strip():
                pass
            playlist = MAIN if path.endswith("main.m3u8") else MEDIA if path.endswith(".m3u8") else None
            body = playlist or (FILM if path.startswith("/film") else FILM[:1000])
            kind = "application/vnd.apple.mpegurl" if playlist else "video/mp4"
            head = (f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nETag: "1"\r\nAccept-Ranges: bytes\r\n'
                    f"Cache-Control: max-age=86400\r\nContent-Type: {kind}\r\n\r\n").encode()
            self.wfile.write(head + body)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Megabytes of its own, without mapped files."""
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon")) / 1024


class Player(threading.Thread):
    """Reads one film again and again, and counts bytes."""

    paced = False

    def __init__(self, port, number, url):
        super().__init__(daemon=True)
        self.port, self.number, self.url, self.bytes = port, number, url, 0

    def run(self):
        request = f"GET {self.url} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nUser-Agent: player/{self.number}\r\n\r\n".encode()
        buffer = bytearray(1 << 20)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            while True:
                connection.sendall(request)
                head = b""
                while b"\r\n\r\n" not in head:
                    if not (piece := connection.recv(1 << 16)):
                        return
                    head += piece
                rest = SIZE - len(head.split(b"\r\n\r\n", 1)[1])
                while rest > 0:
                    if not (count := connection.recv_into(buffer, PACE // 4 if Player.paced else 1 << 20)):
                        return
                    rest -= count
                    self.bytes += count
                    if Player.paced:
                        time.sleep(count / PACE)


class Page(threading.Thread):
    """Asks for what an open dashboard asks for."""

    def __init__(self, port, films):
        super().__init__(daemon=True)
        self.port, self.films, self.events, self.ends = port, films, 0, False

    def get(self, connection, path, **parameters):
        connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            sys.exit(f"{path}: {response.status} {body[:200]}")

    def run(self):
        api = http.client.HTTPConnection("127.0.0.1", self.port)
        begun = next_maps = next_lists = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.port)) as events:
            events.sendall(f"GET /api/v1/now/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            events.settimeout(0.1)
            while not self.ends:
                try:
                    if not (text := events.recv(1 << 20)):
                        return
                    self.events += text.count(b"event: now")
                except TimeoutError:
                    pass
                now = time.monotonic()
                if now >= next_maps:
                    next_maps += 2
                    for film in self.films:
                        self.get(api, "resources/coverage", url=film, buckets=400)
                if now >= next_lists:
                    next_lists += 10
                    self.get(api, "resources", brief="true", sort="recent", limit=25, offset=0)
                    self.get(api, "downloads", state="failed", sort="ended", limit=20)
                    self.get(api, "feeds")
                    self.get(api, "history", span="hour")
                    if now - begun < 1:
                        self.get(api, "resources", brief="true", sort="size", limit=1000)
                        self.get(api, "resources", brief="true", sort="recent", limit=500, offset=options.resources - 500)
                        self.get(api, "downloads", state="completed")


class SlowPage(threading.Thread):
    """Opens the live state, and reads nothing of it."""

    def __init__(self, port, films):
        super().__init__(daemon=True)
        self.port, self.events, self.ends = port, 0, False

    def run(self):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", self.port))
            connection.sendall(f"GET /api/v1/now/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            while not self.ends:
                time.sleep(0.1)


def measure(pid, players, watchers):
    """Milliseconds of the processor a second, the same for each GB, and megabytes at the end."""
    for watcher in watchers:
        watcher.start()
    time.sleep(1)
    before, sent = processor_seconds(pid), sum(player.bytes for player in players)
    time.sleep(options.seconds)
    spent, sent = (processor_seconds(pid) - before) * 1000, sum(player.bytes for player in players) - sent
    held = memory(pid)
    for watcher in watchers:
        watcher.ends = True
    for watcher in watchers:
        watcher.join()
    return spent / options.seconds, spent / (sent / 1e9), held


def compare(title, proxy, players, port, films):
    kinds = {"nobody": [], "one page": [Page], "ten pages": [Page] * 10, "ten slow": [SlowPage] * 10}
    found = {name: [] for name in kinds}
    seen = dict.fromkeys(kinds, 0)
    for _ in range(options.rounds):
        for name, kind in kinds.items():
            watchers = [make(port, films) for make in kind]
            found[name].append(measure(proxy.pid, players, watchers))
            seen[name] += sum(watcher.events for watcher in watchers)
    print(f"\n{title}\n{'watched by':12}{'CPU ms/s':>10}{'CPU ms/GB':>12}{'ratio':>8}{'events/s':>10}{'own memory, MB':>16}")
    for name, rounds in found.items():
        ratio = statistics.median(one[1] / base[1] for one, base in zip(rounds, found["nobody"]))
        pace, cost, held = (statistics.median(one[index] for one in rounds) for index in range(3))
        print(f"{name:12}{pace:10.1f}{cost:12.1f}{ratio:8.3f}{seen[name] / options.rounds / (options.seconds + 1):10.1f}{held:16.1f}", flush=True)


def serve(cache, *flags):
    """Starts a proxy, and returns it with its port."""
    proxy = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--cache-dir", cache, "--log-level", "notice", *flags],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    port = int(proxy.stdout.readline().split("http://127.0.0.1:")[1].split(",")[0])
    threading.Thread(target=lambda: [None for _ in proxy.stdout], daemon=True).start()
    return proxy, port


def end(proxy):
    proxy.terminate()
    proxy.wait()


def fill(cache, base):
    proxy, port = serve(cache, "--allow", "127.0.0.1")
    try:
        fetch = http.client.HTTPConnection("127.0.0.1", port)
        for path in [f"film-{number}.mp4" for number in range(PLAYERS)] + [f"song-{number}.mp3" for number in range(options.resources)] + [
                f"stream-{number}/{name}.m3u8" for number in range(options.streams) for name in ["main", *range(RENDITIONS)]]:
            fetch.request("GET", f"/http/{base}/{path}")
            response = fetch.getresponse()
            if not response.read() or response.status != 200:
                sys.exit(f"{path}: {response.status}")
    finally:
        end(proxy)


def list_streams(proxy, port):
    """Prints the processor time of a list of the streams."""
    api = http.client.HTTPConnection("127.0.0.1", port)
    print(f"\nA list of {options.streams} streams of {RENDITIONS} renditions of {options.segments} segments\n{'':12}{'CPU ms':>10}")
    for name, query, count in [("brief", "&brief=true", 50), ("in full", "", 3)]:
        before = processor_seconds(proxy.pid)
        for _ in range(count):
            api.request("GET", f"/api/v1/resources?filter=stream-&limit=25{query}")
            response = api.getresponse()
            listing = json.loads(response.read())
            if response.status != 200 or len(listing["resources"]) != min(25, options.streams):
                sys.exit(f"the list: {response.status} {str(listing)[:200]}")
        print(f"{name:12}{(processor_seconds(proxy.pid) - before) / count * 1000:10.1f}", flush=True)


def order(cache, port, work):
    """Orders downloads, which wait because the proxy is offline."""
    orders = os.path.join(work, "orders.json")
    with open(orders, "w") as file:
        json.dump({"downloads": [{"url": f"https://example.org/episode-{number}.mp3"} for number in range(options.downloads)]}, file)
    token = open(os.path.join(cache, "control-token")).read().strip()
    subprocess.run(["curl", "-sf", "-o", os.devnull, "-H", f"Authorization: Bearer {token}", "--data-binary", f"@{orders}",
                    f"http://127.0.0.1:{port}/api/v1/downloads"], check=True)


origin = Server(("127.0.0.1", 0), Origin)
threading.Thread(target=origin.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory() as work:
    cache = os.path.join(work, "cache")
    base = f"127.0.0.1:{origin.server_address[1]}"
    fill(cache, base)
    proxy, port = serve(cache, "--offline")
    try:
        if options.streams:
            list_streams(proxy, port)
        order(cache, port, work)
        films = [f"http://{base}/film-{number}.mp4" for number in range(PLAYERS)]
        players = [Player(port, number, f"/http/{base}/film-{number}.mp4") for number in range(PLAYERS)]
        for player in players:
            player.start()
        time.sleep(2)
        compare("As fast as they can", proxy, players, port, films)
        Player.paced = True
        time.sleep(2)
        compare("At 1 MB/s each", proxy, players, port, films)
    finally:
        end(proxy)
