import CachePolicy
import ControlAPI
import Glibc
import HTTPModel
import Presentations

/// The file of a complete resource, lent for copying.
package struct LentFile {
    package let path: String
    /// The length of the resource, in bytes; the file may be longer.
    package let length: Int64
    /// The content codings in which its origin sent it.
    package let codings: [String]
    /// Whether the file has been held without interruption. Once it is not, the file can change, and bytes read from
    /// it are useless.
    package let isHeld: () -> Bool
}

extension LentFile {
    init(_ file: HeldFile, in directory: String, isHeld: @escaping () -> Bool) {
        self.init(
            path: "\(directory)/\(file.path)", length: file.length, codings: file.codings ?? [], isHeld: isHeld)
    }

    /// Calls `body` with the file as its origin means it: decoded, if the origin sent it in a content coding.
    /// - Parameters:
    ///   - make: makes the file for the decoded bytes, which is not published.
    ///   - isWanted: called now and then; false aborts with an error.
    /// - Throws: the errors of `body`; `ControlError` if it cannot be decoded.
    package func withDecoded<Result>(
        of url: OriginURL, into make: () throws -> UnfinishedFile, isWanted: () -> Bool,
        _ body: (LentFile) throws -> Result
    ) throws -> Result {
        guard let coding = codings.first else { return try body(self) }
        let name = codings.joined(separator: ", ")
        guard codings.count == 1, ContentEncoding.isDecodable(coding) else {
            throw ControlError(
                "\(url.absolute) was sent in the content coding \(name.printable(upTo: 40)), which is not decoded here")
        }
        let (file, source) = (try make(), try UnfinishedFile.open(path))
        defer { close(source) }
        var (place, end): (Int64, Int64) = (0, 0)
        do {
            try ContentCoding.decode(coding, mostBytes: length *| Self.mostGrowth) { buffer in
                guard isWanted() else { throw ControlError.interrupted }
                let left = Int(min(Int64(buffer.count), length - place)) // no trap: at most the length was read
                let count = pread(source, buffer.baseAddress, left, off_t(place))
                guard count >= 0 else { throw ControlError("cannot read \(path): \(String(errno: errno))") }
                place += Int64(count) // no trap: at most the length was read
                return count
            } write: {
                try file.append($0, at: &end)
            }
        } catch let problem as ContentCoding.Problem {
            throw ControlError(
                problem == .tooLong
                    ? "\(url.absolute) is more than \(Self.mostGrowth) times as long when its \(name) is decoded"
                    : "\(url.absolute) was sent as \(name), but is not valid \(name)")
        }
        let decoded = LentFile(path: file.path, length: end, codings: [], isHeld: isHeld)
        return try withExtendedLifetime(file) { try body(decoded) }
    }

    /// Media grow little, and texts less than this; a few bytes could otherwise fill the disk.
    private static let mostGrowth: Int64 = 200
}
