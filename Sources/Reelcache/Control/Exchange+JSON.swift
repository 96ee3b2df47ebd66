import Activity
import ControlAPI
import HTTPTransport

extension Exchange {
    /// Responds with JSON.
    func respond(_ status: Int, json line: [UInt8], configure: (inout Response) -> Void = { _ in }) {
        var response = Response(status, length: Int64(line.count))
        response.describeJSON()
        configure(&response)
        respond(response, bytes: line)
    }

    /// Responds with bytes that were made for it.
    func respond(_ response: Response, bytes: [UInt8]) {
        guard let body = source(of: bytes) else {
            return respond(ControlError(503, ProxyMetrics.Transit.exhausted))
        }
        respond(response, body: body)
    }

    func respond(_ error: ControlError) {
        respond(error.status ?? 500, json: error.line) { response in
            if let field = error.field { response.field(field.name, field.value) }
        }
    }
}

extension Response {
    mutating func describeJSON() {
        field("Content-Type", "application/json")
        field("Cache-Control", "no-store")
    }
}
