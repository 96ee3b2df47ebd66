#!/usr/bin/env python3
"""One file over several connections, beside aria2, from an origin with a limit for each connection.

    REELCACHE=.build/release/reelcache Benchmarks/connections.py [--connections 4,8,16] [--rounds 5] [--per-connection 50000000] [--latency 20] [--json FILE]

The origin (tools/slorigin.c) answers after LATENCY milliseconds and then sends PER-CONNECTION bytes per second. In each round the same file is
fetched by aria2 (-xN -sN -k1M, without allocating first), by `reelcache prefetch --connections N`, and by the same with `-o`, in turn, each
beginning with nothing. Times are those of whole commands, from start to exit. What has come is compared byte by byte once for each number of connections.

The ratio to aria2 is taken round by round, then the median: on a machine that does other things as well, only that says something.
"""
import argparse
import atexit
import filecmp
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

import bench
from bench import BIG, DATA, RUN, TOOLS, Origins, Service


def main():
    options = arguments()
    if "REELCACHE" not in os.environ:
        sys.exit("name the binary of a release build in REELCACHE")
    bench.PORT_B = options.port
    atexit.register(bench.stop_all)
    bench.prepare([BIG])
    size = options.size or BIG[1]
    path = DATA / BIG[0]
    if size != BIG[1]:
        path = DATA / f"part-{size}.bin"
        if not path.exists():
            with open(DATA / BIG[0], "rb") as whole:
                path.write_bytes(whole.read(size))
    run = bench.fresh(RUN / "connections-origin")
    Service("origin", [str(TOOLS / "slorigin"), "--port", str(options.port), "--root", str(DATA), "--log", str(run / "requests.log")], options.port, run)
    rows = [row for count in options.connections for row in measure(count, path, options)]
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)
    print("| connections | by | MB/s | of aria2 | CPU s/GB | requests | sent / size |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['connections']} | {row['by']} | {row['rate']:.0f} | {row['ratio']:.2f} | {row['cpu']:.2f} | {row['requests']} | {row['sent']:.3f} |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=lambda text: [int(part) for part in text.split(",")], default=[4, 8, 16], metavar="N,N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--per-connection", type=int, default=50_000_000, metavar="BYTES")
    parser.add_argument("--latency", type=int, default=20, metavar="MS")
    parser.add_argument("--size", type=int, metavar="BYTES", help="of the file; 1 GiB without it")
    parser.add_argument("--port", type=int, default=bench.PORT_B)
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def commands(count, url, run):
    """Of each: what is run, and where the file is then; nil where it is in the cache."""
    ours = [os.environ["REELCACHE"], "prefetch", "-q", "--allow", "127.0.0.1", "--connections", str(count), url]
    target = run / "files"
    target.mkdir()
    name = url.rpartition("/")[2]
    return {
        "aria2": (["aria2c", "-q", "--no-conf", "--file-allocation=none", f"-x{count}", f"-s{count}", "-k1M", "-d", str(target), "-o", "aria2", url],
                  target / "aria2"),
        "prefetch": ([*ours, "--cache-dir", str(run / "cache")], None),
        "prefetch -o": ([*ours, "--cache-dir", str(run / "cache-o"), "-o", str(target)], target / name),
    }


def measure(count, path, options):
    size = path.stat().st_size
    url = f"http://127.0.0.1:{options.port}/{path.name}"
    names, found = ["aria2", "prefetch", "prefetch -o"], []
    for turn in range(options.rounds):
        run = bench.fresh(RUN / "connections")
        all_commands, figures = commands(count, url, run), {}
        for name in names[turn % 3:] + names[:turn % 3]:
            command, file = all_commands[name]
            os.sync()
            Origins.limit(latency_ms=options.latency, conn_bps=options.per_connection)
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            stats = Origins.stats()
            figures[name] = {"seconds": seconds, "cpu": cpu / size * 1e9, "requests": stats["gets"], "sent": stats["bytes"] / size}
            if turn == 0 and file and not filecmp.cmp(file, path, shallow=False):
                sys.exit(f"what {name} has fetched differs")
        found.append(figures)
        print(f"{count} connections, round {turn + 1}: " + ", ".join(f"{name} {size / figures[name]['seconds'] / 1e6:.0f} MB/s" for name in names),
              file=sys.stderr)
    median = statistics.median
    return [{"connections": count, "by": name, "rate": size / median(f[name]["seconds"] for f in found) / 1e6,
             "ratio": median(f["aria2"]["seconds"] / f[name]["seconds"] for f in found),
             "cpu": median(f[name]["cpu"] for f in found), "requests": median(f[name]["requests"] for f in found),
             "sent": median(f[name]["sent"] for f in found)} for name in names]


if __name__ == "__main__":
    if not shutil.which("aria2c"):
        sys.exit("there is no aria2c: install aria2")
    main()
