import HTTPModel

/// The state of the cache directory and its file system.
struct DirectoryFacts: Sendable, Equatable {
    enum Place: Sendable, Equatable {
        /// It does not exist; with the nearest existing directory above it, and whether this user can create it
        /// there.
        case missing(above: String, canBeMade: Bool)
        case directory(owner: UInt32, mode: UInt32, isWritable: Bool)
        case notDirectory
        /// With the system's error message.
        case unreachable(String)
    }

    var path: String
    var place: Place
    /// The user ID of this process.
    var user: UInt32
    var fileSystem: FileSystemKind

    var findings: [Finding] { [finding] + fileSystem.findings(of: path) }

    private var finding: Finding {
        let elsewhere = "name another with --cache-dir or cache_dir"
        switch place {
        case .missing(_, canBeMade: true): return .ok("cache", "\(path) does not exist yet: the proxy creates it")
        case .missing(let above, _):
            return .problem("cache", "\(path) cannot be created, because \(above) is not writable", elsewhere)
        case .notDirectory: return .problem("cache", "\(path) is not a directory", elsewhere)
        case .unreachable(let reason): return .problem("cache", "\(path) cannot be reached: \(reason)", elsewhere)
        case .directory(let owner, _, isWritable: false):
            let whose = owner == user ? "and its permissions keep you out" : "and belongs to user \(owner)"
            let mend = owner == user ? "run chmod u+rwx \(path)" : "run this command as that user"
            return .problem("cache", "\(path) is not writable, \(whose)", "\(mend), or \(elsewhere)")
        case .directory(let owner, _, _) where owner != user && user != 0:
            return .warning(
                "cache", "\(path) belongs to user \(owner)",
                "run the proxy and its commands as that user, or \(elsewhere)")
        case .directory(_, let mode, _) where mode & 0o077 != 0:
            return .warning("cache", "other users can look into \(path)", "run chmod 700 \(path)")
        case .directory: return .ok("cache", "\(path) is writable")
        }
    }
}

/// The file system of the cache.
struct FileSystemKind: Sendable, Equatable {
    /// The type number that statfs(2) returns.
    var magic: Int64
    var isReadOnly = false

    private enum Sort { case local, memory, network, unsuitable, userSpace }

    private static let known: [Int64: (name: String, sort: Sort)] = [
        0xEF53: ("ext4", .local), 0x5846_5342: ("XFS", .local), 0x9123_683E: ("Btrfs", .local),
        0xF2F5_2010: ("F2FS", .local), 0x2FC1_2FC1: ("ZFS", .local), 0x794C_7630: ("overlayfs", .local),
        0xCA45_1A4E: ("bcachefs", .local), 0x0102_1994: ("tmpfs", .memory), 0x8584_58F6: ("ramfs", .memory),
        0x6969: ("NFS", .network), 0x517B: ("SMB", .network), 0xFF53_4D42: ("CIFS", .network),
        0xFE53_4D42: ("SMB", .network), 0x0102_1997: ("9P", .network), 0x00C3_6400: ("Ceph", .network),
        0x5346_414F: ("AFS", .network), 0x4D44: ("FAT", .unsuitable), 0x2011_BAB0: ("exFAT", .unsuitable),
        0x6573_5546: ("FUSE", .userSpace),
    ]

    func findings(of path: String) -> [Finding] {
        if isReadOnly {
            return [
                .problem("file system", "that of \(path) is read-only", "remount it writable, or move the cache")
            ]
        }
        guard let (name, sort) = Self.known[magic] else { return [.ok("file system", "a local one")] }
        return switch sort {
        case .local: [.ok("file system", name)]
        case .memory:
            [
                .warning(
                    "file system", "\(name), which is in memory: the cache is gone after a restart of the machine",
                    "move the cache to a disk")
            ]
        case .network:
            [
                .problem(
                    "file system", "\(name), which is on the network: locks and memory maps are not safe there",
                    "move the cache to a local disk")
            ]
        case .unsuitable:
            [
                .problem(
                    "file system", "\(name), which has neither sparse files nor permissions",
                    "move the cache to ext4, XFS or Btrfs")
            ]
        case .userSpace:
            [
                .warning(
                    "file system", "\(name), which may be slow or on the network",
                    "move the cache to a local disk if films stutter")
            ]
        }
    }
}

/// Disk space, in bytes.
struct SpaceFacts: Sendable, Equatable {
    var free: Int64
    /// The current size of the cache.
    var cached: Int64
    var maxSize: Int64
    var minFree: Int64

    var finding: Finding {
        let room = free -| minFree +| cached
        let state = "\(ByteSize(bytes: free)) free, \(ByteSize(bytes: cached)) cached"
        if room < 16_000_000 {
            return .problem(
                "space", "\(state): min_free (\(ByteSize(bytes: minFree))) leaves no room for the cache",
                "free some of the disk, lower min_free, or move the cache")
        }
        if room < maxSize {
            return .warning(
                "space",
                "\(state): with min_free (\(ByteSize(bytes: minFree))) the cache can use at most \(ByteSize(bytes: room)) of its max_size (\(ByteSize(bytes: maxSize)))",
                "free some of the disk, or lower max_size")
        }
        return .ok("space", "\(state), at most \(ByteSize(bytes: maxSize))")
    }
}

/// Which operations on parts of files the file system supports, found by trying them on files of the doctor's own.
struct SparseFacts: Sendable, Equatable {
    enum Trial: Sendable, Equatable {
        case works, refused
        /// It could not be tried; with the reason.
        case untried(String)
    }

    var holes: Trial
    /// Whether lseek(2) distinguishes holes from data.
    var reportsHoles: Bool
    var reflinks: Trial

    var findings: [Finding] { [holeFinding, reflinkFinding] }

    private var holeFinding: Finding {
        switch holes {
        case .works where reportsHoles: .ok("holes", "parts of files can be freed")
        case .works:
            .warning(
                "holes", "parts of files can be freed, but holes cannot be told from data",
                "move the cache to ext4, XFS or Btrfs if backups of it are large")
        case .refused:
            .warning(
                "holes", "parts of files cannot be freed: only whole films can be evicted",
                "move the cache to ext4, XFS or Btrfs")
        case .untried(let reason): .ok("holes", "not tried: \(reason)")
        }
    }

    private var reflinkFinding: Finding {
        switch reflinks {
        case .works: .ok("reflinks", "exported files share their blocks with the cache")
        case .refused: .ok("reflinks", "none on this file system: exported files are copies")
        case .untried(let reason): .ok("reflinks", "not tried: \(reason)")
        }
    }
}
