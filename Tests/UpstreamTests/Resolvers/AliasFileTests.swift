import CachePolicy
import Foundation
import HTTPModel
import Logging
import TestSupport
import Testing

@testable import Upstream

/// The file of aliases, whole and damaged.
@Suite struct AliasFileTests {
    private let directory: TemporaryDirectory
    private let file: AliasFile
    private let aliases: MediaAliases

    init() throws {
        directory = try TemporaryDirectory()
        file = AliasFile(directory: directory.path, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var aliases = MediaAliases()
        for page in ["https://a.example/watch?v=1", "https://a.example/watch?v=2", "https://a.example/3"] {
            aliases.learn("film", of: CacheKey(text: page))
        }
        aliases.learn("news", of: CacheKey(text: "https://a.example/watch?v=4"))
        self.aliases = aliases
        file.write { aliases }
    }

    private var path: String { directory.file("aliases.json") }

    @Test func whatIsWrittenIsRead() throws {
        #expect(Self.texts(file.read()) == Self.texts(aliases))
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    /// Otherwise a page would play the media of another.
    @Test func withOneOtherByteItIsTheSameOrNone() throws {
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        for place in whole.indices {
            var damaged = whole
            damaged[place] ^= 1
            try damaged.write(to: URL(fileURLWithPath: path))
            let read = Self.texts(file.read())
            #expect(read.isEmpty || read == Self.texts(aliases), "byte \(place)")
        }
    }

    /// Empty, cut, and with one other character.
    @Test(arguments: [0, 40, nil] as [Int?]) func aDamagedOneIsSetAside(length: Int?) throws {
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        var damaged = length.map { whole.prefix($0) } ?? whole
        if length == nil { damaged.replace(Data("film".utf8), with: Data("filn".utf8)) }
        try damaged.write(to: URL(fileURLWithPath: path))
        #expect(Self.texts(file.read()).isEmpty)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".damaged")) == damaged)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    private static func texts(_ aliases: MediaAliases) -> [String] {
        aliases.stored.map { "\($0.name) \($0.key) \($0.aliases.sorted())" }.sorted()
    }
}
