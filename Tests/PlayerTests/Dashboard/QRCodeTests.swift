import Foundation
import TestSupport
import Testing

/// The dashboard's QR codes, read back by a decoder of the test's own.
@Suite(.serialized, Player.areExpected(.chromium))
struct QRCodeTests {
    /// Versions 1, 4, 7 (which states its version), 10 (with a longer length), 15 and 40.
    private static let lengths = [(1, 1), (50, 4), (120, 7), (200, 10), (400, 15), (2331, 40)]

    @Test func codesSayTheirTexts() throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        for (length, version) in Self.lengths {
            let text = String((0..<length).map { Character(UnicodeScalar(UInt8(33 + $0 * 7 % 90))) })
            let rows = try stage.tab.text(
                "import('/api/dashboard/qr.js').then(code => code.matrix(\(literal(text))).map(row => row.map(Number).join('')).join('\\n'))"
            )
            let code = try #require(QRCode(rows))
            #expect(code.version == version)
            #expect(code.text(length) == text, "\(length)")
        }
        #expect(
            try stage.tab.text("import('/api/dashboard/qr.js').then(code => String(code.matrix('x'.repeat(2332))))")
                == "null")
        stage.expectNoComplaints()
    }
}

/// Reads a code of bytes at level M that has no error: undoes mask, order and interleaving, and looks no error up.
private struct QRCode {
    private let modules: [[Bool]]
    let version: Int

    init?(_ rows: String) {
        modules = rows.split(separator: "\n").map { $0.map { $0 == "1" } }
        guard modules.count >= 21, modules.allSatisfy({ [count = modules.count] in $0.count == count }) else {
            return nil
        }
        version = (modules.count - 17) / 4
    }

    /// ISO/IEC 18004, table 9, for the versions of the test: blocks of level M, and words of correction in each.
    private static let blocks = [1: (1, 10), 4: (2, 18), 7: (4, 18), 10: (5, 26), 15: (10, 24), 40: (49, 28)]
    /// Annex E.
    private static let centres = [
        1: [], 4: [6, 26], 7: [6, 22, 38], 10: [6, 28, 50], 15: [6, 26, 48, 70], 40: [6, 30, 58, 86, 114, 142, 170],
    ]

    /// The level and mask that the format states, without looking at its error correction.
    private var format: Int {
        let bits =
            (0...5).map { modules[$0][8] } + [modules[7][8], modules[8][8], modules[8][7]]
            + (9..<15).map { modules[8][14 - $0] }
        return bits.enumerated().reduce(0) { $0 | ($1.element ? 1 << $1.offset : 0) } ^ 0x5412
    }

    private func isMasked(_ x: Int, _ y: Int, _ mask: Int) -> Bool {
        switch mask {
        case 0: (x + y) % 2 == 0
        case 1: y % 2 == 0
        case 2: x % 3 == 0
        case 3: (x + y) % 3 == 0
        case 4: (x / 3 + y / 2) % 2 == 0
        case 5: x * y % 2 + x * y % 3 == 0
        case 6: (x * y % 2 + x * y % 3) % 2 == 0
        default: ((x + y) % 2 + x * y % 3) % 2 == 0
        }
    }

    private func isPattern(_ x: Int, _ y: Int, _ centres: [Int]) -> Bool {
        let end = modules.count
        if x == 6 || y == 6 || x < 9 && y < 9 || x < 9 && y >= end - 8 || x >= end - 8 && y < 9 { return true }
        if version >= 7, x < 6 && y >= end - 11 || y < 6 && x >= end - 11 { return true }
        return centres.contains { column in
            centres.contains { row in
                let isAtFinder =
                    column == 6 && (row == 6 || row == centres.last) || row == 6 && column == centres.last
                return !isAtFinder && abs(x - column) <= 2 && abs(y - row) <= 2
            }
        }
    }

    private var words: [Int] {
        guard let centres = Self.centres[version] else { return [] }
        var bits: [Bool] = [], right = modules.count - 1, isUpward = true
        while right > 0 {
            if right == 6 { right -= 1 }
            for y in isUpward ? Array(modules.indices.reversed()) : Array(modules.indices) {
                for x in [right, right - 1] where !isPattern(x, y, centres) {
                    bits.append(modules[y][x] != isMasked(x, y, format >> 10 & 7))
                }
            }
            (right, isUpward) = (right - 2, !isUpward)
        }
        return stride(from: 0, to: bits.count - 7, by: 8).map { place in
            bits[place..<place + 8].reduce(0) { $0 << 1 | ($1 ? 1 : 0) }
        }
    }

    /// The bytes in front, if mode, level and length are right and no block has an error.
    func text(_ length: Int) -> String? {
        guard let (count, extra) = Self.blocks[version], format >> 13 == 0 else { return nil }
        let words = words, data = words.count - count * extra
        let (short, long) = (data / count, data % count)
        var blocks = [[Int]](repeating: [], count: count), place = 0
        for index in 0...short {
            for block in 0..<count where index < short || block >= count - long {
                blocks[block].append(words[place])
                place += 1
            }
        }
        let message = blocks.flatMap(\.self)
        for _ in 0..<extra {
            for block in 0..<count {
                blocks[block].append(words[place])
                place += 1
            }
        }
        guard blocks.allSatisfy({ Self.hasNoError($0, extra) }) else { return nil }
        let bits = message.flatMap { word in (0..<8).map { word >> (7 - $0) & 1 } }
        func number(_ range: Range<Int>) -> Int { bits[range].reduce(0) { $0 << 1 | $1 } }
        let begin = version < 10 ? 12 : 20
        guard number(0..<4) == 4, number(4..<begin) == length else { return nil }
        return String(decoding: (0..<length).map { UInt8(number(begin + 8 * $0..<begin + 8 * $0 + 8)) }, as: UTF8.self)
    }

    /// Whether the polynomial of a block has each root of the generator.
    private static func hasNoError(_ block: [Int], _ extra: Int) -> Bool {
        var root = 1
        for _ in 0..<extra {
            guard block.reduce(0, { product($0, root) ^ $1 }) == 0 else { return false }
            root = product(root, 2)
        }
        return true
    }

    private static func product(_ a: Int, _ b: Int) -> Int {
        (0..<8).reduce(0) { sum, bit in
            guard b >> bit & 1 == 1 else { return sum }
            return sum ^ (0..<bit).reduce(a) { value, _ in value & 0x80 == 0 ? value << 1 : value << 1 ^ 0x11d }
        }
    }
}
