import HTTPModel

extension HeaderFields: ExpressibleByArrayLiteral {
    /// `["ETag: \"v1\"", "Age: 5"]`
    package init(arrayLiteral lines: String...) {
        self.init(
            lines.map { line in
                let name = line.prefix { $0 != ":" }
                return Line(name: String(name), value: String(line.dropFirst(name.count + 1).drop { $0 == " " }))
            })
    }
}
