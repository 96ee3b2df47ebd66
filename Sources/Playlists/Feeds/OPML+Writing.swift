extension OPML {
    /// The list as a file, with an outline for each folder. Reading the file yields the same list.
    ///
    /// The order is kept: a folder whose feeds are not adjacent is written more than once.
    package var text: String {
        var lines = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<opml version=\"2.0\">",
            "  <head>\(title.map { "<title>\(XMLCharacter.escaped($0))</title>" } ?? "")</head>", "  <body>",
        ]
        var open: [String] = []
        for feed in feeds {
            Self.enter(feed.categories, from: &open, &lines)
            lines.append(Self.indent(open.count) + feed.outline)
        }
        Self.enter([], from: &open, &lines)
        return (lines + ["  </body>", "</opml>", ""]).joined(separator: "\n")
    }

    /// Closes the open folders that do not contain the feed, and opens those that do.
    private static func enter(_ folders: [String], from open: inout [String], _ lines: inout [String]) {
        let common = zip(folders, open).prefix { $0 == $1 }.count
        while open.count > common {
            open.removeLast()
            lines.append(indent(open.count) + "</outline>")
        }
        for folder in folders.dropFirst(common) {
            lines.append(indent(open.count) + "<outline text=\"\(XMLCharacter.escaped(folder))\">")
            open.append(folder)
        }
    }

    private static func indent(_ depth: Int) -> String { String(repeating: "  ", count: depth + 2) }
}

extension OPMLFeed {
    /// The URL. One that itself contains `&amp;` is escaped twice: readers, this one too, take it for a mistake.
    private var written: String {
        let text = url.absolute
        return text.contains("&amp;") ? text.replacing("&", with: "&amp;") : text
    }

    fileprivate var outline: String {
        let title = XMLCharacter.escaped(title), url = XMLCharacter.escaped(written)
        return "<outline type=\"rss\" text=\"\(title)\" title=\"\(title)\" xmlUrl=\"\(url)\"/>"
    }
}
