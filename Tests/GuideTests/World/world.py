#!/usr/bin/env python3
"""Runs the commands of a page of the guide on a machine of their reader's own, in order, as one shell would.

world.py PLAN RESULT, within namespaces of its own (network, mounts, processes):

    192.168.1.2 (the reader, tv.example) ── veth ── 192.168.1.1 (router), 192.168.1.10 (nas.local), 93.184.215.14 (example.org) ...

PLAN is JSON: work (an empty directory), media (that of make-media), reelcache (the program), players (directories of
further programs), blocks: [{line, text, proxyRuns, seconds}]; and, for a reader with a fresh system, system: {root (what scripts/fresh-root
made; it stays as it is), files (to put into the home directory), variables (of the environment)}. That system is booted, nothing
of this one is in its PATH, and whoever reads may use sudo.
RESULT gets a JSON object on each line: {line, status, at, command, output}, one for each block. `at` is the line in the block at which
it ended, `status` the exit code, or "too long".
"""
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
READER, ROUTER = "192.168.1.2", "192.168.1.1"

# Variables and the directory outlive a block, as in a shell that somebody types into.
SHELL = r"""
state=$1 text=$2
names() { compgen -v | sort; }
before="$(names)"
[[ ! -e "$state/variables" ]] || source "$state/variables"
[[ ! -e "$state/directory" ]] || cd "$(<"$state/directory")"
keep() {
    local status=$? name
    trap - DEBUG
    pwd >"$state/directory"
    for name in $(comm -13 <(echo "$before") <(names)); do
        [[ $name =~ ^(before|state|text|_|BASH.*|FUNCNAME|PIPESTATUS|name|status|EUID|UID|PPID|SHELLOPTS)$ ]] || declare -p "$name"
    done >"$state/variables"
    exit "$status"
}
trap keep EXIT
set -eT -o pipefail
trap '[[ "${BASH_SOURCE[0]}" != "$text" ]] || printf "%s\n" "$LINENO" "$BASH_COMMAND" >"$state/at"' DEBUG
source "$text"
"""


def run(*command):
    outcome = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if outcome.returncode:
        sys.exit(f"world: {' '.join(command)}: {outcome.stdout}")


def hosts():
    with open(os.path.join(HERE, "hosts")) as file:
        return [line.split()[0] for line in file if line[0].isdigit()]


class System:
    """A fresh system that systemd has booted, in the network of this world."""

    def __init__(self, world, plan):
        self.world, self.plan = world, plan
        self.root = world.path("root")
        self.lay_out()
        self.boot()

    def lay_out(self):
        over, work = self.world.path("over"), self.world.path("over-work")
        run("mount", "--make-rprivate", "/")
        os.chmod(self.world.work, 0o711)  # for the reader, who is not root there
        # Overlays cannot be laid over overlays: a file system of its own for what is written.
        run("mount", "-t", "tmpfs", "system", self.world.path("tmp"))
        for directory in (over, work, self.root):
            os.mkdir(directory)
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={self.plan['root']},upperdir={over},workdir={work}", self.root)
        self.copy(os.path.join(HERE, "hosts"), "/etc/hosts")
        with open(self.root + "/etc/hosts", "a") as file:
            file.write("127.0.1.1 fresh\n")  # its own name, which sudo looks up
        self.copy(os.path.join(self.world.plan["media"], "ca.pem"), "/etc/ssl/certs/ca-certificates.crt")
        with open(self.root + "/etc/resolv.conf", "w") as file:
            file.write("nameserver 127.0.0.1\n")
        run("chroot", self.root, "useradd", "--create-home", "--shell", "/bin/bash", "reader")
        with open(self.root + "/etc/sudoers.d/reader", "w") as file:
            file.write("reader ALL=(ALL) NOPASSWD:ALL\n")
        # Without a screen and loudspeakers, and no slower than it can decode.
        os.makedirs(self.root + "/etc/mpv", exist_ok=True)
        with open(self.root + "/etc/mpv/mpv.conf", "w") as file:
            file.write("vo=null\nao=null\nao-null-untimed=yes\nuntimed=yes\nterminal=no\n")
        for path in self.plan["files"]:
            run("cp", "-a", path, self.root + "/home/reader/")
        run("chroot", self.root, "chown", "-R", "reader:", "/home/reader")
        os.makedirs(self.root + "/var/lib/systemd/linger", exist_ok=True)
        open(self.root + "/var/lib/systemd/linger/reader", "w").close()

    def copy(self, source, path):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        run("cp", "--remove-destination", source, self.root + path)

    def boot(self):
        self.container = subprocess.Popen(
            ["systemd-nspawn", "--directory", self.root, "--boot", "--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off",
             "--timezone=off", "--hostname=fresh", f"--network-namespace-path=/proc/{os.getpid()}/ns/net", "--bind", self.world.work],
            stdin=subprocess.DEVNULL, stdout=open(self.world.path("boot.log"), "w"), stderr=subprocess.STDOUT)
        children = f"/proc/{self.container.pid}/task/{self.container.pid}/children"
        while True:
            if self.container.poll() is not None:
                sys.exit("world: the system does not start: " + open(self.world.path("boot.log")).read())
            with open(children) as file:
                found = file.read().split()
            if found and os.path.exists(f"/proc/{found[0]}/root/run/systemd/private"):
                break
            time.sleep(0.05)
        self.leader = found[0]
        # "degraded" is a system, too.
        subprocess.run(self.enter("root") + ["systemctl", "is-system-running", "--wait"], stdout=subprocess.DEVNULL, check=False)
        run(*self.enter("root"), "systemctl", "start", "user@1000.service")

    def enter(self, user):
        return ["nsenter", "--target", self.leader, "--all", "--", "setpriv", "--reuid", user, "--regid", user, "--init-groups"]

    def environment(self):
        return {
            "HOME": "/home/reader", "USER": "reader", "LOGNAME": "reader", "LANG": "C.UTF-8", "TERM": "dumb",
            "XDG_RUNTIME_DIR": "/run/user/1000", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games", **self.plan["variables"],
        }


class World:
    def __init__(self, plan):
        self.plan, self.work = plan, plan["work"]
        self.home = "/home/reader"
        self.make_network()
        self.state = self.path("state")  # of the shell
        for name in ("tmp", "state"):
            os.mkdir(self.path(name))
            os.chmod(self.path(name), 0o777)
        self.system = System(self, plan["system"]) if "system" in plan else None
        if not self.system:
            self.make_files()
        self.environment = self.system.environment() if self.system else self.make_environment()
        self.pid_file = self.path("proxy.pid")

    def path(self, name):
        return os.path.join(self.work, name)

    def make_network(self):
        self.origin = subprocess.Popen(
            ["unshare", "-n", sys.executable, os.path.join(HERE, "origin.py"), self.plan["media"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.path("origin.log"), "w"), text=True)
        if self.origin.stdout.readline() != "ready\n":
            sys.exit("world: the origin does not start: " + open(self.path("origin.log")).read())
        there = ["nsenter", "-t", str(self.origin.pid), "-n", "ip"]
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1", "netns", str(self.origin.pid))
        run("ip", "address", "add", READER + "/24", "dev", "veth0")
        run("ip", "link", "set", "veth0", "up")
        run(*there, "link", "set", "lo", "up")
        run(*there, "link", "set", "veth1", "up")
        for address in [ROUTER] + [address for address in hosts() if address not in ("127.0.0.1", READER)]:
            run(*there, "address", "add", address + ("/24" if address.startswith("192.168.1.") else "/32"), "dev", "veth1")
        run("ip", "route", "add", "default", "via", ROUTER)

    def make_files(self):
        run("mount", "--make-rprivate", "/")
        run("mount", "--bind", os.path.join(HERE, "hosts"), "/etc/hosts")
        with open(self.path("resolv.conf"), "w") as file:
            file.write("nameserver 127.0.0.1\n")  # where nobody is: names that hosts does not have are not there
        run("mount", "--bind", self.path("resolv.conf"), "/etc/resolv.conf")
        run("mount", "--bind", os.path.join(self.plan["media"], "ca.pem"), "/etc/ssl/certs/ca-certificates.crt")
        run("mount", "-t", "tmpfs", "reader", "/home")
        for name in ("reader", "runtime"):
            os.mkdir(self.path(name))
        os.chmod(self.path("runtime"), 0o700)
        os.mkdir(self.home)
        run("mount", "--bind", self.path("reader"), self.home)

    def make_environment(self):
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {
            "HOME": self.home, "USER": "reader", "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": self.path("tmp"),
            "XDG_RUNTIME_DIR": self.path("runtime"), "PATH": ":".join([os.path.join(HERE, "programs")] + [system] + self.plan["players"]),
            "WORLD": self.work, "WORLD_REELCACHE": self.plan["reelcache"], "WORLD_PATH": ":".join(self.plan["players"] + [system]),
        }

    def end_proxy(self):
        if self.system:
            return  # its services are its own
        subprocess.run([os.path.join(HERE, "programs", "end-proxy")], env=self.environment, check=True)

    def start_proxy(self):
        if not os.path.exists(self.pid_file):
            with open(self.path("start.log"), "w") as log:
                started = subprocess.run(
                    [os.path.join(HERE, "programs", "reelcache"), "serve"], env=self.environment, cwd=self.home,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=180)
            if started.returncode:
                sys.exit("world: no proxy starts: " + open(self.path("start.log")).read())

    def run_block(self, block):
        # What begins with a proxy of the reader's own does not meet another on its port.
        begins = block["text"].lstrip().startswith("reelcache serve")
        if not block["proxyRuns"]:
            self.end_proxy()
        elif not begins:
            self.start_proxy()
        script, log = os.path.join(self.state, "block.sh"), self.path("block.log")
        with open(script, "w") as file:
            file.write(block["text"])
        with open(log, "wb") as output:
            shell = subprocess.Popen(
                (self.system.enter("reader") if self.system else []) + ["/bin/bash", "-c", f"cd {self.home}\n" + SHELL, "bash", self.state, script],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
            try:
                status = shell.wait(block["seconds"])
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.wait()
                status = "too long"
        return self.result(block, status, log)

    def result(self, block, status, log):
        at, command, place = 1, "", os.path.join(self.state, "at")
        if os.path.exists(place):
            with open(place) as file:
                first, _, command = file.read().partition("\n")
            at = int(first)
            os.remove(place)
        with open(log, errors="replace") as file:
            output = file.read()
        return {"line": block["line"], "status": str(status), "at": at, "command": command.strip(), "output": output[-20_000:]}


def main():
    with open(sys.argv[1]) as file:
        world = World(json.load(file))
    with open(sys.argv[2], "w") as results:
        for block in world.plan["blocks"]:
            results.write(json.dumps(world.run_block(block)) + "\n")
            results.flush()
    world.end_proxy()


main()
