import HTTPModel

/// What a connection keeps of its last request, for the next one that has the same fields.
struct FormerRequest {
    /// Nil if it is too long to be kept.
    private(set) var rest: RequestHead.Rest?
    /// What the handler has read from it (`Exchange.reading`).
    private(set) var reading: AnyObject?

    mutating func note(_ rest: RequestHead.Rest) {
        guard rest !== self.rest else { return }
        reading = nil
        // An idle connection must not hold a long one.
        self.rest = rest.bytes.count <= InputTurn.shortHead ? rest : nil
    }

    mutating func keep(_ reading: AnyObject?) { if rest != nil { self.reading = reading } }
}
