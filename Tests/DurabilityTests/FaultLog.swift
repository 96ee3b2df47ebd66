import Foundation

/// What a program did to the files of a directory, in order, as `Tests/FaultLayer` wrote it down.
struct FaultLog {
    enum Change {
        /// An empty file of this name, relative to the directory.
        case create(String)
        case open(String)
        /// The bytes are those of the log in this range.
        case write(at: Int64, Range<Int>)
        case truncate(to: Int64)
        case punch(Range<Int64>)
        /// The file has at least this size.
        case allocate(Int64)
        case sync
        case syncAll
        case unlink(String)
        case rename(String, to: String)
        case makeDirectory(String)
        case removeDirectory(String)
    }

    struct Record {
        /// The inode, where the change is one of a file. It is used anew when its file is gone: a `create` tells.
        let file: UInt64
        let change: Change
    }

    let bytes: Data
    private(set) var records: [Record] = []

    /// A last record that is incomplete is left out: the program died over it.
    init(path: String) throws {
        bytes = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        var position = 0
        while let (record, size) = Self.record(bytes, at: position) {
            records.append(record)
            position += size
        }
    }

    private static let headSize = 40

    /// Reads what `struct record` is in C.
    private static func record(_ bytes: Data, at start: Int) -> (Record, size: Int)? {
        guard start + headSize <= bytes.count else { return nil }
        let (kind, size, pathSize, otherSize, dataSize, file, offset, length) = bytes.withUnsafeBytes { raw in
            (
                raw[start + 4], Int(raw.loadUnaligned(fromByteOffset: start, as: UInt32.self)),
                Int(raw.loadUnaligned(fromByteOffset: start + 6, as: UInt16.self)),
                Int(raw.loadUnaligned(fromByteOffset: start + 8, as: UInt16.self)),
                Int(raw.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self)),
                raw.loadUnaligned(fromByteOffset: start + 16, as: UInt64.self),
                raw.loadUnaligned(fromByteOffset: start + 24, as: Int64.self),
                raw.loadUnaligned(fromByteOffset: start + 32, as: Int64.self)
            )
        }
        guard start + size <= bytes.count else { return nil }
        let names = start + headSize, data = names + pathSize + otherSize
        func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        let path = text(names..<names + pathSize)
        let change: Change
        switch Character(UnicodeScalar(kind)) {
        case "c": change = .create(path)
        case "o": change = .open(path)
        case "w": change = .write(at: offset, data..<data + dataSize)
        case "t": change = .truncate(to: length)
        case "p": change = .punch(offset..<offset + length)
        case "a": change = .allocate(offset + length)
        case "s": change = .sync
        case "S": change = .syncAll
        case "u": change = .unlink(path)
        case "r": change = .rename(path, to: text(names + pathSize..<data))
        case "m": change = .makeDirectory(path)
        case "d": change = .removeDirectory(path)
        default: preconditionFailure("a record of kind \(kind) at \(start)")
        }
        return (Record(file: file, change: change), size)
    }
}
