#!/usr/bin/env python3
"""How many bytes the proxy fetches for those that are wanted.

    REELCACHE=.build/release/reelcache Benchmarks/bytes.py [--seeks 200] [--length 4194304] [--rate 50000000] [--seed 12] [--json FILE]

Plays of a file of 1 GiB, from an origin that counts what it hands to its sockets (tools/slorigin.c):

    linear     the whole, once, into an empty cache
    replay     the same again
    seeks      connections one after the other, each of which asks for `bytes=N-` at a random place, as players do, reads LENGTH, and closes;
               into an empty cache, with `--fill read`, from an origin limited to RATE bytes per second in all
    second     two readers of an unknown file of 24 MiB: one from its start, and 0.3 s later one from 4 MiB on, each to its end; the origin is
               limited to 4 MB/s a connection
    spread     24 readers of an unknown file of 24 MiB at once, each from another MiB on to its end; the same limit

Bytes wanted of seeks that overlap count once: what is cached by then need not be fetched again. The plain sum stands beside it.
Every byte that was read is compared with the file. Ends with 1 where a target is missed.
"""
import argparse
import atexit
import concurrent.futures
import json
import os
import random
import socket
import subprocess
import sys
import time

import bench
from bench import BIG, DATA, MIB, PORT_B, RUN, TOOLS, Origins, Service

PORT = 28022
FILE24 = ("24.bin", 24 * MIB)
PER_CONNECTION = 4_000_000
TARGETS = {"linear": 1.00, "replay": 0.00, "seeks": 1.10, "second": 1.00, "spread": 1.05}


def main():
    options = arguments()
    if "REELCACHE" not in os.environ:
        sys.exit("name the binary of a release build in REELCACHE")
    atexit.register(bench.stop_all)
    bench.prepare([BIG, FILE24])
    run = bench.fresh(RUN / "bytes-origin")
    Service("origin", [str(TOOLS / "slorigin"), "--port", str(PORT_B), "--root", str(DATA), "--log", str(run / "requests.log")], PORT_B, run)
    rows = {}
    with open(DATA / BIG[0], "rb") as file:
        proxy = start()
        rows["linear"] = measure(lambda: [read(file, BIG, 0, BIG[1])], 0)
        rows["replay"] = measure(lambda: [read(file, BIG, 0, BIG[1])], 0)
        proxy.stop()
        proxy = start("--fill", "read")
        places = random.Random(options.seed)
        offsets = [places.randrange(BIG[1] - options.length) for _ in range(options.seeks)]
        rows["seeks"] = measure(lambda: [read(file, BIG, offset, options.length) for offset in offsets], options.rate)
        proxy.stop()
    with open(DATA / FILE24[0], "rb") as file:
        for name, places in [("second", [(0, 0), (4 * MIB, 0.3)]), ("spread", [(number * 7 % 24 * MIB, 0) for number in range(24)])]:
            proxy = start()
            rows[name] = measure(lambda: together(file, FILE24, places), 0, PER_CONNECTION)
            proxy.stop()
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)
    show(rows)
    sys.exit(0 if all(row["ratio"] <= TARGETS[name] + 0.005 for name, row in rows.items()) else 1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeks", type=int, default=200)
    parser.add_argument("--length", type=int, default=4 * MIB, metavar="BYTES")
    parser.add_argument("--rate", type=int, default=50_000_000, metavar="BYTES")
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def start(*flags):
    """A proxy with an empty cache."""
    run = bench.fresh(RUN / "bytes-proxy")
    return Service("proxy", [os.environ["REELCACHE"], "serve", "--listen", f"127.0.0.1:{PORT}", "--cache-dir", str(run / "cache"), "--max-size", "8GB",
                             "--min-free", "100MB", "--allow", "127.0.0.1", "--log-level", "error", *flags], PORT, run)


def measure(play, rate, per_connection=0):
    """Plays, waits until no transfer is running, and asks the origin what it has sent."""
    Origins.limit(total_bps=rate, conn_bps=per_connection)
    parts = play()
    end = time.time() + 60
    while open_fetches() or Origins.stats()["active"]:
        if time.time() > end:
            sys.exit("a transfer does not end")
        time.sleep(0.1)
    sent = Origins.stats()
    wanted, read_in_all = union(parts), sum(stop - begin for begin, stop in parts)
    return {"wanted": wanted, "read": read_in_all, "sent": sent["bytes"], "requests": sent["gets"], "ratio": sent["bytes"] / wanted}


def open_fetches():
    return json.loads(bench.ask(f"http://127.0.0.1:{PORT}/stats"))["upstream"]["open_fetches"]


def union(parts):
    """The bytes in ranges that may overlap."""
    total = reached = 0
    for begin, stop in sorted(parts):
        total += max(0, stop - max(begin, reached))
        reached = max(reached, stop)
    return total


def together(file, name, places):
    """Readers at once, each from a place on, some seconds late."""
    def reader(offset, delay):
        time.sleep(delay)
        return read(file, name, offset, name[1] - offset)
    with concurrent.futures.ThreadPoolExecutor(len(places)) as readers:
        return list(readers.map(lambda place: reader(*place), places))


def read(file, name, offset, length):
    """Asks for all from an offset on, reads so much of it, and leaves. Returns the range."""
    with socket.create_connection(("127.0.0.1", PORT), 60) as player:
        path = f"/http/127.0.0.1:{PORT_B}/{name[0]}"
        player.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nRange: bytes={offset}-\r\n\r\n".encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += receive(player, 65536)
        head, _, data = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 206 "):
            sys.exit(f"not a part: {head.decode()}")
        done = 0
        while done < length:
            data = (data or receive(player, min(MIB, length - done)))[:length - done]
            if data != os.pread(file.fileno(), len(data), offset + done):
                sys.exit(f"wrong bytes after {offset + done}")
            done, data = done + len(data), b""
    return offset, offset + length


def receive(player, limit):
    data = player.recv(limit)
    if not data:
        sys.exit("the proxy has cut the connection")
    return data


def show(rows):
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=bench.PERF).stdout.strip()
    print(f"{revision}: bytes fetched from the origin over bytes wanted\n")
    print("| play | requests | bytes sent by the origin | bytes wanted | bytes read in all | sent / wanted | target | sent / read |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        mark = f"{TARGETS[name]:.2f}" if name != "seeks" else f"≤ {TARGETS[name]:.2f}"
        print(f"| {name} | {row['requests']} | {row['sent']:,} | {row['wanted']:,} | {row['read']:,} | {row['ratio']:.3f} | {mark} | "
              f"{row['sent'] / row['read']:.3f} |")


if __name__ == "__main__":
    main()
