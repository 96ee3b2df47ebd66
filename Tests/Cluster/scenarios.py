"""What a cluster must do: each scenario returns what it measured, with the limit."""
import asyncio
import os
import random
import signal
import threading
import time
import urllib.error

import films
from films import GIB, KIB, MIB
from guide import guide
from machines import CONFIG, PATIENCE, PORT, HAProxy, Nginx, ask
from network import BALANCER, NODES, PARENT, PLAYERS
from players import Player, Tally, union
from results import Result
from throughput import throughput


class Audience:
    """Viewers of a catalogue whose popularity follows Zipf's law. Nobody plays a film twice; most play it from its start to its end."""

    def __init__(self, options, viewers, catalogue, plays, least, greatest, zipf=0.8):
        chance = random.Random(options.seed)
        self.catalogue = [films.path(number, least, greatest) for number in range(catalogue)]
        weights = [1 / rank ** zipf for rank in range(1, catalogue + 1)]
        self.plans = [[self.play(path, chance) for path in choose(chance, self.catalogue, weights, plays)] for _ in range(viewers)]

    @staticmethod
    def play(path, chance):
        """A path, and the range that is read of it: the whole, or a part as after a seek, or as some players ask for it."""
        size, form = films.size(path), chance.random()
        if form < 0.7 or size < 4:
            return path, 0, None
        start = chance.randrange(size - 1)
        return (path, start, None) if form < 0.85 else (path, start, chance.randrange(start + 1, size + 1))

    def whole(self):
        """One viewer for each part of the catalogue, who play all of it."""
        viewers = len(self.plans)
        return [[(path, 0, None) for path in self.catalogue[number::viewers]] for number in range(viewers)]


def choose(chance, items, weights, count):
    """Different items, the likely ones first: each has a time of arrival, as in a race."""
    times = sorted((chance.expovariate(1) / weight, item) for item, weight in zip(items, weights))
    chosen = [item for _, item in times[:count]]
    chance.shuffle(chosen)
    return chosen


class Show(threading.Thread):
    """Plays running on a thread of their own: each viewer has a connection and an address.

    With `every`, a viewer begins a play so often, all viewers evenly in turn. With `pace`, bytes are read at this rate. With `at_once`, so many plays run, and
    they have the same order in each run, however fast the machine is.
    """

    def __init__(self, plans, server=(BALANCER, 80), pace=0, every=0, at_once=None):
        super().__init__(daemon=True)
        self.tally, self.plans, self.server, self.pace, self.every, self.at_once = Tally(), plans, server, pace, every, at_once
        self.leaving, self.failure = False, None

    def run(self):
        try:
            asyncio.run(self.all())
        except BaseException as error:
            self.failure = error

    async def all(self):
        self.began = time.monotonic()
        await (self.in_order() if self.at_once else asyncio.gather(*(self.view(number, plan) for number, plan in enumerate(self.plans))))

    def player(self, number):
        return Player(self.tally, self.server, PLAYERS[number % len(PLAYERS)])

    async def in_order(self):
        """The first play of each viewer, then the second one of each, and so on; each has one at a time."""
        players = [self.player(number) for number in range(len(self.plans))]
        turns = {player: asyncio.Lock() for player in players}
        plays = iter([(player, play) for turn in zip(*self.plans) for player, play in zip(players, turn)])

        async def work():
            for player, play in plays:
                async with turns[player]:
                    await player.play(*play)

        await asyncio.gather(*(work() for _ in range(self.at_once)))
        for player in players:
            player.close()

    async def view(self, number, plan):
        player = self.player(number)
        for turn, (path, start, end) in enumerate(plan):
            await asyncio.sleep(max(0, self.began + (turn + number / len(self.plans)) * self.every - time.monotonic()))
            if self.leaving:
                break
            await player.play(path, start, end, self.pace)
        player.close()

    def finish(self, leave=False):
        """Waits for the end of all plays, or of those that run."""
        self.leaving = self.leaving or leave
        self.join()
        if self.failure:
            raise self.failure
        return self.tally


def play(plans, **settings):
    show = Show(plans, **settings)
    show.start()
    return show.finish()


def honest(*tallies):
    """What holds in each scenario."""
    wrong = [line for tally in tallies for line in tally.wrong]
    for line in wrong[:5]:
        print(f"    wrong: {line}")
    return [Result("bytes that were compared", sum(tally.bytes for tally in tallies), None, "MB"),
            Result("answers with a wrong byte, length, range or status", len(wrong), 0)]


def sent_by(cluster, node):
    """The bytes that a node has sent through the balancer."""
    return int(cluster.balancer.servers()[node]["bout"])


def size_of(options, short, long):
    """The short form runs in tests, on machines that may be busy: it has no limits for times."""
    return short if options.short else long


# ---------------------------------------------------------------- scenarios

def ring(cluster, options):
    """Every byte is fetched once, and the nodes share the load."""
    audience = Audience(options, 200, 500, *size_of(options, (20, 128 * KIB, 448 * KIB), (100, 64 * KIB, 2 * MIB)))
    cluster.start()
    tally = play(audience.plans)
    origin = cluster.origin.settled()
    sent = {name: sent_by(cluster, name) for name in NODES}
    mean = sum(sent.values()) / len(sent)
    return honest(tally) + [
        Result("players' requests", tally.requests, None),
        Result("origin's bytes / distinct bytes wanted", origin["bytes"] / tally.distinct(), 1.02),
        Result("most loaded node, beyond the mean", max(sent.values()) / mean - 1, 0.15, "%"),
        Result("least loaded node, below the mean", 1 - min(sent.values()) / mean, 0.15, "%"),
        Result("requests cut off", tally.cuts, 0),
    ]


def room(cluster, options):
    """Three caches hit as often as one of the summed size."""
    plays, least, greatest = size_of(options, (15, 128 * KIB, 448 * KIB), (40, 256 * KIB, 3 * MIB))
    audience = Audience(options, 200, 500, plays, least, greatest)
    catalogue = sum(map(films.size, audience.catalogue))
    each = catalogue * 4 // 5 // len(NODES)
    ratios, held, tallies = [], [], []
    for names, max_size in [(list(NODES), each), (list(NODES)[:1], limit_for(len(NODES) * room_in(each)))]:
        cluster.start(names, max_size)
        tallies.append(play(audience.plans, at_once=12))
        ratios.append(1 - cluster.origin.settled()["bytes"] / tallies[-1].bytes)
        held.append(sum(node.stats()["cache"]["size"] for node in cluster.nodes.values()))
        cluster.stop()
    return honest(*tallies) + [
        Result("catalogue", catalogue, None, "MB"),
        Result("held by three nodes at the end", held[0], None, "MB"),
        Result("held by one cache", held[1], None, "MB"),
        Result("hit ratio of three nodes, in bytes", ratios[0], None, "%"),
        Result("hit ratio of one cache of the summed size", ratios[1], None, "%"),
        # In the short form the caches are so small that a film more or less counts.
        Result("difference", ratios[1] - ratios[0], size_of(options, 0.02, 0.01), "%"),
    ]


def room_in(limit):
    """What a cache holds of its max_size: some is kept free to write into (CapacityLedger). That is little of a disk, but much of caches as small as here."""
    return limit - min(8 * MIB, limit // 8) - min(32 * MIB, limit // 16)


def limit_for(room):
    """The max_size of a cache that holds so much."""
    limit = room
    while room_in(limit) < room:
        limit += MIB // 4
    return limit


def loss(cluster, options):
    """A node is killed under load, and comes back."""
    films_of = size_of(options, (48, 4 * MIB, 12 * MIB), (96, 16 * MIB, 48 * MIB))
    audience = Audience(options, size_of(options, 40, 100), films_of[0], 20, *films_of[1:])
    cluster.start(buffers=256 * KIB)
    warm = play(audience.whole())
    before = cluster.origin.settled()["bytes"]
    lost = cluster.nodes["node2"]
    share = sent_by(cluster, "node2") / warm.bytes
    if options.short:
        # What it has is saved, which may take long where others write too.
        lost.stop()
        lost.start()
        cluster.balancer.wait_for_nodes("UP")
    else:
        time.sleep(2)  # an index is saved each second
    seconds = size_of(options, 4, 15)

    show = Show(audience.plans, pace=size_of(options, 2, 4) * MIB)
    show.start()
    time.sleep(seconds / 2)
    killed = time.monotonic()
    lost.kill()
    time.sleep(seconds)
    tally = show.finish(leave=True)
    again = cluster.origin.settled()["bytes"] - before

    lost.start()
    cluster.balancer.wait_for_nodes("UP")
    cluster.origin.set(reset=1)
    served = sent_by(cluster, "node2")
    back = play([plan[:size_of(options, 2, 4)] for plan in audience.plans])
    served = sent_by(cluster, "node2") - served
    fetched = cluster.origin.settled()["bytes"]
    return honest(warm, tally, back) + [
        Result("players cut off, who asked for the rest", tally.cuts, None),
        Result("plays that failed", tally.failures, 0),
        Result("slowest first byte before the kill", tally.slowest(0, killed), None, "s"),
        Result("slowest first byte of requests after it", tally.slowest(killed), size_of(options, None, 1.0), "s"),
        Result("the node's share of all bytes", share, None, "%"),
        Result("fetched again / all bytes", again / before, share + 0.05, "%"),
        Result("once it is back: its bytes", served, None, "MB"),
        Result("once it is back: origin's bytes / its bytes", fetched / served, 0.02, "%"),
    ]


def drain(cluster, options):
    """Nodes are drained and replaced under load: one by HAProxy's command, one by SIGTERM alone."""
    audience = Audience(options, size_of(options, 40, 200), size_of(options, 48, 200), 400, *size_of(options, (MIB, 6 * MIB), (4 * MIB, 16 * MIB)))
    by_signal = cluster.has("--drain-time")
    cluster.start(buffers=256 * KIB, flags=["--drain-time", "10m"] if by_signal else [])
    play(audience.whole())
    show = Show(audience.plans, pace=2 * MIB)
    show.start()
    time.sleep(1)
    results = by_command(cluster, "node3")
    if by_signal:
        results += by_sigterm(cluster, "node1")
    time.sleep(1)
    tally = show.finish(leave=True)
    return honest(tally) + [Result("requests meanwhile", tally.requests, None)] + results + [
        Result("requests cut off or failed", tally.cuts + tally.failures, 0)]


def hang(cluster, options):
    """A node stands still for two seconds, which no player notices but by the wait; then it hangs for good, and its players go on elsewhere."""
    audience = Audience(options, size_of(options, 40, 100), size_of(options, 48, 200), 400, *size_of(options, (MIB, 6 * MIB), (2 * MIB, 8 * MIB)))
    cluster.start(buffers=256 * KIB, notices_hanging=True)
    play(audience.whole())
    show, node = Show(audience.plans, pace=2 * MIB), cluster.nodes["node2"]
    show.start()
    time.sleep(2)
    node.signal(signal.SIGSTOP)
    time.sleep(2)
    node.signal(signal.SIGCONT)
    time.sleep(3)
    cut, stopped = show.tally.cuts, time.monotonic()
    node.signal(signal.SIGSTOP)
    cluster.balancer.wait_for_nodes("DOWN", ["node2"])
    took = time.monotonic() - stopped
    time.sleep(size_of(options, 4, 10))
    tally = show.finish(leave=True)
    node.signal(signal.SIGCONT)
    return honest(tally) + [
        Result("requests meanwhile", tally.requests, None),
        Result("stopped for 2 s: players cut off", cut, size_of(options, None, 0)),
        Result("slowest first byte until it hangs", tally.slowest(0, stopped), size_of(options, None, 5.0), "s"),
        Result("hangs: until it is down", took, size_of(options, None, 5.0), "s"),
        Result("hangs: slowest first byte", tally.slowest(stopped), size_of(options, None, 5.0), "s"),
        Result("hangs: players cut off, who asked for the rest", tally.cuts - cut, None),
        Result("plays that failed", tally.failures, 0),
    ]


def by_command(cluster, name):
    """HAProxy gives the node no further requests; once the running ones have ended, it is replaced."""
    node, began = cluster.nodes[name], time.monotonic()
    cluster.balancer.command(f"set server nodes/{name} state drain")
    wait(lambda: not cluster.balancer.running(name))
    took = time.monotonic() - began
    node.stop()
    node.start()
    cluster.balancer.command(f"set server nodes/{name} state ready")
    return back(cluster, name, "drained by HAProxy's command", took)


def by_sigterm(cluster, name):
    """The node's health check says that it drains, and it ends once the running requests have."""
    node, began = cluster.nodes[name], time.monotonic()
    code = node.stop()
    took = time.monotonic() - began
    node.start()
    return back(cluster, name, "drained by SIGTERM", took) + [Result("drained by SIGTERM: exit code", abs(code), 0)]


def back(cluster, name, how, took):
    """When a node that was replaced sends again."""
    cluster.balancer.wait_for_nodes("UP")
    sent, began = sent_by(cluster, name), time.monotonic()
    wait(lambda: sent_by(cluster, name) > sent)
    return [Result(f"{how}: until its running answers had ended", took, None, "s"),
            Result(f"{how}: until it serves again, once it is up", time.monotonic() - began, None, "s")]


def addresses(cluster, options):
    """The balancer's name and scheme are those in playlists, and what belongs to a node alone is not to be had."""
    cluster.start()
    results = led_astray("addresses in a playlist")
    open_paths = [path for path in ("/healthz", "/stats", "/metrics", "/api/v1/cache", "/api") if status_of(path) != 404]
    results.append(Result("paths of a node that are open to all", len(open_paths), 0))
    if cluster.has("--proxy-protocol"):
        cluster.stop()
        cluster.start(flags=["--proxy-protocol"], changes=[(f":{PORT}\n", f":{PORT} send-proxy-v2 check-send-proxy\n")])
        results += led_astray("with the PROXY protocol")
    return results


def led_astray(what):
    """The addresses in a playlist, whatever the client states about itself."""
    playlist = ask(BALANCER, 80, "/live/news/index.m3u8", {"Host": "media.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"})[1]
    lines = [line for line in playlist.splitlines() if line and not line.startswith("#")]
    astray = [line for line in lines if not line.startswith(("http://media.example/live/", "/live/"))]
    for line in astray:
        print(f"    leads elsewhere: {line}")
    return [Result(what, len(lines), None), Result(f"{what}: those that lead elsewhere", len(astray), 0)]


def status_of(path):
    try:
        return ask(BALANCER, 80, path, {"Host": "media.example"})[0]
    except urllib.error.HTTPError as error:
        return error.code


def pause(cluster, options):
    """A player that is paused for far longer than a silent node is given plays on."""
    film, tally = films.path(1, 48 * MIB, 48 * MIB), Tally()
    # On a busy machine a node that is well is silent for seconds, too.
    silence, length = size_of(options, (6, 15), (1, 10))
    cluster.start(changes=[("timeout server 75s", f"timeout server {silence}s")], buffers=256 * KIB)
    asyncio.run(Player(tally, (BALANCER, 80), PLAYERS[0]).play(film, pause=length))
    return honest(tally) + [Result("requests for one film", tally.requests, 1), Result("players cut off", tally.cuts, 0)]


def nginx(cluster, options):
    """The same ring behind nginx: every byte is fetched once, and a killed node is no player's loss."""
    audience = Audience(options, size_of(options, 100, 200), 500, size_of(options, 20, 40), *size_of(options, (128 * KIB, 448 * KIB), (64 * KIB, 2 * MIB)))
    cluster.start(balancer=Nginx)
    first = play(audience.plans)
    origin = cluster.origin.settled()["bytes"] / first.distinct()
    show = Show(audience.plans)
    show.start()
    time.sleep(0.2)
    killed = time.monotonic()
    cluster.nodes["node2"].kill()
    second = show.finish()
    return honest(first, second) + [
        Result("origin's bytes / distinct bytes wanted", origin, 1.02),
        Result("a node is killed: plays that failed", second.failures, 0),
        Result("slowest first byte of requests after it", second.slowest(killed), size_of(options, None, 1.0), "s"),
    ]


def hot(cluster, options):
    """One film that most viewers play: a node for each, copies on several, and a bounded load."""
    audience = Audience(options, 50, 200, 20, 128 * KIB, 448 * KIB)
    film = films.path(1, 6 * MIB, 6 * MIB)
    plans = [[(film, 0, None)] for _ in range(150)] + audience.plans
    results, tallies = [], []
    copies, bound = "sc0_conn_cur,div(300)", "    # hash-balance-factor 200\n"
    forms = [("neither", [(copies, "sc0_conn_cur,div(100000)")]), ("copies", [(copies, "sc0_conn_cur,div(40)")]),
             ("bounded load", [(copies, "sc0_conn_cur,div(100000)"), (bound, "    hash-balance-factor 150\n")])]
    for name, changes in forms:
        cluster.start(changes=changes)
        tallies.append(play(plans, pace=2 * MIB, every=size_of(options, 0.4, 1)))
        origin = cluster.origin.settled()
        sent = [sent_by(cluster, node) for node in NODES]
        results += [
            Result(f"{name}: most loaded node, beyond the mean", max(sent) / sum(sent) * len(sent) - 1, 1.0 if name != "neither" else None, "%"),
            Result(f"{name}: that film's bytes from the origin / its size", origin["paths"][film][1] / films.size(film), len(NODES) + 0.1),
            Result(f"{name}: all other films' / distinct bytes wanted", others(origin, tallies[-1], film), 1.02 if name == "copies" else None),
        ]
        cluster.stop()
    return honest(*tallies) + results


def tiers(cluster, options):
    """Three edges with a parent: a gap is fetched once, and the parent may be killed."""
    if not cluster.has("--parent"):
        return []
    parent = cluster.add("parent")
    edges = [cluster.add(name, flags=["--parent", f"http://{PARENT}:{PORT}"]) for name in NODES]
    film, other, third = (films.path(number, size, size) for number, size in ((1, 12 * MIB), (2, 20 * MIB), (3, 96 * MIB)))
    gap = (5 * MIB + 7, 9 * MIB + 11)

    tallies, requests, sent = [], [], []
    for path, start, end in [(film, 0, None), (other, *gap)]:
        cluster.origin.set(reset=1, hold=1)
        shows = at_edges(edges, [(path, start, end)])
        wait(lambda: cluster.origin.state()["requests"])
        time.sleep(0.3)  # further requests would come now
        cluster.origin.set(hold=0)
        tallies += [show.finish() for show in shows]
        origin = cluster.origin.settled()
        requests.append(origin["requests"])
        sent.append(origin["bytes"] / ((end or films.size(path)) - start))

    cluster.origin.set(reset=1)
    shows = at_edges(edges, [(third, 0, None)], pace=16 * MIB)
    wait(lambda: min(show.tally.bytes for show in shows) > 8 * MIB)
    parent.kill()
    killed = [show.finish() for show in shows]
    origin = cluster.origin.settled()
    return honest(*tallies, *killed) + [
        Result("three edges want a film at once: requests at the origin", requests[0], 1),
        Result("three edges want a gap at once: requests at the origin", requests[1], 1),
        Result("origin's bytes / the gap", sent[1], 1.1),
        Result("parent killed midway: players cut off or failed", sum(tally.cuts + tally.failures for tally in killed), 0),
        Result("requests at the origin for this film: the parent's, then the edges'", origin["requests"], None),
        Result("origin's bytes / the film", origin["bytes"] / films.size(third), len(edges) + 0.1),
    ]


def join(cluster, options):
    """A node joins a ring, and what moves to it comes from the others: where there is room, and where caches are full."""
    earlier, later, least, greatest = size_of(options, (8, 2, 128 * KIB, 448 * KIB), (24, 6, 64 * KIB, MIB))
    audience = Audience(options, 200, 1000, earlier + later, least, greatest)
    plans = [[plan[part] for plan in audience.plans] for part in (slice(earlier), slice(earlier, None))]
    results, tallies, size = [], [], "4GB"
    for room in ("room", "full"):
        nothing, *first = joined(cluster, plans, size, [])
        parent, before, after = joined(cluster, plans, size, ["--parent", f"http://{BALANCER}:7334"])
        tallies += [*first, before, after]
        new = sum(union([*before.wanted.get(path, []), *parts]) - union(before.wanted.get(path, [])) for path, parts in after.wanted.items())
        results += [
            Result(f"{room}: bytes wanted once it has joined", after.bytes, None, "MB"),
            Result(f"{room}: of these, nobody wanted before", new, None, "MB"),
            Result(f"{room}: it joins with nothing: origin's bytes", nothing, None, "MB"),
            Result(f"{room}: it joins with the ring as its parent: origin's bytes", parent, None, "MB"),
            # Where there is room, nothing is fetched again.
            Result("room: the latter / what is new", parent / new, 1.02) if room == "room" else Result("full: the latter / the former", parent / nothing, 0.95),
        ]
        size = before.distinct() // len(NODES)
    return honest(*tallies) + results


def joined(cluster, plans, size, parent):
    """The bytes that the origin sends once a node with these flags has joined, and the players' tallies before and after that."""
    cluster.start(["node1", "node2"], size)
    before = play(plans[0], at_once=12)
    cluster.balancer.stop()
    cluster.add("node3", size, parent)
    cluster.balancer = HAProxy(cluster, before_it_joined() if parent else [])
    cluster.origin.settled()
    cluster.origin.set(reset=1)
    after = play(plans[1], at_once=12)
    fetched = cluster.origin.settled()["bytes"]
    cluster.stop()
    return fetched, before, after


def before_it_joined():
    """The comments of haproxy.cfg by which the ring, as it was before, is a parent."""
    with open(os.path.join(CONFIG, "haproxy.cfg")) as file:
        text, backend = file.read().split("# backend nodes_before\n")
    lines = [line for line in text.splitlines(True) if "so_name before" in line or "name before" in line]
    return [(line, line.replace("# ", "", 1)) for line in [*lines, "# backend nodes_before\n", *backend.splitlines(True)]]


def at_edges(edges, plan, pace=0):
    """A player at each edge."""
    shows = [Show([plan], server=(edge.address, PORT), pace=pace) for edge in edges]
    for show in shows:
        show.start()
    return shows


def wait(fact, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > until:
            raise TimeoutError("what a scenario waits for does not happen")
        time.sleep(0.02)


def others(origin, tally, film):
    return (origin["bytes"] - origin["paths"][film][1]) / (tally.distinct() - films.size(film))


def blocks(cluster, options):
    """A big film by blocks of 1 GiB of the range's start: the load, and what it costs those who read across blocks."""
    size, part = size_of(options, 4, 8) * GIB, 16 * MIB
    film, chance = films.path(1, size, size), random.Random(options.seed)
    plans = [[(film, start, start + part) for start in (chance.randrange(size - part) for _ in range(size_of(options, 2, 8)))] for _ in range(40)]
    with open(os.path.join(CONFIG, "haproxy.cfg")) as file:
        lines = [line for line in file if "from_a_later_block" in line and line.strip().startswith("#")]
    results, tallies = [], []
    for name, changes in [("by film", []), ("by blocks", [(line, line.replace("# ", "", 1)) for line in lines])]:
        cluster.start(max_size="8GB", changes=changes)
        tally = play(plans)
        origin, sent = cluster.origin.settled(), [sent_by(cluster, node) for node in NODES]
        results += [Result(f"{name}: most loaded node, beyond the mean", max(sent) / sum(sent) * len(sent) - 1, None, "%"),
                    Result(f"{name}: origin's bytes / distinct bytes wanted", origin["bytes"] / tally.distinct(), None)]
        tallies.append(tally)
        cluster.stop()
    return honest(*tallies) + results


# Those that only compare figures are no part of all with --short.
FIGURES = {"hot", "blocks", "throughput"}
ALL = {"ring": ring, "room": room, "loss": loss, "drain": drain, "hang": hang, "hot": hot, "blocks": blocks, "tiers": tiers, "join": join, "addresses": addresses, "pause": pause, "nginx": nginx,
       "guide": guide, "throughput": throughput}
