import ControlAPI
import Testing

@testable import Administration

/// Requests to the control interface, as they are sent.
@Suite struct ControlCallTests {
    private static let proxy = "http://127.0.0.1:7335"
    private static let url = "https://example.org/a.mp4?b=1&secrets=true"
    private static let encoded = "https%3A%2F%2Fexample.org%2Fa.mp4%3Fb%3D1%26secrets%3Dtrue"

    @Test func parametersStandInTheOrderOfTheTable() {
        let call = ControlClient.Call<Void>(
            Endpoints.all.removeResources.traits, [.dryRun: "true", .all: nil, .url: Self.url], at: Self.proxy,
            token: "0")
        #expect(call.fetch.method == "DELETE" && call.path == "/api/v1/resources")
        #expect(call.fetch.url == "\(Self.proxy)/api/v1/resources?url=\(Self.encoded)&dry_run=true&secrets=true")
        #expect(call.fetch.fields["Authorization"] == "Bearer 0")
    }

    @Test func withoutTheTokenNoSecretsAreRequested() {
        func call(_ traits: EndpointTraits, token: String?) -> ControlClient.Call<Void> {
            ControlClient.Call(traits, [.url: Self.url], at: Self.proxy, token: token)
        }
        let plain = call(Endpoints.all.resource.traits, token: "0").withoutToken
        #expect(plain?.fetch.url == "\(Self.proxy)/api/v1/resources?url=\(Self.encoded)")
        #expect(plain?.fetch.fields["Authorization"] == nil && plain?.withoutToken == nil)
        #expect(call(Endpoints.all.resource.traits, token: nil).fetch.url == plain?.fetch.url)
        // They do not work without it.
        #expect(call(Endpoints.all.removeResources.traits, token: "0").withoutToken == nil)
        #expect(call(Endpoints.all.file.traits, token: "0").withoutToken == nil)
    }
}
