"""Machines as network namespaces on a bridge, within the namespaces that scripts/cluster entered. The players' own namespace has the bridge."""
import os
import subprocess
import sys

BALANCER, ORIGIN = "10.0.0.10", "10.0.0.20"
NODES = {"node1": "10.0.0.11", "node2": "10.0.0.12", "node3": "10.0.0.13"}
PARENT = "10.0.0.14"
MACHINES = {"balancer": BALANCER, **NODES, "parent": PARENT, "origin": ORIGIN}
HOSTS = "127.0.0.1 localhost\n10.0.0.10 media.example\n10.0.0.20 origin.example\n"
PLAYERS = [f"10.0.1.{number}" for number in range(1, 251)]


def run(*command):
    outcome = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if outcome.returncode:
        sys.exit(f"cluster: {' '.join(command)}: {outcome.stdout}")


def build(work):
    """Lays the network out. Nothing of it is seen from outside."""
    run("mount", "--make-rprivate", "/")
    for directory in ("/run", "/var/lib/nginx", "/var/log/nginx"):
        if os.path.isdir(directory):
            run("mount", "-t", "tmpfs", "cluster", directory)
    os.mkdir("/run/haproxy")
    hosts = os.path.join(work, "hosts")
    with open(hosts, "w") as file:
        file.write(HOSTS)
    run("mount", "--bind", hosts, "/etc/hosts")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "link", "set", "bridge", "up")
    batch(f"address add {address}/16 dev bridge" for address in ["10.0.0.1"] + PLAYERS)
    for name, address in MACHINES.items():
        add_machine(name, address)


def add_machine(name, address):
    run("ip", "netns", "add", name)
    run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "link", "set", f"to-{name}", "master", "bridge", "up")
    run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", name, "address", "add", f"{address}/16", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "eth0", "up")


def limit_buffers(machine, most):
    """How many bytes a connection holds on a machine, so that films need not be larger than all buffers together for a player to be cut off."""
    for direction in ("rmem", "wmem"):
        run(*inside(machine, "sysctl", "-qw", f"net.ipv4.tcp_{direction}=4096 65536 {most}"))


def batch(lines):
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def inside(machine, *command):
    """The command that runs another on a machine."""
    return ["nsenter", f"--net=/run/netns/{machine}", *command]
