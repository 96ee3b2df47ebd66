import ControlAPI
import HTTPModel
import Upstream

/// Sends requests for the endpoints of a proxy. All calls block and throw `ControlError`.
package struct ControlClient: Sendable {
    let baseURL: String
    let processID: Int32
    let cacheDirectory: String
    /// How long each request may take, in seconds; nil for work that waits for the disk.
    var timeout: Double?
    /// Whether URLs in answers have their secrets, as a command needs to name them again.
    var showsSecrets = true

    /// The names and values of parameters; one without a value is left out.
    typealias Query = [EndpointTraits.Parameter: String?]

    // MARK: Calls

    /// Sends a request for an endpoint without a body, and reads its answer.
    func call<Answer: Decodable>(_ endpoint: KeyPath<Endpoints, Endpoint<Void, Answer>>, _ query: Query = [:]) throws
        -> Answer
    {
        try send(request(endpoint, query))
    }

    /// The same with a body.
    func call<Body: RequestBody, Answer: Decodable>(
        _ endpoint: KeyPath<Endpoints, Endpoint<Body, Answer>>, _ query: Query = [:], body: Body
    ) throws -> Answer {
        try send(request(endpoint, query, body: body))
    }

    /// A request with a body, to be sent.
    func request<Body: RequestBody, Answer>(
        _ endpoint: KeyPath<Endpoints, Endpoint<Body, Answer>>, _ query: Query = [:], body: Body
    ) throws -> Call<Answer> {
        var call = try request(endpoint, query)
        call.fetch.fields.append("Content-Type", "application/json")
        call.fetch.content = .bytes(try ControlJSON.line(body))
        return call
    }

    /// A request without a body, to be sent.
    ///
    /// With the token, it is for secrets in URLs as well, unless `showsSecrets` is false. Requests that only read may do
    /// without; then secrets are masked.
    func request<Body, Answer>(_ endpoint: KeyPath<Endpoints, Endpoint<Body, Answer>>, _ query: Query = [:]) throws
        -> Call<Answer>
    {
        let traits = Endpoints.all[keyPath: endpoint].traits
        let token = traits.access == .token ? try token() : try? token()
        var call = Call<Answer>(traits, query, at: baseURL, token: token, showsSecrets: showsSecrets)
        call.fetch.timeout = timeout
        return call
    }

    private func token() throws -> String {
        do throws(TokenError) { return try ControlToken(of: cacheDirectory).text } catch {
            throw ControlError(
                error.isMendedAtStart ? "\(error); then restart the proxy (process \(processID))" : "\(error)")
        }
    }

    // MARK: Answers

    func send<Answer: Decodable>(_ call: Call<Answer>) throws -> Answer {
        try decode(Answer.self, from: body(of: call), of: call.path)
    }

    /// - Throws: `ControlError` if it is something else: the proxy may be another version.
    func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8], of path: String) throws -> Value {
        guard let value = try? ControlJSON.decode(type, from: bytes) else { throw refusal(200, bytes, path) }
        return value
    }

    func body<Answer>(of call: Call<Answer>) throws -> [UInt8] {
        var body: [UInt8] = []
        _ = try receive(call) { bytes, _ in
            body.append(contentsOf: bytes)
            return true
        }
        return body
    }

    /// Passes the body of a successful response to `take` as it arrives.
    /// - Parameters:
    ///   - failed: see `perform`.
    ///   - take: its second argument says whether the proxy still has the connection open. Returns whether to continue.
    /// - Returns: whether the response has ended, rather than `take`.
    /// - Throws: the errors of `take`; `ControlError` also if the proxy refuses.
    func receive<Answer>(
        _ call: Call<Answer>, failed: (UpstreamError) -> String? = { _ in nil },
        _ take: (UnsafeRawBufferPointer, @escaping () -> Bool) throws -> Bool
    ) throws -> Bool {
        var (refused, result): ([UInt8], Result<Bool, any Error>) = ([], .success(true))
        let head = try withoutActuallyEscaping(take) { take in
            try perform(call.fetch, failed: failed) { head, bytes, isOpen in
                guard 200..<300 ~= head.status else {
                    refused.append(contentsOf: bytes)
                    return .more
                }
                result = Result { try take(bytes, isOpen) }
                if case .success(true) = result { return .more }
                return .enough
            }
        }
        // The token has changed since the proxy started; reading works without it.
        if head.status == 401, let plain = call.withoutToken { return try receive(plain, failed: failed, take) }
        guard 200..<300 ~= head.status else { throw refusal(head.status, refused, call.path) }
        return try result.get()
    }

    /// - Parameter failed: returns a better error than that the proxy does not answer, if there is one.
    func perform(
        _ fetch: BlockingFetch, failed: (UpstreamError) -> String? = { _ in nil },
        _ receive: @escaping (BlockingFetch.Head, UnsafeRawBufferPointer, @escaping () -> Bool) -> BlockingFetch.Demand
    ) throws -> BlockingFetch.Head {
        do throws(UpstreamError) { return try fetch.perform(receive) } catch {
            if case .interrupted = error { throw ControlError.interrupted }
            throw ControlError(failed(error) ?? "the proxy at \(baseURL) does not answer: \(error)")
        }
    }

    package func refusal(_ status: Int, _ body: [UInt8], _ path: String) -> ControlError {
        if status == 401 {
            let token = "the token in \(cacheDirectory)/control-token"
            return ControlError(
                "the proxy at \(baseURL) does not accept \(token), which has changed since it started: restart the proxy (process \(processID))"
            )
        }
        if let error = ControlError(status, body: body) { return error }
        return ControlError(
            "the proxy at \(baseURL) answers \(status) to \(path) in an unexpected way: it may be another version"
        )
    }
}

extension ControlClient {
    /// A request for an endpoint of a proxy.
    struct Call<Answer> {
        /// Besides method, URL and token: what the caller adds.
        var fetch: BlockingFetch
        let path: String
        private let baseURL: String
        private let query: [(name: EndpointTraits.Parameter, value: String)]
        private let access: EndpointTraits.Access

        /// - Parameter token: nil for none. Secrets are requested only with it.
        init(_ traits: EndpointTraits, _ query: Query, at baseURL: String, token: String?, showsSecrets: Bool = true) {
            assert(query.keys.allSatisfy(traits.query.contains), "a parameter that \(traits.path) does not accept")
            (path, access, self.baseURL) = (traits.path, traits.access, baseURL)
            self.query = traits.query.compactMap { name in query[name].flatMap { $0 }.map { (name, $0) } }
            let sent = self.query + (token != nil && showsSecrets ? [(.secrets, "true")] : [])
            fetch = BlockingFetch(Self.url(baseURL, path, sent))
            fetch.method = traits.method.rawValue
            if let token { fetch.fields.append("Authorization", "Bearer \(token)") }
        }

        private static func url(
            _ baseURL: String, _ path: String, _ query: [(name: EndpointTraits.Parameter, value: String)]
        ) -> String {
            let text = query.map { "\($0.name.rawValue)=\(PercentEncoding.encodingReserved($0.value))" }
            return baseURL + path + (text.isEmpty ? "" : "?" + text.joined(separator: "&"))
        }

        /// The same request without the token, and so without secrets; nil if it does more than read, or has no token
        /// already.
        var withoutToken: Call? {
            guard access == .reading, fetch.fields["Authorization"] != nil else { return nil }
            var call = self
            call.fetch.fields.remove("Authorization")
            call.fetch.url = Self.url(baseURL, path, query)
            return call
        }
    }
}
