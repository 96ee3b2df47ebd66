import HTTPModel

/// Parses numbers in playlists. Numbers beyond the limits are rejected.
enum MediaNumbers {
    /// Parses the `decimal-floating-point` of RFC 8216 §4.2: seconds, precise to the nanosecond.
    /// - Returns: nil for anything else, including a sign, and beyond `PlaylistLimits.seconds`.
    static func seconds(_ text: some Collection<UInt8>) -> Duration? {
        let whole = text.prefix(while: ASCII.isDigit), rest = text.dropFirst(whole.count)
        guard let seconds = ASCII.decimal(whole, upTo: PlaylistLimits.seconds) else { return nil }
        guard let point = rest.first else { return .seconds(seconds) }
        let digits = rest.dropFirst()
        guard point == UInt8(ascii: "."), digits.allSatisfy(ASCII.isDigit) else { return nil }
        let padded = (Array(digits.prefix(9)) + Array(repeating: UInt8(ascii: "0"), count: 9)).prefix(9)
        return .seconds(seconds) + .nanoseconds(ASCII.decimal(padded) ?? 0)
    }

    /// Parses frames per second: `29.97`, or `30000/1001` by ISO/IEC 23009-1 §5.3.7.2.
    static func frameRate(_ text: String) -> Double? {
        let parts = text.split(separator: "/", maxSplits: 1).map { Double($0) ?? 0 }
        guard let first = parts.first else { return nil }
        let rate = parts.count == 2 ? first / parts[1] : first
        return rate > 0 && rate <= 10_000 ? rate : nil
    }

    /// Parses bits per second.
    static func bandwidth(_ text: String) -> Int64? { ASCII.decimal(text.utf8, upTo: ByteNumber.greatest) }

    /// Parses `first-last`, both inclusive, as in HTTP and in MPDs (ISO/IEC 23009-1 §5.3.9.2.2); the result is
    /// half-open.
    static func byteRange(_ text: String) -> Range<Int64>? {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 2, let first = ByteNumber.parse(parts[0]), let last = ByteNumber.parse(parts[1]) else {
            return nil
        }
        return Range(from: first, upTo: last +| 1)
    }
}

/// Width and height of a picture, in pixels.
package struct Resolution: Sendable, Hashable {
    package let width: Int
    package let height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// Parses `1920x1080` (RFC 8216 §4.2, `decimal-resolution`).
    init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
        guard parts.count == 2, let width = Self.side(parts[0]), let height = Self.side(parts[1]) else { return nil }
        self.init(width: width, height: height)
    }

    /// At most 65,535, as no codec supports more.
    static func side(_ digits: some Collection<UInt8>) -> Int? {
        ASCII.decimal(digits, upTo: 65535).flatMap { $0 > 0 ? Int($0) : nil }
    }

    /// The usual name of the resolution: 1080 for 1920x1080, even if the picture is cropped to 1920x800, in 4:3, or
    /// upright.
    package var lines: Int { max(min(width, height), max(width, height) * 9 / 16) }
}
