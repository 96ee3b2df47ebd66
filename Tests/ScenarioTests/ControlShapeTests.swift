import ControlAPI
import Downloads
import Foundation
import Testing

/// The JSON of downloads and subscriptions, byte for byte: programs read it, and so do proxies of other versions.
@Suite struct ControlShapeTests {
    private func expectKept<Value: Codable>(_ name: String, as type: Value.Type) throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../Fixtures/Control/\(name).jsonl")
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            let value = try ControlJSON.decode(type, from: line.utf8)
            #expect(String(decoding: try ControlJSON.line(value), as: UTF8.self) == line + "\n")
        }
    }

    @Test func downloadsKeepTheirShape() throws { try expectKept("downloads", as: DownloadListing.self) }

    @Test func subscriptionsKeepTheirShape() throws { try expectKept("feeds", as: SubscriptionDetail.self) }
}
