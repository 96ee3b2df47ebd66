"""The films of the cluster's origin: what each byte of each path is, without storing any of it.

A path is /films/LEAST-GREATEST/NAME: the size follows from the path, between these bounds, and the bytes from the path and the offset, so that bytes of another
film or another place are seen as wrong wherever they turn up.
"""
import os
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Soak"))
from media import KIB, MIB, PERIOD, piece as versioned_piece  # noqa: E402, F401

PIECE = 256 * KIB
GIB = 1024 * MIB


def path(number, least, greatest):
    return f"/films/{least}-{greatest}/{number:04}.mp4"


def size(path):
    """None for what is no film."""
    if path == "/films/film.mp4":
        return MIB  # that of the guide
    parts = path.split("/")
    try:
        least, greatest = map(int, parts[2].split("-"))
    except (ValueError, IndexError):
        return None
    return least + zlib.crc32(path.encode()) % (greatest - least + 1)


def piece(path, start, length, version=1):
    """The bytes from `start`; at most PERIOD of them at once."""
    return versioned_piece(path, version, start, length)
