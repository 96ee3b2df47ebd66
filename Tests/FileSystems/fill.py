"""Tries a cache on one file system, and prints what became of it: fill.py REELCACHE DIRECTORY LIMIT-IN-MB [CONTROL]

CONTROL names the file that controls the fault layer below the file system: then reads fail.
"""

import concurrent.futures
import errno
import glob
import http.client
import http.server
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

reelcache, directory, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]) * 1_000_000
disk = os.path.dirname(directory)
errors = disk + ".messages"
seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
dice = random.Random(seed)
films, proxies = [], []
# Three times the limit: segments, songs and films; the longest take a fifth of the cache.
while sum(map(len, films)) < 3 * limit:
    films.append(dice.randbytes(dice.choice([dice.randrange(1, 40_000), dice.randrange(1_000_000), limit // dice.randrange(5, 20)])))


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests = 0

    def do_GET(self):
        Origin.requests += 1
        film = films[int(self.path[1:-4])]
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = int(asked[1] if asked else 0), int(asked[2]) + 1 if asked and asked[2] else len(film)
        end = min(end, len(film))
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(film)}")
        for name, value in {"Content-Length": end - start, "Content-Type": "video/mp4", "ETag": f'"{len(film)}"'}.items():
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(film[start:end])
        except OSError:
            self.close_connection = True  # The proxy was killed, or has enough.

    log_message = lambda *_: None


class Proxy:
    def __init__(self, *options):
        command = [reelcache, "serve", "--listen", "127.0.0.1:0", "--cache-dir", directory, "--allow", "127.0.0.1", *options]
        with open(errors, "w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        proxies.append(self.process)
        self.is_killed = False
        found = (re.search(r"http://127\.0\.0\.1:(\d+)", line) for line in self.process.stdout)
        self.port = next((int(match[1]) for match in found if match), None)
        if not self.port:
            raise RuntimeError(f"the proxy does not start: {self.last_message()}")

    def end(self, how):
        self.is_killed = how == signal.SIGKILL
        self.process.send_signal(how)
        if self.process.wait(60) not in (0, -signal.SIGKILL):
            raise RuntimeError(f"the proxy ended with {self.process.returncode}: {self.last_message()}")

    def last_message(self):
        with open(errors) as log:
            return (log.read().strip().splitlines() or ["no message"])[-1]

    def play(self, number, start, end):
        """Requests a part of a film, and compares it."""
        film, got = films[number], None
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", f"/http/127.0.0.1:{port}/{number}.mp4", headers={"Range": f"bytes={start}-{end - 1}"})
            got = connection.getresponse().read()
            error = f"{len(got)} other bytes"
        except (OSError, http.client.HTTPException) as failure:
            error = repr(failure)
        finally:
            connection.close()
        if got != film[start:end] and not self.is_killed:
            raise RuntimeError(f"film {number}, bytes {start} to {end} of {len(film)}: {error}")

    def fill(self, count, limit, meanwhile=lambda: None):
        """Plays parts of films at random, on four connections, until this many bytes were played. Returns the most that the cache took."""

        def run():
            played = most = 0
            while played < count / 4:
                number = dice.randrange(len(films))
                length = len(films[number])
                start = dice.choice([0, 0, dice.randrange(length), max(0, length - 70_000)])
                end = dice.choice([length, dice.randrange(start, length) + 1])
                self.play(number, start, end)
                played, most = played + end - start, max(most, taken())
                if most > limit:
                    raise RuntimeError(f"it takes {most} bytes of {limit}")
            return most

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            plays = [pool.submit(run) for _ in range(4)]
            meanwhile()
        return max(play.result() for play in plays)


def taken():
    return int(subprocess.run(["du", "--summarize", "--block-size=1", directory], capture_output=True, text=True).stdout.split()[0])


def end_all():
    for process in proxies:
        process.kill()
        process.wait()


def command(*arguments):
    done = subprocess.run([reelcache, *arguments, "--cache-dir", directory], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def holes():
    """What the file system does with them."""
    path = os.path.join(disk, "trial")
    with open(path, "wb") as file:
        file.write(b"x" * 65_536)
    punches = subprocess.run(["fallocate", "--punch-hole", "--length", "65536", path], capture_output=True).returncode == 0
    os.truncate(path, 1 << 20)
    keeps = os.stat(path).st_blocks * 512 < 1 << 20
    os.remove(path)
    return "punched" if punches else "kept" if keeps else "filled"


def try_all():
    options = ["--max-size", str(limit), "--min-free", "0"]
    proxy = Proxy(*options)
    most = proxy.fill(3 * limit, limit)

    proxy.fill(limit, limit, meanwhile=lambda: (proxy.play(0, 0, len(films[0])), proxy.end(signal.SIGKILL)))
    proxy = Proxy(*options)
    most = max(most, proxy.fill(limit, limit))
    longest = max(range(len(films)), key=lambda number: len(films[number]))
    proxy.play(longest, 0, len(films[longest]))
    proxy.end(signal.SIGTERM)
    command("verify")
    exported = os.path.join(disk, "exported")
    command("export", f"http://127.0.0.1:{port}/{longest}.mp4", "--output", exported)
    with open(exported, "rb") as file:
        if file.read() != films[longest]:
            raise RuntimeError("export: other bytes")
    os.remove(exported)
    # The disk becomes full long before the limit is reached.
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(os.path.join(disk, "ballast"), "wb") as ballast:
        for _ in range((free - 8_000_000) // 1_000_000):
            ballast.write(os.urandom(1_000_000))
    proxy = Proxy("--max-size", "10GB", "--min-free", "1MB")
    proxy.fill(limit, 10**10)
    proxy.end(signal.SIGKILL)
    os.remove(ballast.name)
    command("verify")
    return most


class Layer:
    """The rules of Tests/FaultLayer, for reads of data."""

    def __init__(self, path):
        self.control = open(path, "r+b", buffering=0)

    def fail(self, reads):
        self.control.seek(4 * 8)
        self.control.write(struct.pack("=5Q", 2 if reads else 0, 1, errno.EIO, 0, 0))

    @property
    def failures(self):
        self.control.seek(8 * 8)
        return struct.unpack("=Q", self.control.read(8))[0]


def try_failing_reads(layer):
    """Reads fail, also those of pages that are mapped, and writes do not: no answer is cut, and none is wrong."""
    films.append(dice.randbytes(20_000_000))  # more than sockets hold
    options, played = ["--max-size", "200MB", "--min-free", "0"], list(range(41)) + [len(films) - 1]

    def play_all():
        before, cut = Origin.requests, []
        for number in played:
            try:
                proxy.play(number, 0, len(films[number]))
            except RuntimeError as error:
                cut.append(error)
        if cut or proxy.process.poll() is not None:
            raise RuntimeError(f"{len(cut)} of {len(played)} answers were cut ({cut[:1]}), exit {proxy.process.poll()}")
        return Origin.requests - before

    def begin(number):
        player = socket.socket()
        player.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        player.connect(("127.0.0.1", proxy.port))
        player.sendall(f"GET /http/127.0.0.1:{port}/{number}.mp4 HTTP/1.0\r\n\r\n".encode())
        return player, player.recv(4096)

    proxy = Proxy(*options)
    play_all()
    if play_all() > 0:
        raise RuntimeError("it does not cache")
    begun = [begin(played[-1]) for _ in range(3)]
    layer.fail(True)
    for path in glob.glob(os.path.join(directory, "data", "*", "*")):
        open(path, "rb").close()  # The kernel forgets the file's pages.
    for player, got in begun:
        while piece := player.recv(1 << 20):
            got += piece
        if got.partition(b"\r\n\r\n")[2] != films[played[-1]]:
            raise RuntimeError(f"an answer that had begun was cut, or is wrong: {len(got)} bytes")
    play_all()
    failures = layer.failures
    if failures == 0:
        raise RuntimeError("no read failed")
    if play_all() < len(played) or layer.failures > failures:
        raise RuntimeError("what could not be read was read again")
    layer.fail(False)
    proxy.end(signal.SIGTERM)
    proxy = Proxy(*options)
    play_all()
    if play_all() > 0:
        raise RuntimeError("it does not cache after a restart")
    proxy.end(signal.SIGTERM)
    return f"{failures} failed reads, no answer cut"


signal.signal(signal.SIGTERM, lambda *_: (end_all(), os._exit(124)))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
server.daemon_threads, server.handle_error, port = True, lambda *_: None, server.server_port
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    print(f"{holes():<8} ", end="", flush=True)
    what = try_failing_reads(Layer(sys.argv[4])) if len(sys.argv) > 4 else f"at most {try_all() / limit:.0%} of the limit"
    print(f"as it should be; {what}")
except RuntimeError as error:
    print(f"FAILED: {error} (SEED={seed})")
    sys.exit(1)
finally:
    end_all()
