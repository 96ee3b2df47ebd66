import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// The cache's files are their owner's alone, also where the directory was there before.
@Suite struct PrivateFilesTests {
    private func mode(_ path: String) -> mode_t {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_mode & 0o7777 : 0
    }

    @Test func modesAreCorrectedAtTheStart() throws {
        let directory: TemporaryDirectory
        do {
            let opened = try OpenStore()
            _ = try opened.make("a", Media(seed: 1, size: 5000), filling: 0..<5000)
            #expect(try opened.store.setPinned(true, OpenStore.key("a")))
            try opened.close()
            directory = opened.directory
        }
        chmod(directory.path, 0o755)
        for name in ["index.sqlite", "pinned.sqlite", "unfinished", "LOCK"] { chmod(directory.file(name), 0o644) }
        chmod(directory.file("data"), 0o755)

        let opened = try OpenStore(directory)
        _ = try opened.make("b", Media(seed: 2, size: 5000), filling: 0..<5000)
        opened.checkpoint()

        #expect(mode(directory.path) == 0o700)
        #expect(mode(directory.file("data")) == 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) where name != "data" {
            #expect(mode(directory.file(name)) == 0o600, "\(name)")
        }
        for file in opened.dataFiles { #expect(mode(file) == 0o600) }
    }

    @Test func directoryWithOtherThingsStaysAsItIs() throws {
        let directory = try TemporaryDirectory()
        chmod(directory.path, 0o755)
        _ = FileManager.default.createFile(
            atPath: directory.file("holiday.jpg"), contents: Data(), attributes: [.posixPermissions: 0o644])
        let opened = try OpenStore(directory)
        #expect(mode(directory.path) == 0o755 && mode(directory.file("holiday.jpg")) == 0o644)
        #expect(mode(directory.file("index.sqlite")) == 0o600 && mode(directory.file("data")) == 0o700)
        try opened.close()
    }
}
