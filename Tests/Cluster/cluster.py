#!/usr/bin/env python3
"""Scenarios with several Reelcaches behind a balancer, on machines of their own.

Runs within namespaces that scripts/cluster enters. Each scenario prints what it measured beside the limit; the exit code is 1 if one was missed.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import players  # noqa: E402
import scenarios  # noqa: E402
from machines import Cluster  # noqa: E402


def main():
    options = arguments()
    players.VERSION = 2 if options.wrong else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work = tempfile.mkdtemp(prefix="reelcache-cluster-", dir=options.dir)
    try:
        cluster = Cluster(options, work)
        if options.scenarios == ["up"]:
            up(cluster)
        else:
            sys.exit(0 if run(cluster, options) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if options.keep:
            print(f"cluster: logs and caches are in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)


def arguments():
    listing = "\n".join(f"  {name:12}{function.__doc__.splitlines()[0]}" for name, function in scenarios.ALL.items())
    parser = argparse.ArgumentParser(prog="cluster", description="Runs several Reelcaches behind a balancer, on machines of their own.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=f"scenarios:\n{listing}\n  {'up':12}Start the cluster and wait for Ctrl-C.")
    parser.add_argument("scenarios", nargs="*", default=["all"], metavar="SCENARIO", help="what to run (default: all)")
    parser.add_argument("--short", action="store_true", help="run each with fewer and smaller films")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--json", metavar="FILE", help="write the results to this file too")
    parser.add_argument("--dir", metavar="DIR", help="keep caches and logs below this directory (default: the temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the logs and caches there")
    parser.add_argument("--rounds", type=int, default=5, help="of the scenario throughput (default: %(default)s)")
    parser.add_argument("--flags", default="", help="give each node these further flags of reelcache serve, in one argument")
    parser.add_argument("--wrong", action="store_true", help="compare with other bytes than the origin's: shows that the players notice")
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.scenarios if name not in (*scenarios.ALL, "all", "up")]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]}: --help lists them")
    return options


def run(cluster, options):
    """Whether all limits were met."""
    everything = [name for name in scenarios.ALL if not (options.short and name in scenarios.FIGURES)]
    chosen = everything if "all" in options.scenarios else options.scenarios
    rows = []
    print(f"{'scenario':11} {'what':72} {'measured':>12} {'limit':>10}")
    for name in chosen:
        began = time.monotonic()
        try:
            results = scenarios.ALL[name](cluster, options)
        finally:
            cluster.stop()
        for result in results:
            rows.append({"scenario": name, **result._asdict(), "met": result.met()})
            print(f"{name:11} {result.what:72} {result.text():>12} {result.limit_text():>10}{'' if result.met() else '   MISSED'}", flush=True)
        print(f"{name:11} ({time.monotonic() - began:.0f} s)", flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)
    return all(row["met"] for row in rows)


def up(cluster):
    cluster.start()
    print("""The cluster runs until Ctrl-C. From another shell, as root:

    pid=$(pgrep -n -f Tests/Cluster/cluster.py)
    nsenter --target $pid --net --mount curl -sI http://media.example/films/100000-200000/1.mp4
    nsenter --target $pid --net --mount bash          # ls /run/netns: the other machines
""", flush=True)
    try:
        while True:
            time.sleep(3600)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
