import CLinux
import CachePolicy
import Playlists
import Testing

@testable import Presentations

/// The generator of amounts: n of each part of a document beside n of each other one, for all pairs, and more as long
/// as something grows. What is counted are the steps of `WorkBudget` and the memory of the process, never the time.
@Suite struct AmountsTests {
    /// What is asserted of each document, by the bytes that came.
    private enum Bound {
        /// Memory that stays, besides some free kilobytes.
        static let memoryPerByte = 128, freeMemory = 256 << 10
        static let freeSteps = 32 << 10
        /// Steps for each byte where one name is as long as all else: what is resolved below it takes its length each.
        static let stepsOfLong = 128
        /// How the steps for each byte may grow while the parts become three times as many, as squares would.
        static let growth = 1.25
    }

    /// What one document costs.
    struct Cost {
        var bytes = 0
        /// Of the dearest of: reading it and putting it on the shelf, rewriting it for a name.
        var steps = 0
        var kept = 0
        var weight = 0
        var isRead = false

        var stepsPerByte: Double { Double(steps) / Double(bytes) }
        var memoryPerByte: Double { Double(kept) / Double(bytes) }
    }

    static func cost(_ amount: DocumentKind.Amount, _ count: Int) -> Cost {
        let kind = amount.kind, bytes = Array(amount.text(count).utf8), url = OriginURL(amount.base)
        let budget = WorkBudget(bytes: bytes.count)
        var cost = Cost(bytes: bytes.count)
        let shelf = PlaylistShelf(), former = allocated
        if kind.name == "opml" {
            let list = try? OPML(reading: bytes, within: budget)
            (cost.isRead, cost.kept, cost.steps) = (list != nil, allocated - former, budget.steps)
            cost.weight = cost.kept
            return withExtendedLifetime(list) { cost }
        }
        let document: PlaylistDocument
        do {
            if PlaylistKind.sniff(bytes) == nil {
                document = try PlaylistDocument(
                    feed: bytes, type: nil, key: url.cacheKey, url: url, base: url, within: budget)
                shelf.feeds.put(document)
            } else {
                document = try PlaylistDocument(bytes, key: url.cacheKey, url: url, base: url, within: budget)
                shelf.put(document, at: .zero, within: budget)
            }
        } catch {
            cost.steps = budget.steps
            return cost
        }
        cost.isRead = true
        cost.steps = budget.steps
        for name in ["player.lan", "localhost"].prefix(amount.baseLength > 0 || amount.isLong ? 2 : 1) {
            let rewriting = WorkBudget(bytes: bytes.count)
            let form = PlaylistForm(client: OriginURL("http://\(name):7335/http/other.example/d/"), style: .path)
            _ = try? shelf.text(of: document, for: form, within: rewriting)
            cost.steps = max(cost.steps, rewriting.steps)
        }
        // Looked for, as hits do.
        for name in ["a", "b", "b/1", "1", "ab"] {
            _ = shelf.membership(of: OriginURL("https://cdn.example/v/\(name)"), at: nil) { .zero }
            _ = shelf.feeds.next(after: OriginURL("https://cdn.example/v/\(name)"))
        }
        cost.kept = allocated - former
        cost.weight = shelf.weight + shelf.feeds.bytes
        return cost
    }

    private static var allocated: Int {
        let info = mallinfo2()
        return Int(info.uordblks + info.hblkhd)
    }

    /// What is wrong with an amount; empty if nothing is. Doubles as long as something grows.
    static func faults(_ amount: DocumentKind.Amount) -> [String] {
        var faults: [String] = [], former: Cost?
        var count = amount.baseLength > 0 ? 200 : amount.isLong ? 128 : 12
        while true {
            let cost = cost(amount, count)
            let what = "\(amount), \(count) each, \(cost.bytes) bytes:"
            // Below a long address, a text may be refused: one step more was too many.
            let (each, free) =
                amount.baseLength > 0
                ? (WorkBudget.stepsPerByte, WorkBudget.freeSteps + 128 << 10)
                : (amount.isLong ? Bound.stepsOfLong : WorkBudget.stepsPerByte, Bound.freeSteps)
            if cost.steps > cost.bytes * each + free {
                faults.append("\(what) \(cost.steps) steps")
            }
            if cost.kept > cost.bytes * Bound.memoryPerByte + Bound.freeMemory {
                faults.append("\(what) \(cost.kept) bytes of memory stay")
            }
            if cost.kept > cost.weight * 3 / 2 + 64 << 10 {
                faults.append("\(what) \(cost.kept) bytes of memory stay, said to be \(cost.weight)")
            }
            let grows = former.map { cost.stepsPerByte > $0.stepsPerByte * Bound.growth } ?? true
            if let former, grows, !amount.isLong, cost.bytes > 12 << 10 {
                faults.append("\(what) \(cost.stepsPerByte) steps for each, and \(former.stepsPerByte) before")
            }
            guard faults.isEmpty, grows, cost.bytes < 32 << 10, amount.baseLength == 0, !amount.isLong else {
                return faults
            }
            former = cost
            count *= 3
        }
    }

    /// In a process of its own: what others allocate would be counted, too.
    static func check(_ kinds: [DocumentKind]) {
        var all: [String] = []
        for kind in kinds {
            for part in kind.parts {
                let amount = DocumentKind.Amount(kind: kind, first: part, second: part, isLong: false)
                if !cost(amount, 2).isRead { all.append("\(kind.name): \(part.name) alone is not read") }
            }
            for amount in kind.amounts { all += faults(amount) }
        }
        for fault in all { print("fault:", fault) }
    }

    private func expectNoFaults(_ result: ExitTest.Result?) {
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        let faults = output.split(separator: "\n").filter { $0.hasPrefix("fault:") }
        if !faults.isEmpty { Issue.record("\(faults.count) faults:\n\(faults.prefix(60).joined(separator: "\n"))") }
    }

    @Test func ofHLS() async {
        expectNoFaults(
            await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                AmountsTests.check(DocumentKind.hls)
            })
    }

    @Test func ofMPDs() async {
        expectNoFaults(
            await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                AmountsTests.check([DocumentKind.mpd])
            })
    }

    @Test func ofFeeds() async {
        expectNoFaults(
            await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                AmountsTests.check(DocumentKind.feeds)
            })
    }

    @Test func ofLists() async {
        expectNoFaults(
            await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                AmountsTests.check([DocumentKind.opml] + DocumentKind.lists)
            })
    }
}
