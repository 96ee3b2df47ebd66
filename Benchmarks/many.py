#!/usr/bin/env python3
"""Random hits over many cached files of 64 KiB, beside nginx, which serves the same files of the cache directory.

    REELCACHE=PATH-OF-THE-BINARY Benchmarks/many.py [--files 4000,10000,100000] [--clients 8] [--rounds 5] [--seconds 4] [--directory DIR]

Beyond 4,096 of them, files are opened and closed again and again. In each round both serve in turn, with two threads or workers; medians.
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

import scale

PORT = 28210


def nginx(work, cache):
    with open(f"{work}/nginx.conf", "w") as file:
        file.write(f"daemon off; worker_processes 2; user root; pid {work}/nginx.pid; error_log {work}/nginx.log; events {{ worker_connections 512; }}\n"
                   f"http {{ access_log off; sendfile on; keepalive_requests 10000000; open_file_cache max=4096;\n"
                   f"server {{ listen 127.0.0.1:{PORT}; root {cache}/data; }} }}\n")
    process = subprocess.Popen(["nginx", "-c", f"{work}/nginx.conf"])
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", PORT), 1).close()
            return process
        except OSError:
            time.sleep(.05)
    raise SystemExit("many: nginx does not listen")


def load(rload, port, paths, options):
    answer = subprocess.run([rload, "--port", str(port), "--paths", paths, "--conns", str(options.clients), "--duration", str(options.seconds),
                             "--requests", "100000000"], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def measure(binary, rload, work, count, options):
    cache = f"{work}/{count}"
    scale.generate(binary, cache, count)
    names = sorted(f"{shard}/{name}" for shard in os.listdir(f"{cache}/data") for name in os.listdir(f"{cache}/data/{shard}"))
    for paths, lines in (("ours", map(scale.target, range(count))), ("nginx", ("/" + name for name in names))):
        with open(f"{work}/{paths}", "w") as file:
            file.writelines(line + "\n" for line in lines)
    proxy, peer = scale.Proxy(binary, cache, 100_000_000_000), nginx(work, cache)
    idle, samples = proxy.resident()["RssAnon"], {"ours": [], "nginx": []}
    try:
        for _ in range(options.rounds + 1):
            for name, port in (("ours", proxy.port), ("nginx", PORT)):
                samples[name].append(load(rload, port, f"{work}/{name}", options))
        memory = proxy.resident()["RssAnon"] - idle
    finally:
        peer.terminate()
        peer.wait(10)
        proxy.stop()
        shutil.rmtree(cache)
    rate = {name: [one["rps"] for one in all[1:]] for name, all in samples.items()}
    ratio = statistics.median(a / b for a, b in zip(rate["ours"], rate["nginx"]))
    print(f"| {count:,} | {statistics.median(rate['nginx']):,.0f} | {statistics.median(rate['ours']):,.0f} | {ratio:.2f} | {memory / 1e6:.0f} MB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", default="4000,10000,100000")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--directory", default=os.environ.get("REELCACHE_BENCH_DIR"))
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="reelcache-many-", dir=options.directory)
    os.chmod(work, 0o755)
    try:
        rload = f"{work}/rload"
        subprocess.run(["cc", "-O2", "-o", rload, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools/rload.c")], check=True)
        print("| files | nginx, requests/s | Reelcache | ratio | memory beside idle |\n|---|---|---|---|---|", flush=True)
        for count in map(int, options.files.split(",")):
            measure(os.environ["REELCACHE"], rload, work, count, options)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
