#!/usr/bin/env python3
"""The web as the guide's readers see it: films, episodes and streams at every host, on ports 80, 443 and 8080.

origin.py MEDIA: serves what make-media has made. A line on standard output says that it does.
"""
import hashlib
import os
import re
import socketserver
import ssl
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TYPES = {
    ".mp4": "video/mp4", ".mp3": "audio/mpeg", ".ts": "video/mp2t", ".m4s": "video/iso.segment", ".vtt": "text/vtt",
    ".m3u8": "application/vnd.apple.mpegurl", ".mpd": "application/dash+xml", ".xml": "application/rss+xml",
    ".html": "text/html",
}
# What a name stands for that is no file's: every film is the same one, whatever it is called.
SAMPLES = {".mp4": "film.mp4", ".mp3": "episode.mp3", ".m3u8": "film.m3u8", ".mpd": "film.mpd"}
MODIFIED = 1_767_225_600  # 2026-01-01


class Live:
    """A stream of one-second segments that begins when somebody first asks for it, and ends after a while."""

    WINDOW, LENGTH, PAUSE = 6, 12, 2

    def __init__(self):
        self.lock, self.begin, self.first = threading.Lock(), None, 0

    def playlist(self):
        with self.lock:
            now = time.monotonic()
            if self.begin is None or now > self.begin + self.LENGTH + self.PAUSE:
                self.begin, self.first = now, self.first + self.LENGTH
            count = min(self.LENGTH, self.WINDOW + int(now - self.begin))
            start = max(0, count - self.WINDOW)
            lines = ["#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:1", f"#EXT-X-MEDIA-SEQUENCE:{self.first + start}",
                     f"#EXT-X-DISCONTINUITY-SEQUENCE:{(self.first + start) // 4}"]
            for number in range(self.first + start, self.first + count):
                if number % 4 == 0 and number > self.first + start:
                    lines.append("#EXT-X-DISCONTINUITY")
                lines += ["#EXTINF:1.0,", f"live-{number}.ts"]
            if count == self.LENGTH:
                lines.append("#EXT-X-ENDLIST")
            return "\n".join(lines).encode() + b"\n"


LIVE = Live()


def feed(host):
    items = "".join(
        f"<item><title>Episode {n}</title><guid>{host}/episode-{n}</guid><pubDate>{formatdate(MODIFIED + n * 86400)}</pubDate>"
        f'<enclosure url="https://{host}/episode-{n}.mp3" length="65325" type="audio/mpeg"/></item>' for n in (3, 2, 1))
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>Episodes</title><link>https://{host}/</link>{items}</channel></rss>\n'.encode()


def content(media, host, path):
    """Bytes and their extension; None where there is nothing."""
    name = os.path.basename(path) or "index.html"
    extension = os.path.splitext(name)[1]
    if name == "live.m3u8":
        return LIVE.playlist(), extension
    if extension == ".xml":
        return feed(host), extension
    if extension == ".html":
        return b"<!doctype html><title>Films</title><video src=film.mp4></video>\n", extension
    if match := re.fullmatch(r"live-(\d+)\.ts", name):
        name = f"live-{int(match.group(1)) % 4}.ts"
    for directory in ("", "hls", "dash"):
        for candidate in (name, SAMPLES.get(extension, name)):
            file = os.path.join(media, directory, candidate)
            if os.path.isfile(file):
                with open(file, "rb") as opened:
                    return opened.read(), extension
    return None


def parse_range(field, size):
    """The half-open range that a Range field asks for: None for the whole, () where it is outside."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", field or "")
    if not match or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    start, end = (int(first), min(size, int(last) + 1 if last else size)) if first else (max(0, size - int(last)), size)
    return (start, end) if start < end else ()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, sends_body):
        host = self.headers.get("Host", "example.org").partition(":")[0]
        found = None if "gone" in self.path else content(self.server.media, host, self.path.partition("?")[0])
        if found is None:
            return self.send_error(404)
        body, extension = found
        tag = '"%s"' % hashlib.sha256(body).hexdigest()[:16]
        if self.headers.get("If-None-Match") == tag:
            self.send_response(304)
            self.send_header("ETag", tag)
            return self.end_headers()
        wanted = parse_range(self.headers.get("Range"), len(body)) if self.headers.get("If-Range", tag) == tag else None
        start, end = (0, len(body)) if wanted is None else wanted or (0, 0)
        self.send_response(200 if wanted is None else 206 if wanted else 416)
        if wanted is not None:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}" if wanted else f"bytes */{len(body)}")
        self.send_header("Content-Type", TYPES.get(extension, "application/octet-stream"))
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", tag)
        self.send_header("Accept-Ranges", "bytes")
        if extension not in (".m3u8", ".mpd", ".xml", ".html"):
            self.send_header("Last-Modified", formatdate(MODIFIED, usegmt=True))
            self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        if sends_body:
            self.wfile.write(body[start:end])

    def log_message(self, format, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def __init__(self, port, media, context=None):
        self.media, self.context = media, context
        super().__init__(("0.0.0.0", port), Handler)

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # without a look-up of this machine's name
        self.server_name, self.server_port = "origin", self.server_address[1]

    def finish_request(self, request, client_address):
        # In the connection's own thread, as the handshake may take its time.
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass


def main():
    media = sys.argv[1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(media, "server.pem"), os.path.join(media, "server.key"))
    servers = [Server(80, media), Server(8080, media), Server(443, media, context)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()  # until the world ends


main()
