import Foundation
import HTTPModel
import Testing

@testable import Presentations

/// Which content codings are removed; what they contain is tested through the proxy.
@Suite struct ContentCodingTests {
    /// Each layer costs a pass over the text, and a header may name hundreds.
    @Test(
        arguments: [
            ("gzip, gzip, gzip", .unknown("gzip, gzip, gzip")), ("gzip, deflate", .broken), ("br", .unknown("br")),
            ("identity, , gzip", .broken),
        ] as [(String, ContentCoding.Problem)])
    func fewLayersAreDecoded(codings: String, problem: ContentCoding.Problem) {
        var fields = HeaderFields()
        fields.append("Content-Encoding", codings)
        #expect(throws: problem) { try ContentCoding.decoded([1, 2, 3], fields) }
    }

    private static let gzipped: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0xCF, 0x4B, 0xE5, 0x02, 0x00, 0x9F, 0xA8,
        0x17, 0xF8, 0x04, 0x00, 0x00, 0x00,
    ]
    private static let zlibbed: [UInt8] = [0x78, 0x9C, 0xCB, 0xCF, 0x4B, 0xE5, 0x02, 0x00, 0x03, 0xDE, 0x01, 0x4D]
    private static let raw: [UInt8] = [0xCB, 0xCF, 0x4B, 0xE5, 0x02, 0x00]

    /// Nothing that follows what was decoded is dropped.
    @Test(
        arguments: [
            ("gzip", [gzipped], "one\n"), ("x-gzip", [gzipped, gzipped, gzipped], "one\none\none\n"),
            ("deflate", [zlibbed], "one\n"), ("deflate", [raw], "one\n"),
            ("deflate", [gzipped, gzipped], "one\none\n"),
            ("gzip", [gzipped, [0, 0, 0]], "one\n"), ("gzip", [gzipped, gzipped.dropLast()], nil),
            ("gzip", [gzipped, [0x1F]], nil), ("gzip", [gzipped, [0, 1]], nil), ("gzip", [gzipped, zlibbed], nil),
            ("gzip", [raw], nil), ("deflate", [zlibbed, [1]], nil), ("deflate", [raw, [1]], nil),
            ("deflate", [raw, raw], nil), ("deflate", [raw.dropLast()], nil), ("deflate", [zlibbed.dropLast()], nil),
        ] as [(String, [[UInt8]], String?)])
    func everythingIsDecodedOrNothing(coding: String, pieces: [[UInt8]], text: String?) throws {
        var fields = HeaderFields()
        fields.append("Content-Encoding", coding)
        if let text {
            #expect(try ContentCoding.decoded(Array(pieces.joined()), fields) == Array(text.utf8))
        } else {
            #expect(throws: ContentCoding.Problem.broken) { try ContentCoding.decoded(Array(pieces.joined()), fields) }
        }
    }

    /// 128 KiB of spaces.
    private static let spaces = """
        H4sIAAAAAAACA+3BMQEAAADCoCrrn9LDGkABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAA3ACLNry7AAACAA==
        """

    /// What it costs to read follows from the bytes that came.
    @Test(arguments: [(8, true), (40, false)]) func aTextGrowsByARatio(members: Int, isDecoded: Bool) throws {
        let member = [UInt8](try #require(Data(base64Encoded: Self.spaces))), fields = Self.coded("gzip")
        let text = Array(repeatElement(member, count: members).joined())
        if isDecoded {
            #expect(try ContentCoding.decoded(text, fields).count == members << 17)
        } else {
            #expect(throws: ContentCoding.Problem.tooLong) { try ContentCoding.decoded(text, fields) }
        }
    }

    private static func coded(_ coding: String) -> HeaderFields {
        var fields = HeaderFields()
        fields.append("Content-Encoding", coding)
        return fields
    }

    /// The limit is that of the whole text.
    @Test func membersCountTogether() {
        var fields = HeaderFields()
        fields.append("Content-Encoding", "gzip")
        #expect(throws: ContentCoding.Problem.tooLong) {
            try ContentCoding.decoded(Self.gzipped + Self.gzipped, fields, limit: 7)
        }
    }

    @Test func layersOfSeveralFieldsCountTogether() {
        var fields = HeaderFields()
        for _ in 0..<3 { fields.append("Content-Encoding", "gzip") }
        #expect(throws: ContentCoding.Problem.unknown("gzip, gzip, gzip")) {
            try ContentCoding.decoded([1, 2, 3], fields)
        }
    }
}
