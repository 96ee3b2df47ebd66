import HTTPModel

/// The name under which people know a player, from its `User-Agent`: `mpv 0.35.1`, `VLC 3.0.18`, `Chromium 131`.
package struct PlayerName: Sendable, Equatable, CustomStringConvertible {
    package let description: String
    /// Whether it fetches files to be played later, so that what it reads is not played by that.
    package let isDownloadClient: Bool

    /// The longest name, in scalars.
    private static let longest = 40

    /// Products that players name besides their own, with what people call them. The first that occurs in a
    /// `User-Agent` is the player, so that a program comes before the engine that it contains. `downloads` are those
    /// that fetch files to be played later.
    private static let known: [(product: String, name: String, downloads: Bool)] = [
        ("AntennaPod", "AntennaPod", true), ("gPodder", "gPodder", true), ("Kodi", "Kodi", false),
        ("Jellyfin", "Jellyfin", false), ("mpv", "mpv", false), ("libmpv", "mpv", false), ("VLC", "VLC", false),
        ("LibVLC", "VLC", false), ("Lavf", "FFmpeg", false), ("GStreamer", "GStreamer", false),
        ("ExoPlayer", "ExoPlayer", false), ("ExoPlayerLib", "ExoPlayer", false),
        ("AppleCoreMedia", "Apple player", false), ("yt-dlp", "yt-dlp", true), ("curl", "curl", true),
        ("Wget", "Wget", true), ("aria2", "aria2", true), ("Axel", "Axel", true), ("rclone", "rclone", true),
        ("castget", "castget", true), ("newsboat", "newsboat", true), ("reelcache", "reelcache", true),
        ("python-requests", "python-requests", true), ("Python-urllib", "Python-urllib", true),
        ("Go-http-client", "Go-http-client", true), ("OPR", "Opera", false), ("Edg", "Edge", false),
        ("Firefox", "Firefox", false), ("HeadlessChrome", "Chromium", false), ("Chromium", "Chromium", false),
        ("Chrome", "Chromium", false), ("Version", "Safari", false),
    ]

    /// - Parameter agent: the value of `User-Agent`; nil if the player sends none.
    package init(userAgent agent: String?) {
        let products = Self.products(agent ?? "")
        for (product, name, downloads) in Self.known {
            guard let found = products.first(where: { $0.name == product }) else { continue }
            description = Self.text(name, found.version, isBrowser: products.first?.name == "Mozilla")
            isDownloadClient = downloads
            return
        }
        isDownloadClient = false
        guard let first = products.first else {
            description = "unknown player"
            return
        }
        description = Self.text(first.name.printable(upTo: Self.longest), first.version, isBrowser: false)
    }

    private static func text(_ name: String, _ version: String, isBrowser: Bool) -> String {
        // Browsers have long versions of which the first number is the one that people know.
        let version = isBrowser ? String(version.prefix { $0 != "." }) : version
        return (version.isEmpty ? name : "\(name) \(version)").beginning(longest)
    }

    /// The products of a field, without comments (RFC 9110 §10.1.5): at most the first ten.
    private static func products(_ agent: String) -> [(name: String, version: String)] {
        var (plain, depth) = ("", 0)
        for character in agent.beginning(500) {
            switch character {
            case "(": depth += 1
            case ")": depth = max(0, depth - 1)
            default: if depth == 0 { plain.append(character) }
            }
        }
        return plain.split(separator: " ", omittingEmptySubsequences: true).prefix(10).reduce(into: []) { found, word in
            // `mpv 0.35.1`: some write no slash.
            if word.first?.isNumber == true, let last = found.last, last.version.isEmpty {
                found[found.count - 1].version = version(word)
                return
            }
            let parts = word.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            found.append((String(parts[0]), parts.dropFirst().first.map(version) ?? ""))
        }
    }

    /// Up to a character that no version has.
    private static func version(_ text: Substring) -> String {
        String(text.prefix { $0.isASCII && ($0.isNumber || $0.isLetter || ".-_".contains($0)) })
    }
}
