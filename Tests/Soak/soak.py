#!/usr/bin/env python3
"""A long run of one proxy under mixed players, downloads, evictions, faults of the origin and reloads.

Every byte that a player gets is compared with what it has to be. Memory, descriptors, threads and disk are sampled, and have to be flat once
the proxy is warm. Prints one line a minute and a summary; ends with 1 on a wrong byte or answer, on growth, and where the proxy died.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import media  # noqa: E402
import meter  # noqa: E402
import plays  # noqa: E402
from media import MIB  # noqa: E402
from origin import Origin  # noqa: E402
from player import TIMEOUT, Connection, Cut, Wrong  # noqa: E402

MAX_SIZE = 160 * 10**6
STALL = 6
EVERY = 2  # seconds between samples
CONFIGURATIONS = [
    "", "fill: end\n", "fill: read\n", "fill: ahead 4MiB\ndownload_rate: 3MB\n", "max_downloads: 1\nlog_level: warning\n",
    "rules:\n- host: 127.0.0.2\n  path: /short/*\n  ttl: 1h\n- path: '*.mp4'\n  max_object: 10MB\n",
    "fill: ahead 1MiB\nrules:\n- path: /nostore/*\n  ignore_no_store: true\n",
    "max_size: 120MB\n",
    "max_siez: 1\n", "rules: [{path: 3\n",  # mistakes, which change nothing
]


class Pace:
    """Keeps the CPU of this process and of the proxy together, and the bytes read, within a share: whoever wants to begin something waits."""

    def __init__(self, cores, rate):
        self.cores, self.rate, self.pid = cores, rate, None
        self.lock = threading.Lock()
        self.credit, self.bytes, self.at, self.used = 1.0, 0, time.monotonic(), 0.0

    def note(self, count):
        self.bytes += count

    def refresh(self):
        with self.lock:
            now = time.monotonic()
            if now - self.at < 0.1:
                return
            used = time.process_time() + (meter.processor(self.pid) if self.pid else 0)
            passed, spent = now - self.at, max(0.0, used - self.used)
            # Of the two budgets the one that is more overdrawn counts.
            self.credit = min(2.0, self.credit + passed - max(spent / self.cores, self.bytes / self.rate))
            self.at, self.used, self.bytes = now, used, 0

    def wait(self):
        while True:
            try:
                self.refresh()
            except OSError:
                return  # the proxy is gone, which somebody else reports
            if self.credit > 0:
                return
            time.sleep(0.05)


class Soak:
    def __init__(self, options):
        self.options = options
        self.seed = options.seed
        self.directory = tempfile.mkdtemp(prefix="reelcache-soak-", dir=options.dir)
        self.cache = os.path.join(self.directory, "cache")
        self.configuration = os.path.join(self.directory, "reelcache.yaml")
        self.log = os.path.join(self.directory, "proxy.log")
        self.pace = Pace(options.cores, options.rate)
        # Two names of this machine, so that what is wrong with one origin is not held against the other.
        self.correct = Origin("127.0.0.1", 0, options.rate, STALL, self.seed)
        self.faulty = Origin("127.0.0.2", options.faults, options.rate, STALL + 4, self.seed + 1)
        self.counts, self.failures, self.lock = Counter(), [], threading.Lock()
        self.stopping = threading.Event()
        self.samples = []

    # What plays report

    def count(self, name, number=1):
        with self.lock:
            self.counts[name] += number

    def fail(self, text):
        with self.lock:
            self.failures.append(text)
            few = len(self.failures) <= 40
        if few:
            print(f"FAILED: {text}", flush=True)

    def rest(self, seconds):
        self.stopping.wait(seconds)

    def attend(self, play, visit):
        """One play. What is wrong becomes a failure."""
        try:
            play(visit)
        except Wrong as error:
            self.fail(f"{play.__name__} {visit.path}: {error}")
        except (Cut, OSError) as error:
            self.count("cut")
            if not visit.may_be_cut and not self.stopping.is_set() and not getattr(visit, "may_end", False):
                self.fail(f"{play.__name__} {visit.path}: {error!r}, though its origin is well")
        except Exception:  # a mistake of this program is a failure too
            self.fail(f"{play.__name__} {visit.path}: {traceback.format_exc()}")
        self.count("plays")
        self.count(play.__name__)

    # The proxy

    def start(self):
        self.configure("")
        self.process = subprocess.Popen(
            [self.options.binary, "serve", "--listen", "127.0.0.1:0", "--cache-dir", self.cache, "--config", self.configuration,
             "--allow", "127.0.0.0/8", "--threads", str(self.options.threads), "--stall-timeout", f"{STALL}s", "--min-free", "100MB"],
            stdout=subprocess.PIPE, stderr=open(self.log, "wb"), text=True)
        line = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not match:
            sys.exit(f"soak: the proxy does not start: {line}{open(self.log).read()}")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.port, self.pace.pid = int(match.group(1)), self.process.pid
        with open(os.path.join(self.cache, "control-token")) as file:
            self.token = file.read().strip()

    def configure(self, text):
        limit = "" if "max_size" in text else f"max_size: {MAX_SIZE // 10**6}MB\n"
        with open(self.configuration + ".new", "w") as file:
            file.write(limit + text)
        os.replace(self.configuration + ".new", self.configuration)

    def api(self, method, path, body=None):
        """The status and the JSON of an answer of the control interface."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                text = reply.read()
                return reply.status, json.loads(text) if text.startswith((b"{", b"[")) else text
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    # What goes on beside the players, each on a thread

    def run_players(self, number):
        choices = random.Random(f"{self.seed} {number}")
        while not self.stopping.is_set():
            self.pace.wait()
            play = choices.choices(list(plays.SHARES), plays.SHARES.values())[0]
            self.attend(play, plays.Visit(self, choices.getrandbits(48)))

    def run_reloads(self):
        choices = random.Random(f"{self.seed} reloads")
        while not self.stopping.wait(choices.uniform(10, 30)):
            self.configure(choices.choice(CONFIGURATIONS))
            self.process.send_signal(signal.SIGHUP)
            self.count("reloads")

    def run_polls(self):
        """Statistics and listings, and whether somebody answers."""
        choices = random.Random(f"{self.seed} polls")
        while not self.stopping.wait(2):
            for path in ["/healthz", "/stats", choices.choice(["/api/v1/cache", "/api/v1/resources?sort=size&limit=50", "/api/v1/downloads?state=all", "/"])]:
                began = time.monotonic()
                status, _ = self.api("GET", path)
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.count("polls")
                if status != 200 and path != "/":
                    self.fail(f"{path}: {status}")

    def run_downloads(self):
        choices = random.Random(f"{self.seed} downloads")
        while not self.stopping.wait(choices.uniform(1, 5)):
            visits = [plays.Visit(self, choices.getrandbits(48), choices.choice(media.targets(choices.choice(["film", "film", "weak", "dated", "seg", "short"]))))
                      for _ in range(choices.randrange(1, 4))]
            self.download(choices, visits)
        self.api("PATCH", "/api/v1/downloads?all=true", {"action": "cancel"})

    def download(self, choices, visits):
        orders = [{"url": f"http://{visit.origin.host}:{visit.origin.port}{visit.target}", "connections": choices.choice([1, 1, 2, 4]),
                   "priority": choices.choice(["high", "normal", "low"])} for visit in visits]
        status, reply = self.api("POST", "/api/v1/downloads", {"downloads": orders})
        if status not in (200, 201):
            return self.fail(f"downloads are not taken: {status} {reply}")
        ids = ",".join(str(report["id"]) for report in reply["downloads"])
        states = []
        until = time.monotonic() + 60
        while time.monotonic() < until and not self.stopping.wait(1):
            status, reply = self.api("GET", f"/api/v1/downloads?id={ids}")
            states = [report["state"] for report in reply["downloads"]] if status == 200 else []
            if all(state in ("completed", "cancelled") for state in states):
                break
            if choices.random() < 0.15:
                self.api("PATCH", f"/api/v1/downloads?id={ids}&all=true", {"action": choices.choice(["pause", "cancel", "retry", "resume", "resume"])})
            elif "paused" in states:
                self.api("PATCH", f"/api/v1/downloads?id={ids}&all=true", {"action": "resume"})
        for state in states:
            self.count(f"download {state}")
        for visit, state in zip(visits, states):
            if state == "completed":
                self.attend(downloaded, visit)
        self.api("PATCH", f"/api/v1/downloads?id={ids}&all=true", {"action": "cancel"})
        for visit in visits:
            url = urllib.request.quote(f"http://{visit.origin.host}:{visit.origin.port}{visit.target}", safe="")
            self.api("PATCH", f"/api/v1/resources?url={url}", {"pinned": False})
            if choices.random() < 0.2 and visit.is_faulty:
                self.api("DELETE", f"/api/v1/resources?url={url}")
        if choices.random() < 0.3:
            self.api("DELETE", "/api/v1/downloads/history")

    def guarded(self, run, *arguments):
        try:
            run(*arguments)
        except Exception as error:
            if not self.stopping.is_set():
                self.fail(f"{run.__name__}: {error!r}" if isinstance(error, OSError) else f"{run.__name__}: {traceback.format_exc()}")

    # The run

    def run(self):
        self.start()
        self.slowest = 0.0
        print(f"soak: seed {self.seed}, proxy {self.process.pid} at port {self.port}, in {self.directory}, until {clock(self.options.time)} from now", flush=True)
        runs = [(self.run_players, number) for number in range(self.options.players)] + [(self.run_reloads,), (self.run_polls,), (self.run_downloads,)]
        threads = [threading.Thread(target=self.guarded, args=run, daemon=True) for run in runs]
        for thread in threads:
            thread.start()
        self.watch()
        self.stopping.set()
        # Plays that are under way end as well as all others.
        until = time.monotonic() + 2 * TIMEOUT
        for thread in threads:
            thread.join(timeout=max(0, until - time.monotonic()))
        self.faulty.close()
        self.correct.close()
        self.end()
        return self.report()

    def watch(self):
        began = time.monotonic()
        minute = 1
        while time.monotonic() - began < self.options.time and self.process.poll() is None:
            time.sleep(EVERY)
            try:
                self.samples.append(meter.sample(self.process.pid, self.cache))
            except (OSError, KeyError):
                continue  # it has just ended: poll() tells
            if time.monotonic() - began >= 60 * minute:
                self.say(minute)
                minute += 1
        if self.process.poll() is not None:
            self.fail(f"the proxy has died with {self.process.returncode}; the end of its log:\n{tail(self.log)}")

    def say(self, minute):
        recent = self.samples[-30:]
        now = {name: statistics.median(row[name] for row in recent) for name in recent[0]}
        with self.lock:
            counts, failures = Counter(self.counts), len(self.failures)
        print(f"{minute:4} min: {counts['plays']} plays, {counts['requests']} requests, {counts['bytes'] / 10**9:.2f} GB compared, {counts['cut']} cut, "
              f"{counts['download completed']} downloads, {counts['reloads']} reloads; anon {now['anon'] / MIB:.1f} own {now['own'] / MIB:.1f} "
              f"pss {now['pss'] / MIB:.1f} disk {now['disk'] / MIB:.1f} MiB, {now['descriptors']:.0f} descriptors, {now['threads']:.0f} threads, "
              f"slowest poll {self.slowest:.1f} s, {failures} failed", flush=True)

    def end(self):
        """Ends the proxy, and lets it verify what it has stored."""
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            if self.process.wait(timeout=60) != 0:
                self.fail(f"SIGTERM ends the proxy with {self.process.returncode}; the end of its log:\n{tail(self.log)}")
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.fail("SIGTERM does not end the proxy")
            return
        verify = subprocess.run([self.options.binary, "verify", "--cache-dir", self.cache, "--config", os.devnull], capture_output=True, text=True)
        if verify.returncode:
            self.fail(f"verify: {verify.stdout[-2000:]}{verify.stderr[-2000:]}")

    def report(self):
        counts = self.counts
        print("\nplays: " + ", ".join(f"{play.__name__} {counts[play.__name__]}" for play in plays.SHARES))
        print("answers: " + ", ".join(f"{name.split()[1]} {number}" for name, number in sorted(counts.items()) if name.startswith("status ")))
        print("downloads: " + ", ".join(f"{name.split()[1]} {number}" for name, number in sorted(counts.items()) if name.startswith("download ")))
        print("faults of the origin: " + ", ".join(f"{name} {number}" for name, number in sorted(self.faulty.faults.items())))
        print(f"requests at the origins: {self.correct.requests} and {self.faulty.requests}, bytes sent {(self.correct.sent + self.faulty.sent) / 10**9:.2f} GB")
        # With less than half an hour a quarter is no longer than the warm-up: then growth is shown, and no failure.
        is_long = self.options.time >= 1800
        if len(self.samples) >= 40:
            print(f"\nmedians of the second and of the last quarter{'; at most 5 % more (or a little: see meter.py)' if is_long else ', too short to be judged'}")
            for name, before, after, is_flat in meter.verdict(self.samples, 0.05):
                unit = 1 if name in ("descriptors", "threads") else MIB
                print(f"  {name:12} {before / unit:9.1f} -> {after / unit:9.1f}{'' if unit == 1 else ' MiB'}  {(after / before - 1) * 100 if before else 0:+.1f} %"
                      f"{'' if is_flat or not is_long else '  GROWS'}")
                if is_long and not is_flat:
                    self.fail(f"{name} grows")
        most = max((row["disk"] for row in self.samples), default=0)
        print(f"  most on the disk {most / 10**6:.1f} MB of {MAX_SIZE / 10**6:.0f} MB")
        if most > MAX_SIZE * 1.05:
            self.fail(f"{most} bytes on the disk, more than max_size")
        failed = len(self.failures)
        print(f"soak: {clock(self.options.time)}, seed {self.seed}, {counts['plays']} plays, {counts['requests']} requests, {counts['bytes']} bytes compared, "
              f"{failed} failed{'' if not failed else ': FAILED'}", flush=True)
        if failed or self.options.keep:
            print(f"soak: the cache and the log are in {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
        return 1 if failed else 0


def downloaded(visit):
    """What was downloaded and not evicted plays without its origin, unless it is no longer known to be fresh."""
    with Connection(visit.soak.port, visit.soak.pace) as connection:
        reply = visit.ask(connection, ["Cache-Control: only-if-cached"])
        if reply.status == 504:
            visit.soak.count("downloaded, then gone")
            return
        visit.may_end = True
        visit.read(reply)


def tail(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4000))
        return file.read().decode(errors="replace")


def clock(seconds):
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def span(text):
    match = re.fullmatch(r"(\d+)([smh])", text)
    if not match:
        raise argparse.ArgumentTypeError("write 90s, 5m or 1h")
    return int(match.group(1)) * {"s": 1, "m": 60, "h": 3600}[match.group(2)]


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__.splitlines()[0])
    parser.add_argument("--for", dest="time", type=span, default=span("5m"), metavar="TIME", help="such as 90s, 5m or 1h (default: 5m)")
    parser.add_argument("--cores", type=float, default=0.5, metavar="N", help="CPU for players, origins and proxy together (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=10, metavar="MB", help="megabytes per second that all players read together (default: %(default)s)")
    parser.add_argument("--players", type=int, default=14, metavar="N", help="players at once (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="event loops of the proxy (default: %(default)s)")
    parser.add_argument("--faults", type=float, default=0.25, metavar="SHARE", help="answers of the faulty origin that are broken (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("REELCACHE_SEED") or random.randrange(10**6)), help="of all random choices")
    parser.add_argument("--dir", metavar="DIR", help="where the cache is made (default: the temporary folder)")
    parser.add_argument("--keep", action="store_true", help="leave the cache and the log where they are")
    parser.add_argument("--binary", required=True, help="the program, of a release build")
    options = parser.parse_args()
    options.rate *= 10**6
    sys.exit(Soak(options).run())


if __name__ == "__main__":
    main()
