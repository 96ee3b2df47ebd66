#!/usr/bin/env python3
"""A slow web server for demonstrations: the files of a directory, with ranges, entity tags and a limited rate.

The first line on standard output is its URL; each further one is a request and what was sent for it.
"""
import argparse
import hashlib
import os
import re
import sys
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 8 * 1024


def parse_range(field, size):
    """The half-open range that a Range field asks for: None for the whole, () where it is outside of the file."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", field or "")
    if not match or match.group(0) == "bytes=-":
        return None  # RFC 9110 section 14.2: what is not understood is ignored
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
    return (start, end) if start < end else ()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(sends_body=False)

    def do_GET(self):
        self.answer(sends_body=True)

    def answer(self, sends_body):
        # Only the name: no request leads out of the directory.
        path = os.path.join(self.server.directory, os.path.basename(self.path.partition("?")[0]))
        try:
            file = open(path, "rb")
        except OSError:
            return self.send_error(404)
        with file:
            status = os.fstat(file.fileno())
            tag = '"%s"' % hashlib.sha256(f"{status.st_size}-{status.st_mtime_ns}".encode()).hexdigest()[:16]
            wanted = parse_range(self.headers.get("Range"), status.st_size)
            if self.headers.get("If-Range", tag) != tag:
                wanted = None  # RFC 9110 section 13.1.5: another version is sent whole
            self.send_head(wanted, status, tag)
            if sends_body and wanted != ():
                self.send_body(file, *(wanted or (0, status.st_size)))

    def send_head(self, wanted, status, tag):
        size = status.st_size
        start, end = wanted or ((0, size) if wanted is None else (0, 0))
        self.send_response(200 if wanted is None else 206 if wanted else 416)
        self.send_header("Content-Length", str(end - start))
        if wanted is not None:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}" if wanted else f"bytes */{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", tag)
        self.send_header("Last-Modified", formatdate(status.st_mtime, usegmt=True))
        self.send_header("Content-Type", "video/mp4")
        self.end_headers()

    def send_body(self, file, start, end):
        began, sent = time.monotonic(), 0
        file.seek(start)
        try:
            while sent < end - start:
                piece = file.read(min(PIECE, end - start - sent))
                self.wfile.write(piece)
                sent += len(piece)
                time.sleep(max(0, began + sent / self.server.rate - time.monotonic()))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            print(f"{self.command} {self.path} {self.headers.get('Range', 'whole')}: {sent} bytes sent", flush=True)

    def log_message(self, format, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", help="whose files are served")
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1 (default: any that is free)")
    parser.add_argument("--rate", type=int, default=300_000, help="bytes per second for each transfer (default: %(default)s)")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.daemon_threads = True
    server.directory, server.rate = options.directory, options.rate
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
