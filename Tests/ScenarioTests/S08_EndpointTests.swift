import ControlAPI
import Foundation
import Testing

extension Scenarios {
    /// The table of endpoints, and the server that reads it.
    @Suite struct S08Endpoints {
        static let endpoints = Mirror(reflecting: Endpoints.all).children.compactMap {
            Mirror(reflecting: $0.value).descendant("traits") as? EndpointTraits
        }

        private struct Request: Hashable {
            let method: String
            let path: String
        }

        @Test func eachEndpointIsCarriedOutAndNothingElse() async throws {
            try await scenario { stage in
                let table = Dictionary(grouping: Self.endpoints) { Request(method: $0.method.rawValue, path: $0.path) }
                #expect(table.count > 30)
                let paths = try stage.control("GET", "/nothing").text.matches(of: /\/api\/v1\/[a-z\/]+/).map {
                    $0.output
                }
                var served = Set<Request>()
                for path in Set(paths).subtracting(["/api/v1/nothing"]) {
                    let path = String(path.dropFirst(EndpointTraits.root.count))
                    let methods = try #require(try stage.control("OPTIONS", path).headers["Allow"])
                    for method in methods.components(separatedBy: ", ") where !["HEAD", "OPTIONS"].contains(method) {
                        served.insert(Request(method: method, path: EndpointTraits.root + path))
                    }
                }
                #expect(served == Set(table.keys))
            }
        }

        /// Its names and no others: a client that sends one of them is understood.
        @Test func eachEndpointAcceptsItsParametersAlone() async throws {
            try await scenario { stage in
                for (request, endpoints) in Dictionary(
                    grouping: Self.endpoints, by: { "\($0.method.rawValue) \($0.path)" })
                {
                    let endpoint = endpoints[0]
                    let path = String(endpoint.path.dropFirst(EndpointTraits.root.count))
                    let text = try stage.control(endpoint.method.rawValue, path + "?nonsense=1").text
                    let names = (endpoints.flatMap(\.query) + [.secrets]).map(\.rawValue)
                    #expect(text.contains("the parameters are \(names.joined(separator: ", "))"), "\(request): \(text)")
                }
            }
        }

        @Test func aParameterOfAnotherEndpointIsRefused() async throws {
            try await scenario { stage in
                let url = stage.parameter("/film.mp4")
                for (path, reason) in [
                    ("/resources?sort=size&" + url, "sort cannot be combined with url"),
                    ("/resources?segments=true", "segments cannot be used without url"),
                    ("/feeds?urls=true&" + url, "urls cannot be combined with url"),
                    ("/feeds?limit=1", "limit cannot be used without url"),
                ] {
                    let response = try stage.control("GET", path)
                    #expect(response.status == 400 && response.text.contains(reason))
                }
            }
        }
    }
}
