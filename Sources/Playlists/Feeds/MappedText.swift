/// A text that consists of pieces of another one and of replacements. Each position in it maps to one in the other.
///
///     source   |-------[ & ]-----[<br>]--[  ]---|
///     text     |-------[&amp;]---[<br>]--[</br>]|
struct MappedText {
    private(set) var bytes: [UInt8] = []
    private var steps: [Step] = []

    /// Where a piece begins, and the range of the source that it stands for.
    private struct Step {
        let place: Int
        let source: Range<Int>
        let isCopy: Bool
    }

    var pieces: Int { steps.count }

    mutating func copy(_ range: Range<Int>, of source: [UInt8]) {
        guard !range.isEmpty else { return }
        if let last = steps.last, last.isCopy, last.source.upperBound == range.lowerBound,
            last.place + last.source.count == bytes.count
        {
            steps[steps.count - 1] = Step(
                place: last.place, source: last.source.lowerBound..<range.upperBound, isCopy: true)
        } else {
            steps.append(Step(place: bytes.count, source: range, isCopy: true))
        }
        bytes += source[range]
    }

    /// - Parameter source: the range that the text replaces; empty for an insertion.
    mutating func write(_ text: some Collection<UInt8>, for source: Range<Int>) {
        guard !text.isEmpty else { return }
        steps.append(Step(place: bytes.count, source: source, isCopy: false))
        bytes += text
    }

    /// The range of the source that a range of the text stands for.
    func source(of range: Range<Int>) -> Range<Int> {
        let start = start(of: range.lowerBound)
        return start..<max(start, range.isEmpty ? start : end(of: range.upperBound))
    }

    private func start(of place: Int) -> Int {
        guard let step = step(at: place) else { return 0 }
        return step.isCopy ? step.source.lowerBound + (place - step.place) : step.source.lowerBound
    }

    /// The end in the source of a range that ends here and is not empty.
    private func end(of place: Int) -> Int {
        guard let step = step(at: place - 1) else { return 0 }
        return step.isCopy ? step.source.lowerBound + (place - step.place) : step.source.upperBound
    }

    private func step(at place: Int) -> Step? {
        var (low, high) = (0, steps.count)
        while low < high {
            let middle = low + (high - low) / 2
            if steps[middle].place <= place { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? steps[low - 1] : nil
    }
}
