/// How to run a block of commands, from the marker before it: `<!-- run: proxy=no, fails -->`.
enum RunMarker: Equatable {
    /// In a world of its own, by `GuideCommandTests`.
    /// - proxyRuns: whether a proxy runs at 127.0.0.1:7335 meanwhile.
    /// - fails: whether the block must exit with a code other than 0.
    /// - showsMore: whether the JSON that follows has members that are not always printed.
    case here(proxyRuns: Bool, fails: Bool, showsMore: Bool)
    /// On a system where packages are installed, by `PackageTests`.
    case packages
    /// By the test of that name, such as `Example.filmIsDownloadedAndPlayed`, or by that script.
    case elsewhere(String)

    static let standard = RunMarker.here(proxyRuns: true, fails: false, showsMore: false)

    /// - Parameter text: the text after `run:`; nil if there is no marker.
    init(_ text: String?) throws(MarkerError) {
        guard let text else {
            self = .standard
            return
        }
        let words = text.split(separator: ",").map { $0.trimmingPrefix(while: \.isWhitespace) }
        switch (words.first, words.count) {
        case ("packages", 1): self = .packages
        case ("elsewhere", 2): self = .elsewhere(String(words[1]))
        default:
            guard !words.isEmpty, Set(words).isSubset(of: ["proxy=no", "fails", "shows=more"]) else {
                throw MarkerError(text: text)
            }
            self = .here(
                proxyRuns: !words.contains("proxy=no"), fails: words.contains("fails"),
                showsMore: words.contains("shows=more"))
        }
    }
}

struct MarkerError: Error, Equatable, CustomStringConvertible {
    let text: String

    var description: String {
        "not a marker: '\(text)'; write run: with proxy=no, fails, shows=more or several of them, run: packages or "
            + "run: elsewhere, SUITE.TEST|SCRIPT"
    }
}
