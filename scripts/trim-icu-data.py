#!/usr/bin/env python3
"""Creates an object file with the part of ICU's data that a program in English needs, for scripts/build-release.

trim-icu-data.py ARCHIVE OUTPUT: ARCHIVE is Swift's lib_FoundationICU.a, whose data (34 MB) covers all languages of the world. OUTPUT defines
__wrap_icudtNN_dat, which takes the place of icudtNN_dat if the linker runs with --wrap=icudtNN_dat. Prints that name.

The format is that of ICU's common data files: a header, then a table of contents (a count, and for each item the offset of its name and that of its
data, from the table's beginning), names, and items: https://unicode-org.github.io/icu/userguide/icu_data/
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

# Directories with names of things in many languages; their roots stay, because ICU opens them.
LANGUAGES = {"brkitr", "coll", "curr", "lang", "rbnf", "region", "unit", "zone"}
KEPT = {"root", "en", "en_US", "en_US_POSIX", "en_001", "pool", "res_index", "supplementalData"}
# Converters of character sets, profiles of identifiers, names and look-alikes of characters, transliteration.
LEFT_OUT = re.compile(r"\.(cnv|spp|cfu)$|^(unames|cnvalias)\.icu$")


def is_kept(name):
    _, *directories, leaf = name.split("/")
    stem, extension = os.path.splitext(leaf)
    if directories:
        return directories[0] in LANGUAGES and (extension != ".res" or stem in KEPT) and extension != ".dict"
    if LEFT_OUT.search(leaf):
        return False
    # Names of languages are short (de, zh_Hant_HK); those of tables are not (likelySubtags).
    return extension != ".res" or stem in KEPT or (len(stem) > 4 and "_" not in stem)


def items(data):
    begin = struct.unpack_from("<H", data)[0]
    count = struct.unpack_from("<I", data, begin)[0]
    table = [struct.unpack_from("<II", data, begin + 4 + 8 * number) for number in range(count)]
    ends = [start for _, start in table[1:]] + [len(data) - begin]
    for (name, start), end in zip(table, ends):
        text = data[begin + name:data.index(b"\0", begin + name)]
        yield text.decode(), data[begin + start:begin + end]


def trimmed(data):
    header = data[:struct.unpack_from("<H", data)[0]]
    kept = [(name.encode() + b"\0", item + bytes(-len(item) % 16)) for name, item in items(data) if is_kept(name)]
    position = 4 + 8 * len(kept)
    names = b"".join(name for name, _ in kept)
    start = position + len(names)
    gap = -(len(header) + start) % 16
    start += gap
    table = struct.pack("<I", len(kept))
    for name, item in kept:
        table += struct.pack("<II", position, start)
        position, start = position + len(name), start + len(item)
    return header + table + names + bytes(gap) + b"".join(item for _, item in kept)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: trim-icu-data.py ARCHIVE OUTPUT")
    archive, output = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as work:
        def run(*command):
            return subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True).stdout

        run("ar", "x", archive, "icu_packaged_data.cpp.o")
        symbols = run("nm", "--defined-only", "icu_packaged_data.cpp.o").split()
        name = next((symbol for symbol in symbols if re.fullmatch(r"icudt\d+_dat", symbol)), None)
        if name is None:
            sys.exit(f"trim-icu-data: {archive} has no icudtNN_dat")
        run("objcopy", "-O", "binary", "--only-section=.rodata", "icu_packaged_data.cpp.o", "all")
        with open(os.path.join(work, "all"), "rb") as file:
            data = file.read()
        # ICU's magic numbers, and little-endian ASCII: the only format that this program reads.
        if data[2:4] != b"\xda\x27" or data[8:10] != b"\0\0":
            sys.exit(f"trim-icu-data: the data in {archive} has a format that is not known")
        with open(os.path.join(work, "kept"), "wb") as file:
            file.write(trimmed(data))
        with open(os.path.join(work, "kept.S"), "w") as file:
            file.write(f"""
    .section .rodata
    .balign 16
    .globl __wrap_{name}
    .type __wrap_{name}, @object
__wrap_{name}:
    .incbin "kept"
    .size __wrap_{name}, . - __wrap_{name}
    .section .note.GNU-stack,"",@progbits
""")
        run("gcc", "-c", "kept.S", "-o", output)
    print(name)


main()
