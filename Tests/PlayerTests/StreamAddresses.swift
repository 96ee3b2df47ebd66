import Foundation
import TestSupport
import Testing

/// How the playlists of a stream name what belongs to it.
enum StreamAddresses: String, CaseIterable, CustomTestStringConvertible {
    /// As the packager wrote them.
    case relative
    /// `http://host/stream/segment`
    case absolute
    /// `/stream/segment`
    case rootRelative = "root-relative"
    /// Relative, but the first playlist is found behind a redirect, in another folder.
    case redirected

    var testDescription: String { rawValue }

    /// A playlist with its addresses in this form.
    /// - Parameter folder: the URL of the folder of the stream, with a slash at its end.
    func written(_ playlist: [UInt8], named name: String, folder: String) -> [UInt8] {
        guard let prefix = prefix(folder) else { return playlist }
        let text = String(decoding: playlist, as: UTF8.self)
        return [UInt8]((name.hasSuffix(".mpd") ? Self.mpd(text, prefix) : Self.hls(text, prefix)).utf8)
    }

    private func prefix(_ folder: String) -> String? {
        switch self {
        case .relative, .redirected: nil
        case .absolute: folder
        case .rootRelative: URL(string: folder).map { $0.path.hasSuffix("/") ? $0.path : $0.path + "/" }
        }
    }

    private static func mpd(_ text: String, _ prefix: String) -> String {
        text.replacing("<Period", with: "<BaseURL>\(prefix)</BaseURL><Period", maxReplacements: 1)
    }

    private static func hls(_ text: String, _ prefix: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { line in
                if line.hasPrefix("#") { return line.replacing("URI=\"", with: "URI=\"\(prefix)") }
                return line.isEmpty ? "" : prefix + line
            }
            .joined(separator: "\n")
    }
}
