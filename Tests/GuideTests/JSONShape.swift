import Foundation

/// The names and kinds of a piece of JSON, without its values. An array has the shape of its first element.
indirect enum JSONShape: Equatable {
    case object([String: JSONShape])
    case array(JSONShape?)
    case string, number, boolean, null

    /// - Returns: nil if the text is not JSON.
    init?(_ text: String) {
        guard let value = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) else {
            return nil
        }
        self.init(value)
    }

    /// Whether it has everything that another one has.
    func covers(_ other: JSONShape) -> Bool {
        switch (self, other) {
        case (.object(let members), .object(let others)):
            others.allSatisfy { name, shape in members[name]?.covers(shape) == true }
        case (.array(let element), .array(let another)):
            another.map { element?.covers($0) == true } ?? true
        default: self == other
        }
    }

    private init(_ value: Any) {
        switch value {
        case let object as [String: Any]: self = .object(object.mapValues(JSONShape.init))
        case let array as [Any]: self = .array(array.first.map(JSONShape.init))
        case is String: self = .string
        case is NSNull: self = .null
        case let number as NSNumber: self = CFNumberIsBoolean(number) ? .boolean : .number
        default: self = .null
        }
    }
}

/// Whether a value was `true` or `false`.
private func CFNumberIsBoolean(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
