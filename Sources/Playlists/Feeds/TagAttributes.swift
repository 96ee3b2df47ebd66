import HTTPModel

extension FeedTree {
    /// The attributes of a tag from the parser.
    struct TagAttributes {
        /// The known attributes, in lower case and without a prefix. If two become the same, the first counts.
        private(set) var values: [String: String] = [:]
        /// The same names in their original spelling.
        private(set) var spelling: [String: String] = [:]
        /// Prefixes and the namespaces that they are declared as.
        private(set) var namespaces: [(String, String)] = []
        private(set) var base: String?

        init(_ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
            var place = attributes
            while let next = place, let name = next.pointee, let value = next.successor().pointee {
                take(String(cString: name), value)
                place = next.successor().successor()
            }
        }

        private mutating func take(_ name: String, _ value: UnsafePointer<CChar>) {
            let parts = name.split(separator: ":", maxSplits: 1), local = ASCII.lowercased(parts.last ?? "")
            if parts.first == "xmlns" {
                namespaces.append((parts.count == 2 ? String(parts[1]) : "", String(cString: value)))
            } else if ASCII.equalIgnoringCase(name, "xml:base") {
                base = String(cString: value)
            } else if FeedElement.attributes.contains(local), values[local] == nil {
                values[local] = String(cString: value)
                spelling[local] = name
            }
        }
    }
}
