#!/usr/bin/env python3
"""How long the command line takes: from the start of the process to its end, in ms, over many runs.

    REELCACHE=$(scripts/build-release) Benchmarks/startup.py [--runs 41] [--resources 200]

Commands that look at the cache go through a running proxy, whose cache has that many resources. `true` is what starting a process costs here.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--runs", type=int, default=41)
parser.add_argument("--resources", type=int, default=200)
options = parser.parse_args()
binary = os.environ.get("REELCACHE") or sys.exit("name the binary of a release build in REELCACHE")
binary = os.path.abspath(binary)


def milliseconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


with tempfile.TemporaryDirectory() as work:
    cache = ["--cache-dir", os.path.join(work, "cache")]
    proxy = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", *cache], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        while "serves at" not in proxy.stdout.readline():
            if proxy.poll() is not None:
                sys.exit("the proxy does not start")
        episode = os.path.join(work, "episode.mp3")
        with open(episode, "wb") as file:
            file.write(os.urandom(100_000))
        for number in range(options.resources):
            subprocess.run([binary, "import", episode, "--as", f"https://example.org/episode-{number}.mp3", *cache], check=True, stdout=subprocess.DEVNULL)
        commands = {
            "true": ["true"], "reelcache --version": [binary, "--version"], "reelcache url URL": [binary, "url", "https://example.org/a.mp4", *cache],
            "reelcache ls": [binary, "ls", *cache], "reelcache stats": [binary, "stats", *cache], "reelcache downloads": [binary, "downloads", *cache],
        }
        print(f"{'command':24}{'min':>8}{'median':>8}{'max':>8}")
        for name, command in commands.items():
            times = [milliseconds(command) for _ in range(options.runs)]
            print(f"{name:24}{min(times):8.1f}{statistics.median(times):8.1f}{max(times):8.1f}")
    finally:
        proxy.terminate()
        proxy.wait()
