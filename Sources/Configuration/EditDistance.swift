/// The edit distance of two words: how many letters to insert, remove or change.
package enum EditDistance {
    /// The word that was most likely meant; nil if none is near.
    package static func nearest(to word: String, in words: [String]) -> String? {
        let near = words.map { (word: $0, distance: between(word, $0)) }.min { $0.distance < $1.distance }
        guard let near, near.distance <= max(2, near.word.count / 3), near.distance < near.word.count else {
            return nil
        }
        return near.word
    }

    static func between(_ one: String, _ other: String) -> Int {
        let other = Array(other)
        // The distances from the letters of `one` read so far to each prefix of `other`.
        var row = Array(0...other.count)
        for (index, letter) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in other.indices {
                let changed = diagonal + (letter == other[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(changed, diagonal + 1, row[column] + 1)
            }
        }
        return row[other.count]
    }
}
