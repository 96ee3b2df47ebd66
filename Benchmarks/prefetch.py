#!/usr/bin/env python3
"""Ten episodes prefetched from a slow origin, killed on the way, and played without the network.

    REELCACHE=.build/release/reelcache Benchmarks/prefetch.py [--by command|proxy] [--rate 30000000] [--kills 5] [--seed 5] [--mpv] [--json FILE]

Ten WAV files of 100 MB of noise, from an origin that counts what it hands to its sockets (tools/slorigin.c), limited to RATE bytes per second
in all. They are fetched by `reelcache prefetch` alone, or by a proxy to which `reelcache prefetch --detach` has given them. That process gets
SIGKILL at KILLS random moments (in terms of bytes sent), and is started again: the command as it was, the proxy without being told anything.
Then the origin is stopped, each episode is read through a proxy and compared byte by byte, and with --mpv each is played to its end.

Prints what the origin has sent over what the episodes have. Ends with 1 where that is more than 1.02, or a byte is wrong.
"""
import argparse
import atexit
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import bench
from bench import DATA, PORT_B, RUN, TOOLS, Origins, Service

PORT = 28023
COUNT, SIZE = 10, 100_000_000
TARGET = 1.02


def main():
    options = arguments()
    if "REELCACHE" not in os.environ:
        sys.exit("name the binary of a release build in REELCACHE")
    os.environ["REELCACHE"] = os.path.abspath(os.environ["REELCACHE"])
    atexit.register(bench.stop_all)
    bench.prepare([])
    DATA.mkdir(parents=True, exist_ok=True)
    episodes = [episode(number) for number in range(COUNT)]
    run = bench.fresh(RUN / "prefetch-origin")
    origin = Service("origin", [str(TOOLS / "slorigin"), "--port", str(PORT_B), "--root", str(DATA), "--log", str(run / "requests.log")], PORT_B, run)
    run = bench.fresh(RUN / "prefetch")
    Origins.limit(total_bps=options.rate)
    start = time.time()
    (by_command if options.by == "command" else by_proxy)(run / "cache", urls(episodes), moments(options))
    seconds = time.time() - start
    sent = Origins.stats()
    origin.stop()
    compare(run / "cache", episodes, options.mpv)
    total = COUNT * SIZE
    row = {"by": options.by, "kills": options.kills, "rate": options.rate, "episodes": total, "sent": sent["bytes"], "requests": sent["gets"],
           "ratio": sent["bytes"] / total, "seconds": round(seconds, 1), "played": COUNT if options.mpv else 0}
    if options.json:
        with open(options.json, "w") as out:
            json.dump(row, out, indent=1)
    print("| by | kills | requests | bytes sent by the origin | bytes of the episodes | sent / bytes | seconds | equal | played without network |")
    print("|---|---|---|---|---|---|---|---|---|")
    print(f"| {row['by']} | {row['kills']} | {row['requests']} | {row['sent']:,} | {total:,} | {row['ratio']:.4f} | {row['seconds']} | {COUNT} of {COUNT} | "
          f"{row['played']} |")
    sys.exit(0 if row["ratio"] <= TARGET else 1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--by", choices=["command", "proxy"], default="command")
    parser.add_argument("--rate", type=int, default=30_000_000, metavar="BYTES")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--mpv", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def episode(number):
    """A WAV file of noise, each of its own."""
    path = DATA / f"episode-{number}.wav"
    if not path.exists() or path.stat().st_size != SIZE:
        body = SIZE - 44
        head = b"RIFF" + (36 + body).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little") + b"\x01\x00\x02\x00"
        head += (44100).to_bytes(4, "little") + (176400).to_bytes(4, "little") + b"\x04\x00\x10\x00data" + body.to_bytes(4, "little")
        path.write_bytes(head + random.Random(number).randbytes(body))
    return path


def urls(episodes):
    return [f"http://127.0.0.1:{PORT_B}/{path.name}" for path in episodes]


def moments(options):
    """After how many bytes a kill comes, in order."""
    places = random.Random(options.seed)
    return sorted(places.randrange(SIZE * COUNT * 95 // 100) for _ in range(options.kills))


def flags(cache):
    return ["--cache-dir", str(cache), "--allow", "127.0.0.1"]


def kill_after(process, count):
    """SIGKILL once the origin has sent so much."""
    while Origins.stats()["bytes"] < count:
        if process.poll() is not None:
            sys.exit(f"it ended with {process.returncode} before it could be killed")
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


def by_command(cache, wanted, kills):
    command = [os.environ["REELCACHE"], "prefetch", *flags(cache), *wanted]
    for count in kills:
        kill_after(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), count)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def serve(cache):
    return [os.environ["REELCACHE"], "serve", "--listen", f"127.0.0.1:{PORT}", "--log-level", "error", *flags(cache)]


def by_proxy(cache, wanted, kills):
    # The queue is there before the proxy is.
    subprocess.run([os.environ["REELCACHE"], "prefetch", "--detach", "--cache-dir", str(cache), *wanted], check=True, stdout=subprocess.DEVNULL)
    for count in kills:
        kill_after(subprocess.Popen(serve(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), count)
    proxy = subprocess.Popen(serve(cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # Joins them, and waits for the last.
    while subprocess.run([os.environ["REELCACHE"], "stats", "--cache-dir", str(cache)], capture_output=True).returncode:
        time.sleep(0.05)
    subprocess.run([os.environ["REELCACHE"], "prefetch", "--cache-dir", str(cache), *wanted], check=True, stdout=subprocess.DEVNULL)
    proxy.send_signal(signal.SIGTERM)
    proxy.wait()


def compare(cache, episodes, plays):
    proxy = Service("proxy", serve(cache), PORT, bench.fresh(RUN / "prefetch-proxy"))
    for path in episodes:
        url = f"http://127.0.0.1:{PORT}/http/127.0.0.1:{PORT_B}/{path.name}"
        if bench.ask(url) != path.read_bytes():
            sys.exit(f"{path.name} differs")
        if plays and subprocess.run(
                [shutil.which("mpv") or sys.exit("there is no mpv"), "--no-config", "--really-quiet", "--vo=null", "--ao=pcm", "--ao-pcm-file=/dev/null", url]).returncode:
            sys.exit(f"{path.name} does not play")
    proxy.stop()


if __name__ == "__main__":
    main()
