import Administration
import Foundation
import TestSupport
import Testing

/// Whether or not the file system has files without names.
@Suite struct FilePlacementTests {
    private let directory: TemporaryDirectory
    private let cache: TemporaryDirectory
    private let film = Media(seed: 104, size: 2_500_000)
    private let name = SafeFileName("film.mp4", url: "http://a/x")

    init() throws {
        (directory, cache) = (try TemporaryDirectory(), try TemporaryDirectory())
        // A cached file may be longer than its resource.
        try Data(film.allBytes + [1, 2, 3]).write(to: URL(fileURLWithPath: cache.file("source")))
    }

    private var source: String { cache.file("source") }

    private func placement(isNameless: Bool) throws -> FilePlacement {
        var placement = try FilePlacement(directory: directory.path + (isNameless ? "" : "/"))
        placement.isNameless = isNameless
        return placement
    }

    private func write(_ bytes: [UInt8], _ name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: directory.file(name)))
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
    }

    private func difference(_ name: String) throws -> String? {
        film.difference([UInt8](try Data(contentsOf: URL(fileURLWithPath: directory.file(name)))), from: 0..<film.size)
    }

    @Test(arguments: [true, false]) func aFileIsPlacedUnderItsName(isNameless: Bool) throws {
        let placed = try placement(isNameless: isNameless).place(source, length: film.size, as: name) { _ in true }
        #expect(placed.path == directory.file("film.mp4") && placed.bytes == film.size && placed.method != nil)
        #expect(try names == ["film.mp4"] && difference("film.mp4") == nil)
    }

    @Test func aFileHasANameThatItsFileSystemHas() throws {
        var placement = try placement(isNameless: false)
        let name = SafeFileName(nil, url: "http://a/x%3Ay%3F.mp4")
        placement.rule = FileNameRule(owner: "exFAT", isEnforced: true)
        _ = try placement.place(source, length: film.size, as: name) { _ in true }
        placement.rule = nil
        _ = try placement.place(source, length: film.size, as: name) { _ in true }
        #expect(try names == ["x-y.mp4", "x:y?.mp4"])
    }

    @Test(arguments: [true, false]) func otherFilesStayAsTheyAre(isNameless: Bool) throws {
        try write([1, 2, 3], "film.mp4")
        var other = film.allBytes
        other[2_400_000] ^= 1
        try write(other, "film (2).mp4")
        try FileManager.default.createSymbolicLink(
            atPath: directory.file("film (3).mp4"), withDestinationPath: directory.file("none"))
        try FileManager.default.createDirectory(
            atPath: directory.file("film (4).mp4"), withIntermediateDirectories: false)
        let placed = try placement(isNameless: isNameless).place(source, length: film.size, as: name) { _ in true }
        #expect(placed.path == directory.file("film (5).mp4") && placed.method != nil)
        #expect(
            try names == ["film (2).mp4", "film (3).mp4", "film (4).mp4", "film (5).mp4", "film.mp4"]
                && difference("film (5).mp4") == nil)
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.file("film.mp4"))) == Data([1, 2, 3]))
    }

    @Test(arguments: ["film.mp4", "film (2).mp4"]) func theSameContentIsThereAlready(which: String) throws {
        if which != "film.mp4" { try write([1], "film.mp4") }
        try write(film.allBytes, which)
        let placed = try placement(isNameless: true).place(source, length: film.size, as: name) { _ in true }
        #expect(placed.path == directory.file(which) && placed.method == nil)
        #expect(try names.count == (which == "film.mp4" ? 1 : 2))
    }

    @Test(arguments: [true, false]) func whatIsInterruptedLeavesNothing(isThere: Bool) throws {
        if isThere { try write(film.allBytes, "film.mp4") }
        #expect(throws: FileError.self) {
            try placement(isNameless: true).place(source, length: film.size, as: name) { _ in false }
        }
        #expect(throws: FileError.self) {
            try placement(isNameless: true).place(source, length: film.size, as: name, isHeld: { false }) { _ in true }
        }
        #expect(try names == (isThere ? ["film.mp4"] : []))
    }

    @Test func directoryThatIsMissingIsMade() throws {
        let place = directory.file("new/shows")
        _ = try FilePlacement(directory: place)
        var isDirectory: ObjCBool = false
        #expect(FileManager.default.fileExists(atPath: place, isDirectory: &isDirectory) && isDirectory.boolValue)
    }

    @Test func aDirectoryThatTakesNoFilesIsNamed() throws {
        try write([1], "file")
        for place in [directory.file("file"), directory.file("file/x"), directory.file("file/x/y")] {
            let error = #expect(throws: FileError.self) { try FilePlacement(directory: place) }
            #expect(error?.description.contains(place) == true)
        }
    }
}
