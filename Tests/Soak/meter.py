"""How a proxy's memory, descriptors, threads and disk are measured, and when they count as flat."""
import os
import statistics

# What is sampled: its greatest growth, as a share, and what it may grow by in any case (bytes, or a number).
LIMITS = {"anon": 2 << 20, "own": 2 << 20, "pss": 32 << 20, "descriptors": 8, "threads": 1, "disk": 8 << 20}


def sample(pid, directory):
    memory = smaps(pid)
    kept, unlinked, count = descriptors(pid, directory)
    return {
        "anon": memory["Pss_Anon"], "pss": memory["Pss"],
        # Without the mapped files of the cache: heap, stacks, the program, its libraries, the databases' shared memory.
        "own": memory["Pss"] - mapped(pid, directory),
        "descriptors": count, "threads": len(os.listdir(f"/proc/{pid}/task")), "disk": disk(directory) + unlinked,
    }


def smaps(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in file) if value.rstrip().endswith("kB")}


def mapped(pid, directory):
    """The resident bytes of the cache's data files."""
    total, counts = 0, False
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            first = line.split(" ", 1)[0]
            if not first.endswith(":"):
                counts = f"{directory}/data" in line
            elif counts and first == "Pss:":
                total += int(line.split()[1]) * 1024
    return total


def descriptors(pid, directory):
    """Bytes of open files that have a name in the cache or none any more, and the number of all descriptors."""
    kept = unlinked = count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        count += 1
        try:
            path = os.readlink(f"/proc/{pid}/fd/{name}")
            if path.startswith(directory):
                size = os.stat(f"/proc/{pid}/fd/{name}").st_blocks * 512
                if path.endswith(" (deleted)"):
                    unlinked += size
                else:
                    kept += size
        except OSError:
            continue
    return kept, unlinked, count


def disk(directory):
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def processor(pid):
    """Seconds of CPU of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def verdict(samples, share):
    """For each measure: its median over the second and over the last quarter, and whether it has not grown by more than `share`.

    The first quarter is the warm-up. What shrinks is no leak.
    """
    quarter = len(samples) // 4
    rows = []
    for name, floor in LIMITS.items():
        before = statistics.median(row[name] for row in samples[quarter:2 * quarter])
        after = statistics.median(row[name] for row in samples[3 * quarter:])
        rows.append((name, before, after, after - before <= max(share * before, floor)))
    return rows
