import CLinux
import Glibc
import HTTPModel

/// What a file system of Windows has no names for.
/// Source: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
package struct FileNameRule: Sendable, Equatable {
    /// The file system, as errors name it.
    let owner: String
    /// Whether Linux itself refuses such names there; otherwise only a system of Windows does.
    let isEnforced: Bool

    private static let known: [Int: FileNameRule] = [
        0x2011_BAB0: FileNameRule(owner: "exFAT", isEnforced: true),
        0x4D44: FileNameRule(owner: "FAT", isEnforced: true),
        0x5346_544E: FileNameRule(owner: "NTFS", isEnforced: false),
        0x7366_746E: FileNameRule(owner: "NTFS", isEnforced: false),
    ]
    private static let fuse = 0x6573_5546
    /// The bits of a device's major number, makedev(3): 0 without a block device.
    private static let major: dev_t = 0xFFFF_F000_000F_FF00

    package init(owner: String, isEnforced: Bool) { (self.owner, self.isEnforced) = (owner, isEnforced) }

    /// The rule of the file system that has a directory; nil if it has every name.
    init?(of directory: String) {
        let magic = Int(reel_file_system(directory))
        if let known = Self.known[magic] {
            self = known
        } else {
            // FUSE may be anything, but on a disk of its own (fuseblk), it is exFAT or NTFS.
            var info = stat()
            guard magic == Self.fuse, stat(directory, &info) == 0, info.st_dev & Self.major != 0 else { return nil }
            self.init(owner: "its file system", isEnforced: false)
        }
    }

    // MARK: Names

    /// Whether no name has the scalar. A slash separates names.
    static func forbids(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || "<>:\"\\|?*".contains(Character(scalar))
    }

    private static let reserved = Set(
        ["con", "prn", "aux", "nul"] + ["com", "lpt"].flatMap { port in "123456789¹²³".map { "\(port)\($0)" } })

    /// Whether a name stands for a device, whatever its extension.
    static func isReserved(_ name: String) -> Bool {
        let base = name.lowercased().prefix { $0 != "." }
        return reserved.contains(String(base.drop { $0 == " " }.prefix { $0 != " " }))
    }

    /// Why no file there has the name, as the end of a sentence; nil if one may.
    package func objection(to name: some StringProtocol) -> String? {
        if let scalar = name.unicodeScalars.first(where: Self.forbids) {
            return "\(owner) permits no '\(String(scalar).printable)' in names"
        }
        if let last = name.last, last == "." || last == " " {
            return "\(owner) permits no '\(last)' at the end of names"
        }
        return Self.isReserved(String(name)) ? "\(owner) reserves that name" : nil
    }

    /// The objection to a path before anything is written, or once the system has refused it.
    static func objection(toPath path: String, in directory: String, isRefused: Bool = false) -> String? {
        guard let rule = FileNameRule(of: directory), rule.isEnforced || isRefused else { return nil }
        return rule.objection(to: path.split(separator: "/", omittingEmptySubsequences: false).last ?? "")
    }
}
