import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import HTTPTransport

/// An endpoint, and what carries it out. From any loop.
struct ControlRoute: Sendable {
    let traits: EndpointTraits
    let handle: @Sendable (ControlRequest<Void, Void>) throws(ControlError) -> Void

    init<Body, Answer>(
        _ endpoint: KeyPath<Endpoints, Endpoint<Body, Answer>>,
        _ handle: @escaping @Sendable (ControlRequest<Body, Answer>) throws(ControlError) -> Void
    ) {
        traits = Endpoints.all[keyPath: endpoint].traits
        self.handle = { request throws(ControlError) in
            try handle(
                ControlRequest(
                    exchange: request.exchange, parameters: request.parameters, mask: request.mask,
                    store: request.store, access: request.access))
        }
    }
}

extension [ControlRoute] {
    /// The methods of these routes, as `Allow` lists them.
    var allowed: String {
        var methods: [String] = []
        for route in self where !methods.contains(route.traits.method.rawValue) {
            methods += route.traits.method == .get ? ["GET", "HEAD"] : [route.traits.method.rawValue]
        }
        return (methods + ["OPTIONS"]).joined(separator: ", ")
    }

    func accepting(_ method: String) -> [ControlRoute] {
        filter { $0.traits.method.rawValue == (method == "HEAD" ? "GET" : method) }
    }

    /// The one that is meant, of some routes with the same path and method.
    /// - Throws: if a parameter belongs to another of them.
    func chosen(by parameters: ControlParameters) throws(ControlError) -> ControlRoute {
        let key = compactMap(\.traits.key).first(where: parameters.has)
        let route = first { $0.traits.key == key } ?? self[0]
        if let other = flatMap(\.traits.query).first(where: { !route.traits.query.contains($0) && parameters.has($0) })
        {
            let keys = compactMap(\.traits.key?.rawValue).joined(separator: " or ")
            throw ControlError(
                400, "\(other.rawValue) cannot be \(key == nil ? "used without" : "combined with") \(keys)")
        }
        return route
    }
}

/// A request for an endpoint that was let in, and what is needed to answer it. Loop-bound.
struct ControlRequest<Body, Answer> {
    let exchange: Exchange
    let parameters: ControlParameters
    /// Masks the URLs of the answer; nil if the client requested secrets, and may see them.
    let mask: URLMask?
    let store: CacheStore
    let access: ControlAccess

    /// Runs blocking work on a thread of the store, and continues with its result on the loop; an error is the
    /// response.
    /// - Parameter isLong: whether it may read whole files, so that shorter requests need not wait for it.
    func perform<Value: Sendable>(
        isLong: Bool = false, _ work: @escaping @Sendable (CacheStore) throws -> Value,
        then: @escaping @Sendable (Exchange, Value) -> Void
    ) {
        let bound = LoopBound(exchange, on: exchange.loop)
        let job = { @Sendable [store] in
            let result = Result {
                try store.checkOpen()
                return try work(store)
            }
            bound.post { exchange in
                switch result {
                case .success(let value): then(exchange, value)
                case .failure(let error): exchange.respond(ControlError(error))
                }
            }
        }
        if isLong { store.performLong(job) } else { store.perform(job) }
    }

    /// Reads the body; answers an invalid body itself.
    func receiveBytes(upTo limit: Int, then: @escaping ([UInt8]) -> Void) {
        exchange.readBody(upTo: limit) { [exchange] result in
            do throws(BodyFault) { then(try result.get()) } catch {
                if case .refused(let fault) = error { exchange.respond(ControlError(fault.status, fault.reason)) }
            }
        }
    }
}

extension ControlRequest where Body: RequestBody {
    /// Reads the body as JSON; answers an invalid body itself.
    func receive(then: @escaping (Body) -> Void) {
        // The largest body of a change.
        receiveBytes(upTo: 64 << 10) { [exchange] body in
            do throws(ControlError) { then(try ReceivedJSON.decode(Body.self, from: body)) } catch {
                exchange.respond(error)
            }
        }
    }
}

extension ControlRequest where Answer: Encodable & Sendable {
    /// Runs blocking work on a thread of the store, and responds with its result as JSON.
    /// - Parameter isLong: see `perform`.
    func answer(isLong: Bool = false, _ work: @escaping @Sendable (CacheStore) throws -> Answer) {
        perform(isLong: isLong) { [mask] store in
            try ControlJSON.line(work(store), masked: mask)
        } then: { exchange, line in
            exchange.respond(200, json: line)
        }
    }

    /// As `answer`, with a list. With `urls=true`, which requires the token, the answer also has the URL of each entry,
    /// without a mask: entries may differ in nothing else.
    func answerList(
        isLong: Bool = false, urls: @escaping @Sendable (Answer) -> [String],
        _ work: @escaping @Sendable (CacheStore) throws -> Answer
    ) throws(ControlError) {
        let showsURLs = try parameters.flag(.urls)
        if showsURLs { try access.checkChanging(exchange.request) }
        perform(isLong: isLong) { [mask] store in
            let list = try work(store)
            guard showsURLs else { return try ControlJSON.line(list, masked: mask) }
            return try ControlJSON.line(list, masked: mask, urls: urls(list))
        } then: { exchange, line in
            exchange.respond(200, json: line)
        }
    }

    /// Responds from another thread, once the outcome is known.
    struct Reply: Sendable {
        fileprivate let exchange: LoopBound<Exchange>
        fileprivate let mask: URLMask?

        func send(_ result: Result<Answer, some Error>, status: Int = 200) {
            let line = Result { try ControlJSON.line(result.get(), masked: mask) }
            exchange.post { exchange in
                switch line {
                case .success(let line): exchange.respond(status, json: line)
                case .failure(let error): exchange.respond(ControlError(error))
                }
            }
        }
    }

    var reply: Reply { Reply(exchange: LoopBound(exchange, on: exchange.loop), mask: mask) }
}
