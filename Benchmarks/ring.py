#!/usr/bin/env python3
"""How a ring of caches behaves as it grows: a simulation, for docs/operators/cluster.md.

    Benchmarks/ring.py [--plays 150000] [--films 5000] [--seed 18] [--zipf 0.8,1.0] [--nodes 1,3,10,30,100] [--json FILE]

The model: a catalogue of films (log-normal, 4 GB in the middle) whose popularity follows Zipf's law. A play begins at a film's start, or with
--seeks of them somewhere in it, requests `bytes=N-` and leaves after a part of it. Each node keeps one percent of the catalogue, and evicts what was
read least recently, by pieces of 64 MiB. A consistent hash with the points that HAProxy gives a server of weight 100 chooses the node. Everything is
counted in bytes, in the second half of the plays; the first half warms the caches.

    ring     hit ratio over the number of nodes, and of one cache of the same size; the busiest node over the mean; the same with a bounded load, and
             by blocks of 1 GiB of the range's start
    points   the busiest node over the mean, by weight in HAProxy: a server has 16 points for each unit of it
    bound    what bounded load (hash-balance-factor) sends to another node than the owner, by how many requests run at once
    loss     what a lost node costs: films that move, and the origin's share of all bytes before, at first, and later
"""
import argparse
import bisect
import collections
import hashlib
import heapq
import itertools
import json
import random
import statistics

MIB = 1 << 20
GIB = 1 << 30
PIECE = 64 * MIB
POINTS_OF_WEIGHT = 16
WEIGHT = 100
# The bounded load of the ring's table: hash-balance-factor, and how many plays run on each node at once.
FACTOR, AT_ONCE = 150, 100


def main():
    options = arguments()
    results = {"ring": [], "points": [], "bound": [], "loss": []}
    for zipf in options.zipf:
        world = World(options, zipf)
        results["ring"] += [ring_row(world, nodes) for nodes in options.nodes]
        results["loss"] += [loss_row(world, nodes) for nodes in options.nodes if nodes > 1]
    world = World(options, options.zipf[0])
    results["points"] = [points_row(world, nodes, weight) for nodes in options.nodes if nodes > 1 for weight in (1, 10, 100, 256)]
    results["bound"] = [bound_row(world, nodes, factor) for nodes in (3, 10, 30, 100) for factor in (125, 150, 200, 300)]
    if options.json:
        with open(options.json, "w") as out:
            json.dump(results, out, indent=1)
    show(results, options)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plays", type=int, default=150_000)
    parser.add_argument("--films", type=int, default=5_000)
    parser.add_argument("--seeks", type=float, default=0.2, help="share of plays that begin somewhere in the film (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--zipf", type=lambda text: [float(part) for part in text.split(",")], default=[0.8, 1.0], metavar="S,S")
    parser.add_argument("--nodes", type=lambda text: [int(part) for part in text.split(",")], default=[1, 3, 10, 30, 100], metavar="N,N")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


class World:
    """A catalogue, and the plays of it."""

    def __init__(self, options, zipf):
        chance = random.Random(options.seed)
        self.zipf = zipf
        self.sizes = [int(min(30e9, max(5e8, chance.lognormvariate(22.1, 0.6)))) for _ in range(options.films)]
        self.catalogue = sum(self.sizes)
        weights = list(itertools.accumulate(1 / rank ** zipf for rank in range(1, options.films + 1)))
        films = chance.choices(range(options.films), cum_weights=weights, k=options.plays)
        self.plays = [self.play(film, chance, options.seeks) for film in films]

    def play(self, film, chance, seeks):
        """A film and the half-open range of it that is read."""
        size = self.sizes[film]
        start = chance.randrange(size) if chance.random() < seeks else 0
        # Half of the viewers stay to the end; the others leave anywhere.
        end = size if chance.random() < 0.5 else start + chance.randrange(1, size - start + 1)
        return film, start, end


class Ring:
    """A consistent hash: each node has many points on a circle, and a key belongs to the next point after it."""

    def __init__(self, nodes, weight=WEIGHT):
        self.nodes = list(nodes)
        pairs = sorted((position(f"node {node} point {point}"), node) for node in self.nodes for point in range(weight * POINTS_OF_WEIGHT))
        self.points = [point for point, _ in pairs]
        self.owners_of_points = [node for _, node in pairs]
        self.known = {}

    def owner(self, key):
        if key not in self.known:
            self.known[key] = self.owners_of_points[self.index(key)]
        return self.known[key]

    def index(self, key):
        return bisect.bisect(self.points, position(str(key))) % len(self.points)

    def owner_that(self, key, fits):
        """The first node from the key's place on that fits; as HAProxy with a bounded load."""
        index = self.index(key)
        while not fits(self.owners_of_points[index]):
            index = (index + 1) % len(self.points)
        return self.owners_of_points[index]


def position(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Cache:
    """Pieces of films, the most recently read last."""

    def __init__(self, limit):
        self.limit, self.used, self.pieces = limit, 0, collections.OrderedDict()

    def read(self, film, start, end, size):
        """Reads a range, fetches what is missing of it, and returns how many bytes that was."""
        fetched = 0
        for piece in range(start // PIECE, (end - 1) // PIECE + 1):
            name = (film, piece)
            if name in self.pieces:
                self.pieces.move_to_end(name)
                continue
            length = min(PIECE, size - piece * PIECE)
            fetched += length
            self.used += length
            self.pieces[name] = length
            while self.used > self.limit:
                self.used -= self.pieces.popitem(last=False)[1]
        return fetched


def by_film(film, start):
    return film


def by_block(film, start):
    """As HAProxy sees it: the block of the range's start; what follows comes from the same node."""
    return film, start // GIB


class Load:
    """Which plays run on which node, and HAProxy's rule of the bounded load: of all requests with this one times the factor, each server may have an
    equal part, in whole numbers."""

    def __init__(self, ring, factor, at_once):
        self.ring, self.factor, self.pace = ring, factor, at_once * len(ring.nodes)
        self.chance, self.running, self.now = random.Random(7), [], 0.0
        self.served, self.total = [0] * len(ring.nodes), 0

    def fits(self, node):
        nodes = len(self.served)
        share, rest = divmod(((self.total + 1) * self.factor + 99) // 100, nodes)
        return self.served[node] < share + ((node + 1) * rest // nodes - node * rest // nodes)

    def next(self, key):
        """The node of the next play, which lasts for a while."""
        self.now += self.chance.expovariate(self.pace)
        while self.running and self.running[0][0] <= self.now:
            self.count(heapq.heappop(self.running)[1], -1)
        node = self.ring.owner_that(key, self.fits)
        self.count(node, 1)
        heapq.heappush(self.running, (self.now + self.chance.expovariate(1), node))
        return node

    def count(self, node, change):
        self.served[node] += change
        self.total += change


class Run:
    """Plays on a ring of nodes, each with its share of the catalogue."""

    def __init__(self, world, nodes, key=by_film, ring=None, limit=None, bounded=False):
        self.world, self.key, self.ring = world, key, ring or Ring(range(nodes))
        self.caches = {node: Cache(limit or world.catalogue // 100) for node in self.ring.nodes}
        self.load = Load(self.ring, FACTOR, AT_ONCE) if bounded else None

    def over(self, plays):
        """The share of bytes that came from caches, and the bytes that each node has sent."""
        fetched, sent = 0, collections.Counter({node: 0 for node in self.ring.nodes})
        for film, start, end in plays:
            key = self.key(film, start)
            node = self.load.next(key) if self.load else self.ring.owner(key)
            size = self.world.sizes[film]
            # A play reads whole pieces here; they are counted so.
            sent[node] += min(size, -(-end // PIECE) * PIECE) - start // PIECE * PIECE
            fetched += self.caches[node].read(film, start, end, size)
        return 1 - fetched / sum(sent.values()), sent


def halves(plays):
    return plays[:len(plays) // 2], plays[len(plays) // 2:]


def busiest(sent):
    return max(sent.values()) / statistics.mean(sent.values())


def ring_row(world, nodes):
    first, second = halves(world.plays)
    runs = {"film": Run(world, nodes), "one": Run(world, 1, limit=world.catalogue // 100 * nodes), "bound": Run(world, nodes, bounded=True),
            "block": Run(world, nodes, by_block)}
    row = {"zipf": world.zipf, "nodes": nodes}
    for name, run in runs.items():
        run.over(first)
        row[name], sent = run.over(second)
        row[f"{name}_busiest"] = busiest(sent)
    return row


def points_row(world, nodes, weight):
    """Without caches: who is asked, and who owns how many bytes of the catalogue."""
    ring, sent, owned = Ring(range(nodes), weight), collections.Counter(), collections.Counter({node: 0 for node in range(nodes)})
    for film, start, end in world.plays:
        sent[ring.owner(film)] += end - start
    for film, size in enumerate(world.sizes):
        owned[ring.owner(film)] += size
    return {"nodes": nodes, "weight": weight, "busiest": busiest(sent), "largest": busiest(owned)}


def bound_row(world, nodes, factor):
    """The share of requests that another node than the owner gets, over the mean number of requests that run on each node."""
    row = {"nodes": nodes, "factor": factor}
    for at_once in (1, 3, 10, 30, 100):
        row[at_once], row[f"{at_once}_busiest"] = strays(world, nodes, factor, at_once)
    return row


def strays(world, nodes, factor, at_once):
    """The share of plays that another node than the owner gets, and the most plays that a node has over the mean."""
    ring = Ring(range(nodes))
    load, stray, peaks = Load(ring, factor, at_once), 0, []
    plays = world.plays[:20_000]
    for number, (film, _, _) in enumerate(plays):
        stray += load.next(film) != ring.owner(film)
        if number > len(plays) // 4:
            peaks.append(max(load.served) * nodes / load.total)
    return stray / len(plays), statistics.mean(peaks)


def loss_row(world, nodes):
    """The same plays with and without a node, from the same warm caches: the first twentieth of what follows, and the rest."""
    first, second = halves(world.plays)
    soon, later = second[:len(second) // 20], second[len(second) // 20:]
    ring, less = Ring(range(nodes)), Ring(range(1, nodes))
    whole, broken = Run(world, nodes, ring=ring), Run(world, nodes, ring=ring)
    whole.over(first)
    broken.over(first)
    cached = sum(cache.used for cache in broken.caches.values())
    had = broken.caches.pop(0).used
    broken.ring = less
    row = {"zipf": world.zipf, "nodes": nodes, "cached": had / cached}
    row["moved"] = statistics.mean(ring.owner(film) != less.owner(film) for film in range(len(world.sizes)))
    row["own"] = statistics.mean(ring.owner(film) == 0 for film in range(len(world.sizes)))
    for name, plays in [("soon", soon), ("later", later)]:
        row[f"{name}_whole"], row[f"{name}_broken"] = 1 - whole.over(plays)[0], 1 - broken.over(plays)[0]
    return row


def show(results, options):
    print(f"{options.films:,} films, {options.plays:,} plays, seed {options.seed}; each node keeps 1 % of the catalogue\n")
    table(["Zipf", "nodes", "hit ratio", "one cache of that size", "busiest node / mean", f"factor {FACTOR}: hit ratio", "busiest / mean",
           "by 1 GiB blocks: hit ratio", "busiest / mean"],
          [[row["zipf"], row["nodes"], percent(row["film"]), percent(row["one"]), f"{row['film_busiest']:.2f}", percent(row["bound"]),
            f"{row['bound_busiest']:.2f}", percent(row["block"]), f"{row['block_busiest']:.2f}"] for row in results["ring"]])
    table(["nodes", "weight", "points of a node", "busiest node / mean", "most films, by size / mean"],
          [[row["nodes"], row["weight"], row["weight"] * POINTS_OF_WEIGHT, f"{row['busiest']:.2f}", f"{row['largest']:.2f}"] for row in results["points"]])
    loads = (1, 3, 10, 30, 100)
    table(["nodes", "hash-balance-factor"] + [f"{load} at once on each" for load in loads],
          [[row["nodes"], row["factor"]] + [f"{percent(row[load])} ({row[f'{load}_busiest']:.2f})" for load in loads] for row in results["bound"]])
    table(["Zipf", "nodes", "films that move", "the lost node's", "its part of the cached bytes", "from the origin at first: with it", "without", "later: with it",
           "without"],
          [[row["zipf"], row["nodes"]] + [percent(row[name]) for name in ("moved", "own", "cached", "soon_whole", "soon_broken", "later_whole", "later_broken")]
           for row in results["loss"]])


def percent(value):
    return f"{100 * value:.1f} %"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


if __name__ == "__main__":
    main()
