import CachePolicy
import Foundation
import GRDB
import HTTPModel

extension IndexSaving {
    /// Changes of a generation to be saved.
    struct Update: Sendable {
        let id: GenerationID
        let key: CacheKey
        let head: GenerationHead
        let length: Int64
        let geometry: ChunkGeometry
        var overhead: Int64
        var hits: Int64
        /// Whether the index already had its row.
        var wasIndexed = true
        /// Whether the head differs from the one in the index.
        var isHeadChanged = false
        /// The presentation that it is a part of; nil leaves this as it is.
        var whole: CacheKey?
        var extents: [ExtentUpdate]

        /// Splits the update, so that no part has many extents.
        func parts(of count: Int) -> [Update] {
            guard extents.count > count else { return [self] }
            return stride(from: 0, to: extents.count, by: count).map { start in
                var part = self
                part.extents = Array(extents[start..<min(start + count, extents.count)])
                part.hits = start == 0 ? hits : 0
                return part
            }
        }

        /// Groups updates into batches for one transaction each.
        static func batches(_ updates: [Update]) -> [[Update]] {
            var (batches, rows) = ([[Update]](), IndexDatabase.rowsAtOnce)
            for part in updates.flatMap({ $0.parts(of: IndexDatabase.rowsAtOnce) }) {
                // The head counts for several rows: its keys are spread over all indexes.
                let cost = part.extents.count + 8
                if rows + cost > IndexDatabase.rowsAtOnce { (batches, rows) = (batches + [[]], 0) }
                batches[batches.count - 1].append(part)
                rows += cost
            }
            return batches
        }
    }

    struct ExtentUpdate: Sendable {
        let ordinal: Int
        let present: Presence
        /// New checksums, by bit.
        let checksums: [Int: UInt64]
        let lastAccess: Int64
        /// Whether the whole extent is verified, and so belongs to this session.
        let isVerified: Bool

        /// All checksums, by bit, without those after the last known one.
        /// - Parameter known: those in the row.
        func checksums(besides known: [UInt64]) -> [UInt64] {
            var all = known + repeatElement(0, count: max(0, (checksums.keys.max() ?? -1) + 1 - known.count))
            for (bit, checksum) in checksums { all[bit] = checksum }
            while all.last == 0 { all.removeLast() }
            return all
        }
    }

    /// What was read of a generation since the index was last told.
    struct Touch: Sendable {
        let id: GenerationID
        var reads: [Read]
        /// What its resource's row is to say of it; nil leaves that for later.
        var resource: Use?

        struct Read: Sendable {
            let ordinal: Int
            /// Microseconds since 1970, as is `Use.lastAccess`.
            let time: Int64
        }

        struct Use: Sendable {
            let hits: Int64
            let lastAccess: Int64
            /// What players have read.
            var played = ReadRanges()
        }

        /// With what was read later.
        func followed(by later: Touch) -> Touch {
            let ordinals = Set(later.reads.map(\.ordinal))
            var use = later.resource ?? resource
            if let resource, let next = later.resource {
                var played = resource.played
                for range in next.played.ranges { played.insert(range) }
                use = Use(
                    hits: resource.hits +| next.hits, lastAccess: max(resource.lastAccess, next.lastAccess),
                    played: played)
            }
            return Touch(id: id, reads: reads.filter { !ordinals.contains($0.ordinal) } + later.reads, resource: use)
        }

        /// The number of pages that it changes, at most: a row and its places in indexes.
        private var pages: Int { 3 * reads.count + (resource.map { $0.played.ranges.isEmpty ? 8 : 11 } ?? 0) }

        /// Groups touches into batches for one transaction each.
        static func batches(_ touches: [Touch]) -> [ArraySlice<Touch>] {
            var (batches, start, pages) = ([ArraySlice<Touch>](), 0, 0)
            for (place, touch) in touches.enumerated() {
                if place > start, pages + touch.pages > IndexDatabase.rowsAtOnce {
                    batches.append(touches[start..<place])
                    (start, pages) = (place, 0)
                }
                pages += touch.pages
            }
            return start < touches.count ? batches + [touches[start...]] : batches
        }
    }

    /// Further results of saving.
    struct Saved: Sendable {
        /// Older generations of the same resources, whose rows were removed, with their disk usage according to these.
        var replaced: [GenerationID: Int64] = [:]
        /// The saved generations that are pinned.
        var pinned: Set<GenerationID> = []
        /// The saved generations that are pinned or downloaded.
        var kept: Set<GenerationID> = []
        /// Resources that had a row and become pinned with their whole.
        var newlyPinned: [CacheKey] = []
        /// Presentations with parts of their own that are to become parts of another.
        var toBeJoined: [(key: CacheKey, whole: CacheKey)] = []
    }
}

extension IndexSaving.Update {
    init(_ row: IndexRows.GenerationRow, _ extents: [IndexRows.ExtentRow], overhead: Int64? = nil) {
        let extents = extents.map { extent in
            IndexSaving.ExtentUpdate(
                ordinal: extent.ordinal, present: extent.present,
                checksums: Dictionary(uniqueKeysWithValues: extent.checksums.enumerated().map { ($0, $1) }),
                lastAccess: extent.lastAccess, isVerified: false)
        }
        self.init(
            id: row.id, key: row.key, head: row.head, length: row.length, geometry: row.geometry,
            overhead: overhead ?? row.overhead, hits: 0, whole: row.whole, extents: extents)
    }
}

/// Saves checkpoints.
struct IndexSaving: Sendable {
    let database: IndexDatabase
    let keys: KeyFilter

    /// Saves in one transaction; `batches` keeps each small.
    func save(_ updates: [Update], session: Int64) throws(StoreError) -> Saved {
        for update in updates { keys.enter(update.key) }
        return try database.write { db in
            var transaction = try Transaction(db, session: session)
            for update in updates { try transaction.save(update) }
            try IndexDatabase.addDataBytes(transaction.growth, in: db)
            if !transaction.saved.pinned.isEmpty { try database.countPinChange(in: db) }
            return transaction.saved
        }
    }

    /// Saves in one transaction; `batches` keeps each small. Rows that are gone stay gone.
    func save(_ touches: ArraySlice<Touch>) throws(StoreError) {
        try database.write { db in
            let read = try IndexStatement(
                "UPDATE extent SET last_access = ?3 WHERE generation = ?1 AND ordinal = ?2", in: db)
            let use = try IndexStatement(
                """
                UPDATE resource SET hits = hits + ?2, last_access = max(last_access, ?3)
                WHERE id = (SELECT resource FROM generation WHERE id = ?1)
                """, in: db)
            for touch in touches {
                for extent in touch.reads {
                    try read.run(.id(touch.id), .integer(Int64(extent.ordinal)), .integer(extent.time))
                }
                guard let resource = touch.resource else { continue }
                try use.run(.id(touch.id), .integer(resource.hits), .integer(resource.lastAccess))
                if !resource.played.ranges.isEmpty { try Self.save(resource.played, of: touch.id, in: db) }
            }
        }
    }
}

extension IndexSaving {
    /// Adds what players have read of a generation. At three quarters of it, its resource counts as played, and what
    /// was read is counted from the beginning.
    private static func save(_ played: ReadRanges, of id: GenerationID, in db: Database) throws {
        let query = try db.cachedStatement(sql: "SELECT length, read_ranges FROM generation WHERE id = ?")
        guard let row = try Row.fetchOne(query, arguments: [id]).map({ StoredRow($0) }),
            let length = try? row.integer("length", in: 1...ChunkGeometry.longestBody)
        else { return }
        var ranges = played
        if let text = try? row.text("read_ranges") { ranges.insert(text) }
        let isPlayed = ranges.count >= ReadRanges.threeQuarters(of: length)
        try db.cachedStatement(sql: "UPDATE generation SET read_ranges = ? WHERE id = ?").execute(
            arguments: [isPlayed ? nil : ranges.text, id])
        guard isPlayed else { return }
        try db.cachedStatement(
            sql: """
                UPDATE resource SET played = last_access / 1000000
                WHERE id = (SELECT resource FROM generation WHERE id = ?) AND parts = 0
                """
        ).execute(arguments: [id])
    }

    /// Encodes pairs as JSON (RFC 8259) in UTF-8: an array of arrays of two. Written by hand because it runs for each
    /// small file.
    static func pairs(_ pairs: some Sequence<(String, String?)>) -> [UInt8] {
        var text: [UInt8] = [UInt8(ascii: "[")]
        for (name, value) in pairs {
            if text.count > 1 { text.append(UInt8(ascii: ",")) }
            text.append(UInt8(ascii: "["))
            append(name, to: &text)
            text.append(UInt8(ascii: ","))
            if let value { append(value, to: &text) } else { text += "null".utf8 }
            text.append(UInt8(ascii: "]"))
        }
        text.append(UInt8(ascii: "]"))
        return text
    }

    /// Decodes what `pairs` encodes; nil for other JSON, and for control characters.
    static func plainPairs(_ text: String) -> [(String, String?)]? {
        var (text, pairs) = (text, [(String, String?)]())
        return text.withUTF8 { bytes in
            var rest = bytes[...]
            guard rest.take("[") else { return nil }
            while !rest.take("]") {
                guard pairs.isEmpty || rest.take(","), rest.take("["), let name = rest.takeString(), rest.take(",")
                else { return nil }
                let value = rest.takeString()
                guard value != nil || rest.take("null"), rest.take("]") else { return nil }
                pairs.append((name, value))
            }
            return rest.isEmpty ? pairs : nil
        }
    }

    private static func append(_ string: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        var string = string
        string.withUTF8 { bytes in
            guard bytes.contains(where: isEscaped) else { return text.append(contentsOf: bytes) }
            for byte in bytes { append(byte, to: &text) }
        }
        text.append(UInt8(ascii: "\""))
    }

    fileprivate static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private static func append(_ byte: UInt8, to text: inout [UInt8]) {
        guard isEscaped(byte) else { return text.append(byte) }
        text.append(UInt8(ascii: "\\"))
        guard byte < 0x20 else { return text.append(byte) }
        let digits = String(byte, radix: 16)
        text += ("u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
    }
}

private extension Slice<UnsafeBufferPointer<UInt8>> {
    /// - Returns: whether it begins with a text, which is taken off.
    mutating func take(_ text: StaticString) -> Bool {
        let isThere = starts(with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        if isThere { self = dropFirst(text.utf8CodeUnitCount) }
        return isThere
    }

    /// Takes off a JSON string; nil if it has other escapes than those of quotes and backslashes.
    mutating func takeString() -> String? {
        guard take("\"") else { return nil }
        var text = String(decoding: takePlain(), as: UTF8.self)
        while !take("\"") {
            guard take("\\"), let byte = popFirst(), byte >= 0x20, IndexSaving.isEscaped(byte) else { return nil }
            text.unicodeScalars.append(Unicode.Scalar(byte))
            text += String(decoding: takePlain(), as: UTF8.self)
        }
        return text
    }

    /// Takes off what needs no escapes.
    private mutating func takePlain() -> UnsafeBufferPointer<UInt8> {
        let rest = UnsafeBufferPointer(rebasing: self)
        var count = 0
        while count < rest.count, !IndexSaving.isEscaped(rest[count]) { count += 1 }
        self = dropFirst(count)
        return UnsafeBufferPointer(rebasing: rest[..<count])
    }
}
