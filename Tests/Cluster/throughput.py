"""Cached and uncached reads through HAProxy and three Reelcaches, beside HAProxy and three nginx with proxy_cache, in turn."""
import json
import os
import statistics
import subprocess

from films import KIB, MIB
from machines import ROOT, HAProxy, Program, listens
from network import BALANCER, NODES, ORIGIN
from results import Result

BENCHMARKS = os.path.join(ROOT, "Benchmarks")
PORTS = {"reelcache": 80, "nginx": 81}
SEGMENTS, SMALL = (200, 4 * MIB), (1000, 64 * KIB)
# rload names the address that it connects to.
NAMED = ("    http-request del-header Forwarded\n", "    http-request del-header Forwarded\n    http-request set-header Host media.example\n")

ORIGIN_CONFIGURATION = """daemon off; user root; worker_processes 2; pid {run}/nginx.pid; error_log {run}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_timeout 300s; keepalive_requests 10000000; types {{ }}
    server {{
        listen 80 backlog=1024; root {run};
        rewrite ^/films/[^/]+(/.*)$ $1 break;   # fresh names for what is to be uncached
        add_header Cache-Control "max-age=86400";
    }}
}}
"""


def throughput(cluster, options):
    """Reads through HAProxy and three nodes, beside three nginx with proxy_cache."""
    cluster.start(changes=[NAMED])
    cluster.origin.stop()
    bench = Bench(cluster)
    try:
        rounds = [bench.round(number) for number in range(options.rounds)]
    finally:
        bench.stop()
        cluster.restart_origin()
    return [row for name in rounds[0]["nginx"] for row in compare(name, rounds)]


def compare(name, rounds):
    """Medians, and the median of the ratios within each round."""
    ours, theirs = ([round[peer][name] for round in rounds] for peer in ("reelcache", "nginx"))
    return [Result(f"{name}: Reelcache", statistics.median(ours), None), Result(f"{name}: nginx", statistics.median(theirs), None),
            Result(f"{name}: ratio", statistics.median(our / their for our, their in zip(ours, theirs)), None)]


def seconds_of(pids):
    """The processor time of processes and their children."""
    total = 0
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry) in pids or int(fields[1]) in pids:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, cluster):
        self.cluster, self.programs, self.nginx = cluster, [], []
        self.rload = cluster.path("rload")
        subprocess.run(["gcc", "-O2", "-o", self.rload, os.path.join(BENCHMARKS, "tools", "rload.c")], check=True)
        self.start_origin()
        for name, address in NODES.items():
            self.start_nginx(name, address)
        self.balancer = HAProxy(cluster, [NAMED, (":7335", ":7336")], "haproxy-nginx", PORTS["nginx"])
        self.programs.append(self.balancer)

    def directory(self, name):
        path = self.cluster.path(name)
        os.makedirs(path)
        return path

    def start_origin(self):
        run = self.directory("files")
        for kind, (count, size) in {"segment": SEGMENTS, "small": SMALL}.items():
            for number in range(count):
                with open(os.path.join(run, f"{kind}-{number}.bin"), "wb") as out:
                    out.write(os.urandom(size))
        self.start("origin", ORIGIN, 80, run, ORIGIN_CONFIGURATION.format(run=run))

    def start_nginx(self, name, address):
        """As Benchmarks/peers has it, on all addresses, and with something to answer health checks."""
        run = self.directory(f"{name}-nginx")
        with open(os.path.join(BENCHMARKS, "peers", "nginx-slice.conf")) as file:
            text = file.read()
        for old, new in [("127.0.0.1:${PORT}", "7336"), ("${RUN}", run), ("${ORIGIN}", ORIGIN), ("location / {", "location = /healthz { return 200; }\n        location / {")]:
            text = text.replace(old, new)
        self.nginx.append(self.start(name, address, 7336, run, text))

    def start(self, machine, address, port, run, text):
        path = os.path.join(run, "nginx.conf")
        with open(path, "w") as out:
            out.write(text)
        program = Program(machine, os.path.join(run, "out.log"), "nginx", "-p", run, "-c", path)
        self.programs.append(program)
        program.wait_for(lambda: listens(address, port))
        return program

    def stop(self):
        for program in self.programs:
            program.stop() if isinstance(program, HAProxy) else program.end()

    def round(self, number):
        """Each peer in turn, the first one in turn too."""
        peers = list(PORTS) if number % 2 else list(PORTS)[::-1]
        return {peer: self.measure(peer, f"{peer}-{number}") for peer in peers}

    def measure(self, peer, fresh):
        segments = self.paths(fresh, "segment", SEGMENTS[0])
        small = self.paths(fresh, "small", SMALL[0])
        results = {
            "uncached, 200 segments of 4 MiB, GB/s": self.load(peer, segments, "gbps", "--conns", 16, "--requests", SEGMENTS[0], "--seq"),
            "uncached, 1000 files of 64 KiB, requests/s": self.load(peer, small, "rps", "--conns", 32, "--requests", SMALL[0], "--seq"),
        }
        os.sync()  # what is still to be written would be written while others are measured
        before = self.processor(peer)
        rate = results["cached segments of 4 MiB, 16 connections, GB/s"] = self.load(peer, segments, "gbps", "--conns", 16, "--duration", 4)
        for name, spent in self.processor(peer).items():
            results[f"the same: {name} CPU, s/GB"] = (spent - before[name]) / (rate * 4)
        results["cached 64 KiB ranges, 32 connections, requests/s"] = self.load(
            peer, segments, "rps", "--conns", 32, "--duration", 4, "--rand-range", 64 * KIB, "--file-size", SEGMENTS[1])
        results["cached files of 64 KiB, 32 connections, requests/s"] = self.load(peer, small, "rps", "--conns", 32, "--duration", 4)
        return results

    def processor(self, peer):
        """The seconds that the processes of each part have taken so far."""
        balancer = self.balancer if peer == "nginx" else self.cluster.balancer
        nodes = [node.program for node in self.cluster.nodes.values()] if peer == "reelcache" else self.nginx
        return {"balancer's": seconds_of([balancer.program.process.pid]), "nodes'": seconds_of([program.process.pid for program in nodes])}

    def paths(self, fresh, kind, count):
        path = self.cluster.path("paths")
        lists = f"{path}-{fresh}-{kind}"
        with open(lists, "w") as out:
            out.writelines(f"/films/{fresh}/{kind}-{number}.bin\n" for number in range(count))
        return lists

    def load(self, peer, paths, figure, *arguments):
        command = [self.rload, "--host", BALANCER, "--port", str(PORTS[peer]), "--paths", paths, "--duration", "60", *map(str, arguments)]
        outcome = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        if any(outcome["errors"].values()):
            raise RuntimeError(f"{peer}: {outcome['errors']} {outcome['status']}")
        return outcome[figure]
