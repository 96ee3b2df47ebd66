import HTTPModel

extension Variant {
    /// The value of `Accept-Language` (RFC 9110 §12.5.4): language ranges with weights.
    struct LanguageRanges {
        /// Two values of the same meaning have the same text: the greatest weight first, and ranges of one weight by
        /// name. `DE , en;q=0.80,fr;q=0.8` is `de,en;q=0.8,fr;q=0.8`.
        let normalized: String

        /// - Parameter field: all field lines, joined by commas.
        /// - Returns: nil if it is malformed.
        init?(_ field: String) {
            var ranges: Set<Weighted> = []
            for element in field.utf8.split(separator: ASCII.comma).map({ ASCII.trimmed($0) }) where !element.isEmpty {
                guard let range = Weighted(element) else { return nil }
                ranges.insert(range)
            }
            normalized = ranges.sorted().map(\.text).joined(separator: ",")
        }

        private struct Weighted: Hashable, Comparable {
            /// In lower case.
            let name: String
            /// In thousandths.
            let weight: Int64

            init?(_ element: Substring.UTF8View) {
                let parts = element.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map {
                    ASCII.trimmed($0)
                }
                guard let range = parts.first, parts.count <= 2, Self.isRange(range) else { return nil }
                guard let weight = parts.count == 2 ? Self.weight(parts[1]) : Self.full else { return nil }
                (name, self.weight) = (ASCII.lowercased(Substring(range)), weight)
            }

            private static let full: Int64 = 1000

            /// RFC 4647 §2.1
            private static func isRange(_ bytes: Substring.UTF8View) -> Bool {
                !bytes.isEmpty
                    && bytes.allSatisfy {
                        ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "*")
                    }
            }

            /// RFC 9110 §12.4.2: `q=0.8`, with at most three decimals.
            private static func weight(_ parameter: Substring.UTF8View) -> Int64? {
                guard ASCII.equalIgnoringCase(parameter.prefix(2), "q=".utf8) else { return nil }
                let number = parameter.dropFirst(2), decimals = number.dropFirst(2)
                guard let whole = number.first, whole == UInt8(ascii: "0") || whole == UInt8(ascii: "1") else {
                    return nil
                }
                guard number.dropFirst().first.map({ $0 == UInt8(ascii: ".") }) ?? true, decimals.count <= 3 else {
                    return nil
                }
                let padded = Array(decimals) + Array(repeating: UInt8(ascii: "0"), count: 3 - decimals.count)
                guard let thousandths = ASCII.decimal(padded) else { return nil }
                if whole == UInt8(ascii: "1") { return thousandths == 0 ? full : nil }
                return thousandths
            }

            var text: String {
                guard weight < Self.full else { return name }
                let decimals = String(String(Self.full + weight).dropFirst()) // no trap: less than twice a thousand
                guard weight > 0 else { return name + ";q=0" }
                return name + ";q=0." + decimals.reversed().drop { $0 == "0" }.reversed()
            }

            static func < (a: Weighted, b: Weighted) -> Bool {
                a.weight == b.weight ? a.name.utf8.lexicographicallyPrecedes(b.name.utf8) : a.weight > b.weight
            }
        }
    }
}
