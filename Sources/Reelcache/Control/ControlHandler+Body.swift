import ControlAPI
import HTTPTransport

extension ControlHandler {
    /// The largest body of a change.
    private static let maxJSONBytes = 64 << 10

    /// Reads the body as JSON; answers an invalid body itself.
    func receiveJSON<Value: RequestBody>(_ type: Value.Type, _ exchange: Exchange, then: @escaping (Value) -> Void) {
        receiveBody(exchange, upTo: Self.maxJSONBytes) { body in
            do throws(ControlError) { then(try ReceivedJSON.decode(type, from: body)) } catch {
                exchange.respond(error)
            }
        }
    }

    /// Reads the body; answers an invalid body itself.
    func receiveBody(_ exchange: Exchange, upTo limit: Int, then: @escaping ([UInt8]) -> Void) {
        exchange.readBody(upTo: limit) { result in
            do throws(BodyFault) { then(try result.get()) } catch {
                if case .refused(let fault) = error { exchange.respond(ControlError(fault.status, fault.reason)) }
            }
        }
    }
}
