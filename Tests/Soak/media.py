"""The media of the soak: what each byte of each version of each URL is, without storing any of it.

A target's first path segment is its kind. Its size follows from its name, its bytes from its name and its version, so that bytes of another
URL, another version or another place are seen as wrong wherever they turn up.
"""
import random
import time
import zlib

PERIOD = 4_194_301  # a prime near 4 MiB: no two chunks of 64 KiB of one file are the same before 256 GiB
BASE = random.Random(20).randbytes(PERIOD)
BASE += BASE
PIECE = 256 * 1024

KIB, MIB = 1024, 1024 * 1024

# kind: least and greatest size
SIZES = {
    "film": (6 * MIB, 24 * MIB),       # a strong entity tag
    "changing": (2 * MIB, 6 * MIB),    # the same, and another version every CHANGES_AFTER seconds
    "revised": (1 * MIB, 4 * MIB),     # the same, and what changes is Last-Modified alone
    "weak": (1 * MIB, 4 * MIB),        # a weak entity tag
    "dated": (1 * MIB, 4 * MIB),       # Last-Modified alone
    "bare": (1 * MIB, 4 * MIB),        # no validator
    "short": (256 * KIB, 2 * MIB),     # fresh for three seconds
    "nocache": (256 * KIB, 2 * MIB),   # no-cache, with an entity tag
    "nostore": (64 * KIB, 1 * MIB),
    "whole": (256 * KIB, 3 * MIB),     # an origin without ranges
    "chunked": (64 * KIB, 2 * MIB),    # no length, no ranges
    "closed": (64 * KIB, 1 * MIB),     # the same, and ends with its connection
    "moved": (1 * MIB, 4 * MIB),       # redirects to another target
    "seg": (1, 200 * KIB),             # many small ones
}
COUNTS = {"film": 12, "seg": 60}
CHANGES_AFTER = 40
BEGAN = 1_700_000_000


def kind(target):
    return target.split("/", 2)[1]


def size(target):
    least, greatest = SIZES[kind(target)]
    return least + zlib.crc32(target.encode()) % (greatest - least + 1)


def version(target):
    """The version that the origin has now."""
    if kind(target) not in ("changing", "revised"):
        return 1
    return int((time.time() - BEGAN + zlib.crc32(target.encode()) % CHANGES_AFTER) / CHANGES_AFTER)


def tag(target, of):
    return f'"{zlib.crc32(target.encode()):08x}-{of}"'


def modified(of):
    """When a version was made, in seconds since 1970; never less than a minute ago."""
    return BEGAN - 86_400 + 60 * of if of == 1 else BEGAN - 86_400 + of


def piece(target, of, start, length):
    """The bytes from `start`; at most PERIOD of them at once."""
    shift = (start + zlib.crc32(f"{target} {of}".encode())) % PERIOD
    return BASE[shift:shift + length]


def targets(of_kind):
    return [f"/{of_kind}/{number:03}.mp4" for number in range(COUNTS.get(of_kind, 6))]
