import CachePolicy
import Reelcache

/// URLs that people pass to a command: as arguments, and in files with one on each line.
package struct URLList {
    /// In the given order, without duplicates.
    package private(set) var urls: [OriginURL] = []
    /// One line for each invalid URL, with its place.
    package private(set) var problems: [String] = []
    private var seen = Set<OriginURL>()
    private let place: ProxyPlace

    /// - Parameter place: of the proxy, whose own URLs are resolved to those of the origins.
    package init(at place: ProxyPlace) { self.place = place }

    package mutating func add(argument: String) { add(argument, from: nil) }

    /// Empty lines and lines that begin with `#` are ignored, so that playlists can be read as well.
    package mutating func add(lines text: String, of file: String) {
        // A byte order mark is not part of the first line.
        let lines = (text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]).split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = line.trimmingPrefix(while: \.isWhitespace)
            guard let end = line.lastIndex(where: { !$0.isWhitespace }), !line.hasPrefix("#") else { continue }
            add(String(line[...end]), from: "\(file):\(index + 1)")
        }
    }

    private mutating func add(_ text: String, from line: String?) {
        do throws(OriginURLError) {
            let url = try OriginURL(argument: text, at: place)
            if seen.insert(url).inserted { urls.append(url) }
        } catch {
            problems.append((line.map { "\($0): " } ?? "") + error.naming(text))
        }
    }
}

extension ProxyConfiguration {
    /// An empty list that resolves the URLs of the running proxy, otherwise those of the proxy that this
    /// configuration would run.
    /// - Throws: `ProxyError` for invalid mounts.
    package func urlList() throws(ProxyError) -> URLList {
        URLList(at: try place(RunningProxy(cacheDirectory: cacheDirectory)?.baseURL ?? baseURL))
    }
}
