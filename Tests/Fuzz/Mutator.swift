import TestSupport

/// Makes inputs of other inputs, where no fuzzer with coverage is at hand.
struct Mutator {
    private var random: SplitMix64
    private let corpus: [[UInt8]]

    private static let numbers = [
        "0", "1", "-1", "65535", "65536", "2147483648", "4294967296", "1152921504606846976", "1152921504606846977",
        "9223372036854775806", "9223372036854775807",
        "9223372036854775808", "18446744073709551616", "99999999999999999999999999",
    ].map { Array($0.utf8) }
    private static let marks = Array("\r\n\t \0\"\\,;:=/*-?#%&{}[]()<>@\u{7F}".utf8)

    init(_ corpus: [[UInt8]], random: SplitMix64) {
        self.corpus = corpus
        self.random = random
    }

    mutating func next() -> [UInt8] {
        var input = corpus.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...4, using: &random) { change(&input) }
        return input
    }

    private mutating func change(_ input: inout [UInt8]) {
        let place = Int.random(in: 0...input.count, using: &random)
        let end = min(input.count, place + Int.random(in: 0...8, using: &random))
        switch Int.random(in: 0..<9, using: &random) {
        case 0 where place < input.count: input[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1 where place < input.count: input[place] = .random(in: .min ... .max, using: &random)
        case 2: input.removeSubrange(place..<end)
        case 3: input.insert(contentsOf: input[place..<end], at: place)
        case 4: input.insert(contentsOf: Self.numbers.randomElement(using: &random) ?? [], at: place)
        case 5: input.insert(Self.marks.randomElement(using: &random) ?? 0, at: place)
        case 6: replaceNumber(&input, after: place)
        case 7:
            input =
                Array(input[..<place])
                + (corpus.randomElement(using: &random) ?? []).suffix(Int.random(in: 0...64, using: &random))
        default:
            input.insert(
                contentsOf: repeatElement(input[safe: place] ?? 0x61, count: Int.random(in: 1...300, using: &random)),
                at: place)
        }
    }

    private mutating func replaceNumber(_ input: inout [UInt8], after place: Int) {
        guard let first = input[place...].firstIndex(where: { (0x30...0x39).contains($0) }) else { return }
        let end = input[first...].firstIndex { !(0x30...0x39).contains($0) } ?? input.count
        input.replaceSubrange(first..<end, with: Self.numbers.randomElement(using: &random) ?? [])
    }
}

extension [UInt8] {
    fileprivate subscript(safe place: Int) -> UInt8? { indices.contains(place) ? self[place] : nil }
}
