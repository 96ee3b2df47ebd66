import CachePolicy
import Reelcache

/// URLs as people give them to a command: as arguments, and in files with one on each line.
package struct URLList {
    /// In their order, each once.
    package private(set) var urls: [OriginURL] = []
    /// One line for each that is none, with its place.
    package private(set) var problems: [String] = []
    private var seen = Set<OriginURL>()
    private let place: ProxyPlace

    /// - Parameter place: of the proxy, whose own URLs are understood as what they lead to.
    package init(at place: ProxyPlace) { self.place = place }

    package mutating func add(argument: String) { add(argument, from: nil) }

    /// Empty lines and those that begin with `#` are passed over: playlists can be read as well.
    package mutating func add(lines text: String, of file: String) {
        // A mark of the encoding is no part of the first line.
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
            problems.append((line.map { "\($0): " } ?? "") + "\(text): \(error)")
        }
    }
}

extension ProxyConfiguration {
    /// No URLs yet; those of the proxy that runs, else of the one that would, are understood.
    /// - Throws: `ProxyError` where the mounts cannot work.
    package func urlList() throws(ProxyError) -> URLList {
        URLList(at: try place(RunningProxy(cacheDirectory: cacheDirectory)?.baseURL ?? baseURL))
    }
}
