import CachePolicy
import HTTPModel

/// Reads lists of files (M3U and PLS), line by line.
struct FileList {
    private let bytes: [UInt8]
    private let encoding: TextEncoding
    private var feed: Feed
    private var drafts: [FeedDraft] = []
    private let base: FeedElement.Base
    private let budget: WorkBudget
    /// Whether nothing is left for further addresses.
    private var isSpent = false

    private init(_ kind: Feed.Kind, _ bytes: [UInt8], at base: FeedElement.Base, _ budget: WorkBudget) {
        feed = Feed(kind: kind, url: base.url)
        (self.base, self.budget) = (base, budget)
        encoding = TextEncoding(of: bytes, declared: nil)
        self.bytes = encoding.transcoded(bytes)
    }

    private var finished: Feed {
        var feed = feed
        (feed.items, feed.skipped) = FeedIdentities.sorted(drafts)
        return feed
    }

    /// The lines without white space around them, each found when it is needed. Blank lines are left out.
    static func lines(of bytes: [UInt8]) -> some Sequence<Range<Int>> {
        sequence(state: XMLProlog.blank(bytes)) { place -> Range<Int>? in
            while place < bytes.count {
                let rest = bytes[place...]
                let end = rest.firstIndex { $0 == ASCII.lineFeed || $0 == ASCII.carriageReturn } ?? bytes.count
                place = end + 1
                let line = rest[..<end]
                guard let first = line.firstIndex(where: { !ASCII.isXMLSpace($0) }) else { continue }
                return first..<((line.lastIndex { !ASCII.isXMLSpace($0) } ?? first) + 1)
            }
            return nil
        }
    }

    /// Whether further lines change nothing: neither their files nor their addresses are kept.
    private var isFull: Bool { feed.cut != nil && !feed.addresses.isComplete }

    /// - Parameter range: the position of the reference in the text.
    private mutating func addAddress(_ reference: FeedReference, at range: Range<Int>) {
        // Positions in the received text are not known.
        if case .utf16 = encoding { return }
        guard !reference.isDamaged, !reference.text.contains("\\") else { return }
        feed.addresses.add(.init(range: range, reference: reference.text, base: base))
    }

    private mutating func add(_ reference: FeedReference, _ draft: FeedDraft) {
        guard drafts.count < FeedLimits.items, !isSpent else { return feed.cut = .tooManyItems }
        var draft = draft
        if let url = reference.text.contains("\\") ? nil : reference.url(at: base) {
            // A long base would otherwise be part of a million short references.
            isSpent = (try? budget.make(url.absolute.utf8.count)) == nil
            guard !isSpent else { return feed.cut = .tooManyItems }
            draft.take(Enclosure(url: url))
        } else {
            draft.fault = reference.fault
        }
        drafts.append(draft)
    }
}

// MARK: - M3U

extension FileList {
    /// What lines say about files, as they begin.
    enum Tag: String, CaseIterable {
        case information = "#EXTINF:"
        case playlist = "#PLAYLIST:"
    }

    /// Reads an M3U list: a line for each file, and lines that begin with `#` about the next file.
    /// - Throws: if it is an HLS playlist.
    static func m3u(_ bytes: [UInt8], at base: FeedElement.Base, within budget: WorkBudget) throws(FeedError) -> Feed {
        var list = FileList(.m3u, bytes, at: base, budget)
        var draft = FeedDraft()
        for range in lines(of: list.bytes) {
            if list.isFull { break }
            try budget.take(ofFeed: range.count)
            let line = list.encoding.string(list.bytes[range])
            if line.hasPrefix("#EXT-X-") { throw .stream }
            if line.hasPrefix("#") {
                list.take(line, &draft)
            } else if let reference = FeedReference(line) {
                list.addAddress(reference, at: range)
                list.add(reference, draft)
                draft = FeedDraft()
            }
        }
        return list.finished
    }

    /// `#EXTINF:123 key="a, b",Title`
    private mutating func take(_ line: String, _ draft: inout FeedDraft) {
        guard let tag = Tag.allCases.first(where: { ASCII.begins(line, with: $0.rawValue) }) else { return }
        let text = line.dropFirst(tag.rawValue.count)
        switch tag {
        case .information:
            draft.title = Self.title(text).flatMap(FeedTitle.line)
        case .playlist: feed.title = feed.title ?? FeedTitle.line(String(text))
        }
    }

    /// The text after the first comma outside of quotes.
    private static func title(_ text: Substring) -> String? {
        var isQuoted = false
        let comma = text.firstIndex { character in
            if character == "\"" { isQuoted.toggle() }
            return character == "," && !isQuoted
        }
        return (comma ?? text.firstIndex(of: ",")).map { String(text[text.index(after: $0)...]) }
    }
}

// MARK: - PLS

extension FileList {
    /// The names that are read, in lower case and without their numbers.
    enum Name: String, CaseIterable {
        case file, title
        case playlistName = "playlistname"
        case gnomeTitle = "x-gnome-title"
    }

    /// Reads a PLS list: `File1=` and `Title1=` in any order and case. The numbers give the order, and may have gaps.
    static func pls(_ bytes: [UInt8], at base: FeedElement.Base, within budget: WorkBudget) throws(FeedError) -> Feed {
        var list = FileList(.pls, bytes, at: base, budget)
        var entries: [Int64: Entry] = [:]
        for range in lines(of: list.bytes) {
            if list.isFull { break }
            try budget.take(ofFeed: range.count)
            guard let (name, number, value) = list.assignment(range) else { continue }
            let text = list.encoding.string(list.bytes[value])
            if name == .playlistName || name == .gnomeTitle { list.feed.title = FeedTitle.line(text) }
            let reference = name == .file ? FeedReference(text) : nil
            if let reference { list.addAddress(reference, at: value) }
            guard let number else { continue }
            if entries.count < FeedLimits.items || entries[number] != nil {
                entries[number, default: Entry()].take(name, text, reference)
            } else if reference != nil {
                list.feed.cut = .tooManyItems
            }
        }
        for (_, entry) in entries.sorted(by: { $0.key < $1.key }) {
            if let reference = entry.file { list.add(reference, entry.draft) }
        }
        return list.finished
    }

    /// - Returns: the name, its number, and the position of the value; nil for a name that is not read.
    private func assignment(_ range: Range<Int>) -> (Name, Int64?, Range<Int>)? {
        let line = bytes[range]
        guard let equals = line.firstIndex(of: XMLByte.equals) else { return nil }
        let name = ASCII.lowercased(ASCII.trimmed(String(decoding: line[..<equals].prefix(64), as: UTF8.self)))
        let digits = name.utf8.suffix(while: ASCII.isDigit)
        guard let known = String(name.utf8.dropLast(digits.count)).flatMap(Name.init(rawValue:)) else { return nil }
        let value = line[(equals + 1)...].drop(while: ASCII.isXMLSpace)
        return (known, ASCII.decimal(digits), value.startIndex..<range.upperBound)
    }
}

extension FileList {
    /// The entries of a PLS list with one number.
    private struct Entry {
        private(set) var file: FeedReference?
        private(set) var draft = FeedDraft()

        /// If a name has two values, the first counts.
        mutating func take(_ name: Name, _ text: String, _ reference: FeedReference?) {
            switch name {
            case .file: file = file ?? reference
            case .title: draft.title = draft.title ?? FeedTitle.line(text)
            case .playlistName, .gnomeTitle: break
            }
        }
    }
}

extension BidirectionalCollection {
    fileprivate func suffix(while condition: (Element) -> Bool) -> SubSequence {
        let start = lastIndex { !condition($0) }.map { index(after: $0) } ?? startIndex
        return self[start...]
    }
}
