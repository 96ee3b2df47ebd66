import CachePolicy
import HTTPModel

extension RepresentationSegments {
    /// Finds the representations of an MPD to which a URL may belong, by hashes of what is the same in the addresses
    /// of all their segments: however many representations there are, it costs a few look-ups for each digit of the URL.
    ///
    ///     /v/720p/seg-$Number$.m4s     a head and a tail
    ///
    /// Addresses are hashed as long as the text pays for it: the representations after that play, but nothing is
    /// fetched ahead for them.
    package struct Index: Sendable {
        /// How many entries with one hash are examined: some representations may have the same addresses.
        private static let tries = 64

        private struct Entry: Sendable {
            let head: UInt64
            /// The hash of the tail, or one of `Kind`.
            let tail: UInt64
            /// The least number, time or byte that it has.
            let low: Int64
            let place: Int32
            /// The position of a listed segment.
            var position: Int32 = 0
            var isTime = false
        }

        private enum Kind {
            static let whole: UInt64 = 0, initialization: UInt64 = 1, listed: UInt64 = 2, several: UInt64 = 3
            /// In the hashes of tails.
            static let tail: UInt64 = 4
        }

        /// A representation to which a URL may belong.
        package struct Candidate: Sendable {
            package enum Hint: Sendable {
                case none
                case number(Int64)
                case time(Int64)
                case position(Int)
                case initialization
            }

            package let id: MPD.RepresentationID
            package let hint: Hint
            fileprivate let place: Int32
        }

        /// The hosts of the addresses.
        package private(set) var hosts = NamedHosts()
        private let ids: [MPD.RepresentationID]
        private var entries: [Entry] = []

        /// Roughly the memory that it takes, in bytes.
        package var weight: Int {
            ids.capacity * MemoryLayout<MPD.RepresentationID>.stride + entries.capacity * MemoryLayout<Entry>.stride
        }

        package init(_ mpd: MPD, within budget: WorkBudget) {
            ids = mpd.representations
            do throws(PlaylistError) {
                for (place, id) in ids.enumerated() {
                    guard let place = Int32(exactly: place) else { break }
                    if let representation = mpd[id] { try add(representation, place, budget) }
                }
            } catch { _ = error }
            entries.sort { ($0.head, $0.tail, $0.low, $0.place) < ($1.head, $1.tail, $1.low, $1.place) }
        }

        private mutating func add(_ representation: MPD.Representation, _ place: Int32, _ budget: WorkBudget)
            throws(PlaylistError)
        {
            guard let base = representation.baseURLs.first else { return }
            let information = representation.information.value
            switch information.kind {
            case .base: try add(base, Kind.whole, place, budget)
            case .list: try addList(information.segmentURLs, at: base, place, budget)
            case .template:
                guard let template = try? information.media?.get() else { return }
                try spend(template.length &+ base.pathAndQuery.utf8.count, budget)
                guard
                    let matcher = template.matcher(at: base, id: representation.id, bandwidth: representation.bandwidth)
                else { return }
                hosts.insert(matcher.origin.host)
                let ends = matcher.ends, head = Address.hash(ends.head, after: Address.seed(matcher.origin))
                let tail =
                    ends.variables == 0
                    ? Kind.whole
                    : ends.variables == 1 ? Address.hash(ends.tail, after: 0) | Kind.tail : Kind.several
                let low = ends.variables == 1 ? information.lowest(isTime: ends.isTime) : 0
                entries.append(Entry(head: head, tail: tail, low: low, place: place, isTime: ends.isTime))
            }
            try spend(base.pathAndQuery.utf8.count, budget)
            guard let section = try? representation.initialization(at: base) else { return }
            if let url = section.url { try add(url, Kind.initialization, place, budget) }
        }

        private mutating func add(_ url: OriginURL, _ kind: UInt64, _ place: Int32, _ budget: WorkBudget)
            throws(PlaylistError)
        {
            try spend(url.pathAndQuery.utf8.count, budget)
            hosts.insert(url.host)
            entries.append(Entry(head: Address.hash(of: url), tail: kind, low: 0, place: place))
        }

        private mutating func addList(
            _ list: [SegmentURLEntry], at base: OriginURL, _ place: Int32, _ budget: WorkBudget
        ) throws(PlaylistError) {
            var directories = DirectoryMemo<UInt64?>()
            for (position, entry) in list.enumerated() {
                let reference = entry.media?.reference ?? ""
                try spend(reference.utf8.count, budget)
                guard let position = Int32(exactly: position) else { return }
                var head: UInt64?
                if let (directory, rest) = Reference.split(reference), !rest.utf8.contains(UInt8(ascii: "%")) {
                    let directory = try directories.value(for: directory) { name throws(PlaylistError) in
                        resolved(try base.resolving(name, within: budget))
                    }
                    head = directory.map { Address.hash(rest.prefix { $0 != "#" }.utf8, after: $0) }
                } else {
                    head = resolved(try base.resolving(reference, within: budget))
                }
                guard let head else { continue }
                let low = entry.mediaRange?.lowerBound ?? 0
                entries.append(Entry(head: head, tail: Kind.listed, low: low, place: place, position: position))
            }
        }

        private mutating func resolved(_ url: OriginURL?) -> UInt64? {
            guard let url else { return nil }
            hosts.insert(url.host)
            return Address.hash(of: url)
        }

        /// For an entry, and the bytes that are hashed for it.
        private func spend(_ bytes: Int, _ budget: WorkBudget) throws(PlaylistError) {
            try budget.take(bytes &+ MemoryLayout<Entry>.stride)
            // An array that grows has room for twice as many.
            try budget.make(MemoryLayout<Entry>.stride * 2) // no trap: a small constant
        }

        // MARK: Finding

        /// In the order of the text.
        /// - Parameter byte: the first requested byte.
        /// - Throws: if the budget is spent.
        package func candidates(of address: Address, at byte: Int64?, within budget: WorkBudget) throws(PlaylistError)
            -> [Candidate]
        {
            var found: [Candidate] = []
            let whole = address.heads.last ?? 0
            find(whole, Kind.whole, &found) { _ in .none }
            find(whole, Kind.initialization, &found) { _ in .initialization }
            find(whole, Kind.listed, upTo: byte ?? 0, &found) { .position(Int($0.position)) }
            for start in address.bytes.indices where ASCII.isDigit(address.bytes[start]) && found.count < Self.tries {
                try budget.take()
                let head = address.heads[start], first = lowerBound(head, Kind.several, .min)
                guard first < entries.count, entries[first].head == head else { continue }
                find(head, Kind.several, &found) { _ in .none }
                var end = start
                while end < address.bytes.count, ASCII.isDigit(address.bytes[end]), end - start < 40 {
                    end += 1
                    try budget.take()
                    guard let value = ASCII.decimal(address.bytes[start..<end], upTo: ByteNumber.greatest) else {
                        break
                    }
                    find(head, address.tail(from: end) | Kind.tail, upTo: value, &found) {
                        $0.isTime ? .time(value) : .number(value)
                    }
                }
            }
            return found.sorted { $0.place < $1.place }
        }

        private func find(
            _ head: UInt64, _ tail: UInt64, _ found: inout [Candidate], hint: (Entry) -> Candidate.Hint
        ) {
            for place in lowerBound(head, tail, .min)..<entries.count {
                let entry = entries[place]
                guard entry.head == head, entry.tail == tail, found.count < Self.tries else { return }
                found.append(Candidate(id: ids[Int(entry.place)], hint: hint(entry), place: entry.place))
            }
        }

        /// Those that begin at a value or before it, the last ones first.
        private func find(
            _ head: UInt64, _ tail: UInt64, upTo value: Int64, _ found: inout [Candidate],
            hint: (Entry) -> Candidate.Hint
        ) {
            for entry in entries[..<lowerBound(head, tail, value +| 1)].reversed() {
                guard entry.head == head, entry.tail == tail, found.count < Self.tries else { return }
                found.append(Candidate(id: ids[Int(entry.place)], hint: hint(entry), place: entry.place))
            }
        }

        private func lowerBound(_ head: UInt64, _ tail: UInt64, _ value: Int64) -> Int {
            var low = 0, high = entries.count
            while low < high {
                let middle = low + (high - low) / 2, entry = entries[middle]
                if (entry.head, entry.tail, entry.low) < (head, tail, value) { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}

extension RepresentationSegments.Index {
    /// The hashes of all heads and tails of a URL, in the normalised spelling of its path.
    package struct Address: Sendable {
        fileprivate let bytes: [UInt8]
        /// Of the first bytes, from none to all.
        fileprivate let heads: [UInt64]
        private let powers: [UInt64]

        package init(_ url: OriginURL) {
            bytes = Array(url.normalized.pathAndQuery.utf8)
            var heads = [Self.seed(url)], powers: [UInt64] = [1]
            heads.reserveCapacity(bytes.count + 1)
            powers.reserveCapacity(bytes.count + 1)
            var head = heads[0], power: UInt64 = 1
            for byte in bytes {
                head = head &* Self.factor &+ UInt64(byte) &+ 1
                power = power &* Self.factor
                heads.append(head)
                powers.append(power)
            }
            (self.heads, self.powers) = (heads, powers)
        }

        /// The hash of the bytes from an offset on.
        fileprivate func tail(from start: Int) -> UInt64 {
            heads[bytes.count] &- heads[start] &* powers[bytes.count - start]
        }

        private static let factor = UInt64.random(in: 1 << 32 ... .max) | 1

        fileprivate static func seed(_ url: OriginURL) -> UInt64 {
            var hasher = Hasher()
            hasher.combine(url.scheme)
            hasher.combine(url.host)
            hasher.combine(url.port)
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }

        fileprivate static func hash(_ bytes: some Sequence<UInt8>, after head: UInt64) -> UInt64 {
            bytes.reduce(head) { $0 &* factor &+ UInt64($1) &+ 1 }
        }

        fileprivate static func hash(of url: OriginURL) -> UInt64 {
            hash(url.normalized.pathAndQuery.utf8, after: seed(url))
        }
    }
}
