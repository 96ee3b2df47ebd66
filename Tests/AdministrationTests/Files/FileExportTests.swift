import Administration
import Foundation
import TestSupport
import Testing

/// How a file gets to its place, whether or not the file system has files without names.
@Suite struct FileExportTests {
    private let directory: TemporaryDirectory
    private let film = Media(seed: 85, size: 3_000_000)
    private let source: String
    private let target: String

    init() throws {
        directory = try TemporaryDirectory()
        (source, target) = (directory.file("source"), directory.file("target"))
        // A cached file may be longer than its resource.
        try Data(film.allBytes + [1, 2, 3]).write(to: URL(fileURLWithPath: source))
    }

    private func export(isNameless: Bool, replaces: Bool = false) throws -> FileExport {
        var export = try FileExport(to: target, replaces: replaces)
        export.isNameless = isNameless
        return export
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
    }

    private var difference: String? {
        get throws { film.difference([UInt8](try Data(contentsOf: URL(fileURLWithPath: target))), from: 0..<film.size) }
    }

    @Test(arguments: [true, false], [true, false]) func theFileIsCompleteAndAlone(isNameless: Bool, replaces: Bool)
        throws
    {
        if replaces { try Data("old".utf8).write(to: URL(fileURLWithPath: target)) }
        _ = try export(isNameless: isNameless, replaces: replaces).run(from: source, length: film.size) { _ in true }
        #expect(try difference == nil && names == ["source", "target"])
    }

    @Test(arguments: [true, false], [true, false]) func whatIsInterruptedLeavesWhatWasThere(
        isNameless: Bool, replaces: Bool
    ) throws {
        if replaces { try Data("old".utf8).write(to: URL(fileURLWithPath: target)) }
        let error = #expect(throws: FileError.self) {
            try export(isNameless: isNameless, replaces: replaces).run(from: source, length: film.size) { _ in false }
        }
        // Where blocks are shared nothing can be interrupted.
        #expect(error?.description == "interrupted")
        #expect(try names == (replaces ? ["source", "target"] : ["source"]))
        if replaces { #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data("old".utf8)) }
    }

    @Test(arguments: [true, false]) func aFileThatComesMeanwhileIsNotReplaced(isNameless: Bool) throws {
        let export = try export(isNameless: isNameless)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: target))
        let error = #expect(throws: FileError.self) {
            try export.run(from: source, length: film.size) { _ in true }
        }
        #expect(error?.description.contains("--force") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data("mine".utf8))
        #expect(try names == ["source", "target"])
    }

    /// Whatever was copied meanwhile.
    @Test(arguments: [true, false], [true, false]) func whatNobodyHoldsToTheEndIsNoFile(
        isNameless: Bool, replaces: Bool
    ) throws {
        if replaces { try Data("old".utf8).write(to: URL(fileURLWithPath: target)) }
        let error = #expect(throws: FileError.self) {
            try export(isNameless: isNameless, replaces: replaces).run(
                from: source, length: film.size, isHeld: { false }
            ) { _ in true }
        }
        #expect(error?.description == "the proxy ended meanwhile: try again")
        #expect(try names == (replaces ? ["source", "target"] : ["source"]))
        if replaces { #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data("old".utf8)) }
    }

    @Test(arguments: [true, false]) func aPrivateFileStaysPrivate(isNameless: Bool) throws {
        #expect(
            FileManager.default.createFile(
                atPath: target, contents: Data("old".utf8), attributes: [.posixPermissions: 0o600]))
        _ = try export(isNameless: isNameless, replaces: true).run(from: source, length: film.size) { _ in true }
        #expect(try difference == nil)
        #expect(try FileManager.default.attributesOfItem(atPath: target)[.posixPermissions] as? Int == 0o600)
    }

    /// Also behind a link, such as /dev/stdout.
    @Test func onlyAFileIsReplaced() throws {
        let (pipe, link) = (directory.file("pipe"), directory.file("link"))
        #expect(mkfifo(pipe, 0o600) == 0 && symlink(pipe, link) == 0)
        for place in [pipe, link, "/dev/null"] {
            let error = #expect(throws: FileError.self) { try FileExport(to: place, replaces: true) }
            #expect(error?.description.contains(place) == true)
        }
        let dangling = directory.file("dangling")
        #expect(symlink(directory.file("nothing"), dangling) == 0)
        _ = try FileExport(to: dangling, replaces: true).run(from: source, length: film.size) { _ in true }
        #expect(try names == ["dangling", "link", "pipe", "source"])
    }

    @Test(arguments: [true, false]) func namesAreAsLongAsTheFileSystemLetsThemBe(isNameless: Bool) throws {
        let name = String(repeating: "映", count: 85)
        try Data("old".utf8).write(to: URL(fileURLWithPath: directory.file(name)))
        var export = try FileExport(to: directory.file(name), replaces: true)
        export.isNameless = isNameless
        _ = try export.run(from: source, length: film.size) { _ in true }
        #expect(try names == ["source", name].sorted())
        #expect(throws: FileError.self) { try FileExport(to: directory.file(name + "x"), replaces: true) }
    }

    @Test func aNameOfOneCharacterIsOne() throws {
        for name in ["x", "映"] { _ = try FileExport(to: name, replaces: true) }
    }

    @Test func aNameThatEndsAsADirectoryIsNone() throws {
        let error = #expect(throws: FileError.self) {
            try FileExport(to: directory.file("new/"), replaces: true)
        }
        #expect(error?.description == "\(directory.file("new/")) is a directory: name a file in it")
    }

    @Test(arguments: [true, false]) func aSourceThatIsTooShortIsNoFile(isNameless: Bool) throws {
        #expect(throws: FileError.self) {
            try export(isNameless: isNameless).run(from: source, length: film.size + 100) { _ in true }
        }
        #expect(try names == ["source"])
    }
}
