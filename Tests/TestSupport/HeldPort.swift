/// A port of 127.0.0.1 that nobody else is given until this object goes. Connections to it are refused unless a socket
/// listens on that very port.
package final class HeldPort: Sendable {
    package let port: Int
    private let place: Socket

    package init() throws {
        place = try Socket.bound(to: 0)
        do { port = try place.port() } catch {
            place.close()
            throw error
        }
    }

    deinit { place.close() }
}
