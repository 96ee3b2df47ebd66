import DiskCache
import EventIO
import HTTPTransport

/// A long body whose pieces are made on a thread of the store, each when the client is ready for it: a slow client
/// occupies no thread. Loop-bound.
final class PieceSource: BodySource {
    private let exchange: Exchange
    private let store: CacheStore
    private let make: @Sendable () throws -> [UInt8]?
    private var piece = BytesSource([])
    private var state = State.ready

    private enum State { case ready, waiting, ended, failed }

    /// - Parameter make: the next piece; nil at the end. After an error, the connection is cut. Never called before it
    ///   has returned.
    init(_ exchange: Exchange, _ store: CacheStore, make: @escaping @Sendable () throws -> [UInt8]?) {
        (self.exchange, self.store, self.make) = (exchange, store, make)
    }

    func next(limit: Int) -> BodyStep {
        if case .span(let span) = piece.next(limit: limit) { return .span(span) }
        if state == .ready { makePiece() }
        switch state {
        case .ready, .waiting: return .wait
        case .ended: return .end
        case .failed: return .cut
        }
    }

    private func makePiece() {
        state = .waiting
        let bound = LoopBound(self, on: exchange.loop)
        let runs = store.performLong { [make] in
            let made = Result { try make() }
            bound.post { $0.take(made) }
        }
        if !runs { state = .failed }
    }

    private func take(_ made: Result<[UInt8]?, any Error>) {
        switch made {
        case .success(let bytes?): (piece, state) = (BytesSource(bytes), .ready)
        case .success(nil): state = .ended
        case .failure: state = .failed
        }
        exchange.resume()
    }

    func finish() {}
}
