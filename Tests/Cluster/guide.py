"""The commands of docs/operators/cluster.md, in order, each on the machine that its first line names."""
import os
import re
import subprocess

import network
from machines import CONFIG, PATIENCE, ROOT
from network import NODES
from results import Result

MARKER = "<!-- run: elsewhere, Cluster.clusterIsOneCache -->"
MACHINES = {"the balancer": "balancer", "anywhere": None}
# Nothing is installed and no systemd runs on these machines: what is named has to be there, and in the files that were copied.
SHELL = r"""
sudo() { "$@"; }
apt-get() { shift 2; for program in "$@"; do command -v "$program" >/dev/null || { echo "$program is not installed"; return 1; }; done; }
systemctl() {
    case "$*" in
    daemon-reload) ;;
    *haproxy) haproxy -c -f /etc/haproxy/haproxy.cfg ;;
    *.service | *.socket) [[ -e "/etc/systemd/system/${!#}" ]] ;;
    *) [[ -e "/etc/systemd/system/${!#}.service" ]] ;;
    esac
}
set -e -o pipefail
"""


def guide(cluster, options):
    """The commands of the guide's page work."""
    with open(os.path.join(ROOT, "docs/operators/cluster.md")) as file:
        found = list(blocks(file.read()))
    lay_out(cluster)
    cluster.start()
    failed = 0
    for machine, text in found:
        outcome = run(cluster, machine, text)
        if outcome.returncode:
            failed += 1
            print(f"    failed on {machine or 'a player'}: {text}{outcome.stdout}")
    return [Result("blocks of commands", len(found), None), Result("those that fail", failed, 0)]


def blocks(page):
    """Machines and texts."""
    for text in re.findall(rf"^ *{re.escape(MARKER)}\n *```sh\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        place = text.strip().split("\n")[0].removeprefix("# ").removeprefix("on ")
        if place == "in the sources":
            continue  # this program
        for name in [MACHINES[place]] if place in MACHINES else re.findall(r"node\d", place):
            yield name, text


def lay_out(cluster):
    """Files of machines that have the package: what is written stays in memory."""
    for number, path in enumerate(["/etc", "/usr/share/doc", "/usr/bin"]):
        layer = f"/run/guide/{number}"
        os.makedirs(f"{layer}/over")
        os.makedirs(f"{layer}/work")
        network.run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={layer}/over,workdir={layer}/work", path)
    network.run("mount", "--bind", cluster.path("hosts"), "/etc/hosts")
    os.makedirs("/etc/reelcache", exist_ok=True)
    os.makedirs("/usr/share/doc/reelcache/examples", exist_ok=True)
    network.run("cp", "-r", CONFIG, "/usr/share/doc/reelcache/examples/cluster")
    network.run("ln", "-sf", os.path.abspath(cluster.options.binary), "/usr/bin/reelcache")


def run(cluster, machine, text):
    command = ["bash", "-c", SHELL + text]
    return subprocess.run(network.inside(machine, *command) if machine else command, cwd=CONFIG if machine else cluster.work, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=PATIENCE)
