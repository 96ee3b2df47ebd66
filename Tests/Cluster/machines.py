"""The programs of a cluster: nodes, balancers and the origin, each on its machine, with the files of config/cluster as they are."""
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import network
from films import MIB
from network import BALANCER, MACHINES, NODES, ORIGIN, PARENT, inside

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONFIG = os.path.join(ROOT, "config", "cluster")
PORT = 7335
# In seconds: what on a machine with little else to do takes a second at most may take very long on another. As Duration.patience of the other tests.
PATIENCE = 180


class Program:
    """A process on a machine."""

    def __init__(self, machine, log, *command):
        self.machine, self.log = machine, log
        self.process = subprocess.Popen(inside(machine, *command), stdin=subprocess.DEVNULL, stdout=open(log, "ab"), stderr=subprocess.STDOUT)

    def wait_for(self, answers, seconds=PATIENCE):
        until = time.monotonic() + seconds
        while not answers():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"cluster: {self.machine} does not start: {open(self.log).read()[-2000:]}")
            time.sleep(0.02)

    def end(self, number=signal.SIGTERM, seconds=PATIENCE):
        """Sends a signal and waits. Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def listens(address, port):
    try:
        socket.create_connection((address, port), 1).close()
        return True
    except OSError:
        return False


def ask(address, port, path, fields={}):
    request = urllib.request.Request(f"http://{address}:{port}{path}", headers=fields)
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return reply.status, reply.read().decode()


class Node:
    """A Reelcache with the configuration of a node or of a parent; its cache stays until it is emptied."""

    def __init__(self, cluster, name, max_size, flags=()):
        self.name, self.address, self.max_size = name, MACHINES[name], max_size
        self.further = cluster.options.flags.split()
        self.binary, self.configuration = cluster.options.binary, os.path.join(CONFIG, "parent.yaml" if name == "parent" else "node.yaml")
        # The mount of the file leads to https.
        self.flags = list(flags) if name == "parent" else [
            "--mount", "/films/=http://origin.example/films/", "--mount", "/live/=http://origin.example/live/",
            *(["--trusted", BALANCER] if cluster.has("--trusted") else []), *flags]
        self.cache, self.log = cluster.path(f"{name}-cache"), cluster.path(f"{name}.log")
        self.program = None

    def start(self):
        self.program = Program(
            self.name, self.log, self.binary, "serve", "--config", self.configuration, "--cache-dir", self.cache, "--max-size", str(self.max_size),
            "--min-free", "100MB", "--allow", ORIGIN, *self.flags, *self.further)
        self.program.wait_for(self.is_well)
        return self

    def is_well(self):
        return self.health() == 200

    def health(self):
        """The status of its health check; None where it doesn't answer."""
        try:
            return ask(self.address, PORT, "/healthz", {"Host": "localhost"})[0]
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def stats(self):
        with open(os.path.join(self.cache, "control-token-read")) as file:
            token = file.read().strip()
        return json.loads(ask(self.address, PORT, "/stats", {"Host": "localhost", "Authorization": f"Bearer {token}"})[1])

    def kill(self):
        self.program.end(signal.SIGKILL)

    def signal(self, number):
        self.program.process.send_signal(number)

    def stop(self, seconds=PATIENCE):
        if self.program:
            return self.program.end(seconds=seconds)

    def empty(self):
        shutil.rmtree(self.cache, ignore_errors=True)


class HAProxy:
    """The balancer with config/cluster/haproxy.cfg.

    In the short form it takes no node for one that hangs: on a busy machine each may stand still for seconds. One that was killed is down all the same.
    """

    def __init__(self, cluster, changes=(), name="admin", port=80, notices_hanging=False):
        if cluster.options.short and not notices_hanging:
            changes = [("timeout check 1200ms", "timeout check 1h"), *changes]
        # It needs two descriptors for each connection that it may have, which not every system lets this process have.
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 50_000:
            changes = [("    maxconn 20000\n", "    maxconn 4000\n"), *changes]
        with open(os.path.join(CONFIG, "haproxy.cfg")) as file:
            text = file.read()
        for old, new in changes:
            if old not in text:
                sys.exit(f"cluster: haproxy.cfg has no '{old}'")
            text = text.replace(old, new)
        path, self.socket = cluster.path(f"{name}.cfg"), f"/run/haproxy/{name}.sock"
        text = text.replace("/run/haproxy/admin.sock", self.socket).replace("bind :80", f"bind :{port}")
        with open(path, "w") as file:
            file.write(text)
        # A balancer before this one may have left its socket.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)
        self.program = Program("balancer", cluster.path(f"{name}.log"), "haproxy", "-db", "-f", path)
        self.program.wait_for(lambda: listens(BALANCER, port) and self.answers())
        self.wait_for_nodes("UP")

    def command(self, text):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall(text.encode() + b"\n")
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def answers(self):
        """Whether it answers on its socket: that file is there before anything listens."""
        try:
            return bool(self.servers())
        except OSError:
            return False

    def servers(self):
        """The row of each server in HAProxy's statistics."""
        heads, *lines = self.command("show stat").splitlines() or [""]
        heads = heads.lstrip("# ").split(",")
        rows = (dict(zip(heads, line.split(","))) for line in lines if line)
        return {row["svname"]: row for row in rows if row["pxname"] == "nodes" and row["svname"] != "BACKEND"}

    def wait_for_nodes(self, status, names=None, seconds=PATIENCE):
        until = time.monotonic() + seconds
        while not all(row["status"].startswith(status) and row["check_status"] != "INI" for name, row in self.servers().items() if not names or name in names):
            if time.monotonic() > until:
                sys.exit(f"cluster: not all nodes are {status}: {self.servers()}")
            time.sleep(0.05)

    def running(self, node):
        return int(self.servers()[node]["scur"])

    def stop(self):
        self.program.end()


class Nginx:
    """The balancer with config/cluster/nginx.conf."""

    def __init__(self, cluster):
        self.program = Program("balancer", cluster.path("nginx.log"), "nginx", "-g", "daemon off;", "-c", os.path.join(CONFIG, "nginx.conf"))
        self.program.wait_for(lambda: listens(BALANCER, 80))

    def stop(self):
        self.program.end()


class Origin:
    """The origin of films, and what it has counted."""

    def __init__(self, cluster):
        self.program = Program("origin", cluster.path("origin.log"), sys.executable, os.path.join(HERE, "origin.py"), ORIGIN, "80")
        self.program.wait_for(lambda: listens(ORIGIN, 80))

    def state(self):
        return json.loads(ask(ORIGIN, 80, "/__state")[1])

    def set(self, **settings):
        ask(ORIGIN, 80, "/__set?" + "&".join(f"{name}={value}" for name, value in settings.items()))

    def settled(self, seconds=PATIENCE):
        """What it has counted once nothing is being sent."""
        until = time.monotonic() + seconds
        while (state := self.state())["running"]:
            if time.monotonic() > until:
                sys.exit("cluster: a transfer from the origin does not end")
            time.sleep(0.05)
        return state

    def stop(self):
        self.program.end()


class Cluster:
    """Three nodes, a balancer and an origin."""

    def __init__(self, options, work):
        self.options, self.work, self.nodes, self.balancer = options, work, {}, None
        network.build(work)
        self.help = subprocess.run([options.binary, "serve", "--help"], capture_output=True, text=True).stdout
        self.origin = Origin(self)

    def restart_origin(self):
        self.origin = Origin(self)

    def path(self, name):
        return os.path.join(self.work, name)

    def start(self, names=tuple(NODES), max_size="4GB", changes=(), flags=(), buffers=6 * MIB, balancer=HAProxy, notices_hanging=False):
        """Nodes with empty caches, and their balancer.

        - changes: texts of haproxy.cfg, each with what takes its place.
        - flags: of each node.
        - buffers: bytes that a connection of the balancer holds at most.
        - notices_hanging: whether HAProxy does so in the short form, too.
        """
        network.limit_buffers("balancer", buffers)
        for name in names:
            self.add(name, max_size, flags)
        missing = [(f"    server {name} {address}:{PORT}\n", "") for name, address in NODES.items() if name not in names]
        self.balancer = HAProxy(self, [*changes, *missing], notices_hanging=notices_hanging) if balancer is HAProxy else balancer(self)
        self.origin.set(rate=0, latency=0, hold=0, reset=1)

    def add(self, name, max_size="4GB", flags=()):
        node = self.nodes[name] = Node(self, name, max_size, flags)
        node.empty()
        return node.start()

    def has(self, flag):
        """Whether this program has a flag: an older one is measured too."""
        return flag in self.help

    def stop(self):
        if self.balancer:
            self.balancer.stop()
        for node in self.nodes.values():
            node.stop()
            node.empty()
        self.nodes, self.balancer = {}, None
