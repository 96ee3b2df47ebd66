/// Responses that are not media pass through, too; the bytes of a short one are kept besides.
extension FetchOutput {
    /// Keeps the response that has begun, once its body has come.
    mutating func begin(_ short: ShortResponse.Intake) {
        self.short = short
        if short.isComplete { keepShort() }
    }

    mutating func collect(_ bytes: UnsafeRawBufferPointer) {
        guard short?.take(bytes) == true else { return short = nil }
        if short?.isComplete == true { keepShort() }
    }

    /// Stores the response, before anybody can have read its last byte and ask again.
    mutating func keepShort() {
        guard let short else { return }
        self.short = nil
        let resource = status.resource
        filler.shortResponses.store(short.response, .response, under: resource.key) {
            resource.changes == short.mark && resource.current == nil
        }
    }
}
