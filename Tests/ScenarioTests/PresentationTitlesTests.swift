import CachePolicy
import Synchronization
import Testing

@testable import ControlAPI
@testable import Reelcache

/// What is remembered of presentations for lists.
@Suite struct PresentationTitlesTests {
    /// Each title takes three seconds.
    @Test func titlesAreKeptForTenTimesAsLongAsTheListTook() {
        let time = Mutex<UInt64>(100), read = Mutex<[String]>([])
        let titles = PresentationTitles { time.withLock { $0 } }
        func ask(_ keys: String...) -> [String] {
            let found = titles.titles(of: keys.map { CacheKey(text: $0) }) { key in
                time.withLock { $0 += 3 }
                read.withLock { $0.append(key.text) }
                return key.text == "untitled" ? nil : "Film \(key.text)"
            }
            return keys.map { found[CacheKey(text: $0)] ?? "-" }
        }
        #expect(ask("a", "untitled") == ["Film a", "-"])
        #expect(ask("a", "untitled") == ["Film a", "-"] && read.withLock { $0 } == ["a", "untitled"])
        #expect(ask("a", "b") == ["Film a", "Film b"] && read.withLock { $0 } == ["a", "untitled", "b"])
        time.withLock { $0 = 165 }
        #expect(ask("a", "untitled") == ["Film a", "-"] && read.withLock { $0.count } == 3)
        time.withLock { $0 = 166 }
        #expect(ask("a") == ["Film a"] && read.withLock { $0.count } == 4)
    }

    @Test func whoeverAsksMeanwhileDoesNotReadTheSameAgain() {
        let titles = PresentationTitles { 100 }, key = CacheKey(text: "a"), reads = Mutex(0)
        _ = titles.titles(of: [key]) { _ in
            let others = titles.titles(of: [key]) { _ in
                reads.withLock { $0 += 1 }
                return "twice"
            }
            #expect(others.isEmpty)
            return "once"
        }
        #expect(reads.withLock { $0 } == 0)
    }
}
