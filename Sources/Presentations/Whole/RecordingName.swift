import CachePolicy
import HTTPModel

/// What distinguishes a recording from its stream: an additional parameter in its URL, with the time at which it
/// began.
///
///     https://example.org/live.m3u8?reelcache-recording=20261123T052147Z
package struct RecordingName: Sendable, Equatable {
    /// The time, in UTC.
    package let text: String

    /// - Parameter began: seconds since 1970; times outside the years of four digits become the nearest one
    ///   within.
    package init(began: Int64) {
        let time = min(max(began, 0), 253_402_300_799)
        let (days, second) = time.quotientAndRemainder(dividingBy: 86400) // no trap: not 0
        let date = CivilDate(daysSince1970: days)
        let clock = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, 2) }.joined()
        text = Self.padded(date.year, 4) + Self.padded(date.month, 2) + Self.padded(date.day, 2) + "T" + clock + "Z"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// The URL where the recording of a stream plays; the stream's own if that is too long for another parameter.
    package func url(of stream: OriginURL) -> OriginURL {
        let mark = stream.pathAndQuery.contains("?") ? "&" : "?"
        let text = "\(stream.absolute)\(mark)\(OriginURL.recordingParameter)=\(text)"
        return (try? OriginURL(url: text)) ?? stream
    }
}
