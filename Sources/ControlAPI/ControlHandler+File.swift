import DiskCache
import HTTPTransport

extension ControlHandler {
    /// Tells where the complete file of a resource is, and keeps it as it is until the client closes the connection.
    func holdFile(_ exchange: Exchange, _ parameters: ControlParameters) throws(ControlError) {
        let url = try parameters.requiredURL()
        perform(exchange, isLong: true) { [policy] store in
            guard let hold = try policy.value.find(url, store.hold) else { throw ControlError.notCached(url.absolute) }
            switch hold.state {
            case .complete(let path): return (hold, try ControlJSON.line(HeldFile(path: path, length: hold.length)))
            case .incomplete(let missing): throw ControlError.incomplete(url.absolute, missing: missing)
            }
        } then: { exchange, held in
            var response = Response(200, length: nil)
            response.describeJSON()
            // The answer does not end, so no other can follow it.
            response.closes = true
            exchange.respond(response, body: HoldSource(held.0, line: held.1))
        }
    }
}

/// Where a complete file is.
package struct HeldFile: Codable, Sendable {
    /// Below the cache directory.
    package let path: String
    package let length: Int64
}

/// A line, and then nothing until the client goes away.
private final class HoldSource: BodySource {
    private var hold: FileHold?
    private let line: BytesSource

    init(_ hold: FileHold, line: [UInt8]) {
        self.hold = hold
        self.line = BytesSource(line)
    }

    func next(limit: Int) -> BodyStep {
        if case .span(let span) = line.next(limit: limit) { .span(span) } else { .wait }
    }

    func finish() { hold = nil }
}
