import Downloads

/// A member of a JSON object in a request's body, which may be missing: its name, its property and its form.
struct BodyMember<Body>: Sendable {
    let name: BodyKey
    let read: @Sendable (KeyedDecodingContainer<BodyKey>, inout Body) throws -> Void
    let write: @Sendable (Body, inout KeyedEncodingContainer<BodyKey>) throws -> Void

    init<Value>(_ name: String, _ path: WritableKeyPath<Body, Value?> & Sendable, _ form: BodyForm<Value>) {
        let key = BodyKey(name)
        self.name = key
        read = { members, body in
            if let value = try form.read(members, key) { body[keyPath: path] = value }
        }
        write = { body, members in
            if let value = body[keyPath: path] { try form.write(value, &members, key) }
        }
    }

    /// - Parameter standard: the value that is not sent; nil to send each.
    init<Value: Equatable & Sendable>(
        _ name: String, _ path: WritableKeyPath<Body, Value> & Sendable, _ form: BodyForm<Value>,
        unless standard: Value? = nil
    ) {
        let key = BodyKey(name)
        self.name = key
        read = { members, body in
            if let value = try form.read(members, key) { body[keyPath: path] = value }
        }
        write = { body, members in
            let value = body[keyPath: path]
            if value != standard { try form.write(value, &members, key) }
        }
    }
}

/// How the value of a member is written.
struct BodyForm<Value>: Sendable {
    /// nil if the member is missing.
    let read: @Sendable (KeyedDecodingContainer<BodyKey>, BodyKey) throws -> Value?
    let write: @Sendable (Value, inout KeyedEncodingContainer<BodyKey>, BodyKey) throws -> Void

    /// - Parameters:
    ///   - form: describes the value, for the error message.
    ///   - value: nil for a value that makes no sense.
    init<Sent: Codable & SendableMetatype>(
        _ form: String, value: @escaping @Sendable (Sent) -> Value?, sent: @escaping @Sendable (Value) -> Sent
    ) {
        read = { members, key in
            try members.decodeIfThere(Sent.self, forKey: key, form: form) { value($0) != nil }.flatMap(value)
        }
        write = { try $1.encode(sent($0), forKey: $2) }
    }

    /// - Parameter received: throws for a value that makes no sense.
    init<Received: Decodable & SendableMetatype, Sent: Encodable & SendableMetatype>(
        _ received: Received.Type, value: @escaping @Sendable (Received) -> Value,
        sent: @escaping @Sendable (Value) -> Sent
    ) {
        read = { try $0.decodeIfThere(received, forKey: $1).map(value) }
        write = { try $1.encode(sent($0), forKey: $2) }
    }
}

extension BodyForm where Value: Codable & SendableMetatype {
    init(_ form: String) { self.init(form, value: { $0 }, sent: { $0 }) }
}

extension BodyForm<Int64> {
    /// Bytes: a number, or a size such as `"20GB"`.
    static var size: Self { Self(ReceivedSize.self, value: { $0.bytes }, sent: { $0 }) }
    /// Seconds: a number, or a time such as `"30m"`.
    static var span: Self { Self(ReceivedSpan.self, value: { $0.seconds }, sent: { $0 }) }
}

extension BodyForm<Int> {
    static var number: Self { Self("a whole number") }
}

extension BodyForm<String> {
    static var string: Self { Self("a string") }
}

extension BodyForm<Bool> {
    static var flag: Self { Self("true or false") }
}

extension BodyForm<Download.Priority> {
    static var priority: Self { Self(Download.Priority.allCases.map(\.rawValue).joined(separator: ", ")) }
}
