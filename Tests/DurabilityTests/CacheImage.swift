import Foundation
import GRDB
import TestSupport

/// Media under a path of the origin.
struct Film: Sendable {
    let path: String
    let media: Media
}

/// A cache directory that no proxy has open, looked at directly.
struct CacheImage {
    let directory: String

    /// A chunk that the index calls present.
    struct Chunk {
        let film: Film
        /// The file it should be in.
        let file: String
        let range: Range<Int64>
    }

    /// What was found by comparing chunks with the media.
    struct Findings {
        var chunks = 0
        /// One line for each chunk that is wrong.
        var wrong: [String] = []
        /// The first of them; nil where all are right.
        var fault: String? { wrong.first.map { "\(wrong.count) of \(chunks) chunks are wrong, the first: \($0)" } }
    }

    /// Copies a cache directory, holes as holes. SQLite's `-shm` is left out, as it holds nothing of its own.
    static func copy(of directory: String, to target: String) throws -> CacheImage {
        let files = FileManager.default
        try files.createDirectory(atPath: target, withIntermediateDirectories: true)
        for path in try files.subpathsOfDirectory(atPath: directory).sorted() where !path.hasSuffix("-shm") {
            var info = stat()
            guard lstat("\(directory)/\(path)", &info) == 0 else { throw SystemError("lstat \(path)") }
            if info.st_mode & S_IFMT == S_IFDIR {
                try files.createDirectory(atPath: "\(target)/\(path)", withIntermediateDirectories: true)
            } else {
                let descriptor = open("\(target)/\(path)", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
                guard descriptor >= 0 else { throw SystemError("open \(target)/\(path)") }
                defer { close(descriptor) }
                try copySparsely("\(directory)/\(path)", to: descriptor)
            }
        }
        return CacheImage(directory: target)
    }

    /// Compares each chunk that the index calls present with the media, on the disk and past all checksums.
    func compare(_ films: [Film]) throws -> Findings {
        var findings = Findings()
        for chunk in try presentChunks(of: films) {
            findings.chunks += 1
            if let difference = difference(chunk) {
                findings.wrong.append("\(chunk.film.path), \(chunk.range), in \(chunk.file): \(difference)")
            }
        }
        return findings
    }

    private func difference(_ chunk: Chunk) -> String? {
        let descriptor = open("\(directory)/\(chunk.file)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "\(SystemError("open"))" }
        defer { close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: chunk.range.count) { buffer, count in
            count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, off_t(chunk.range.lowerBound)))
        }
        return chunk.film.media.difference(bytes, from: chunk.range)
    }

    /// What the index says is there. The one place that knows the index's tables.
    func presentChunks(of films: [Film]) throws -> [Chunk] {
        try readIndex { db in
            guard try db.tableExists("extent") else { return [] }
            let sql = """
                SELECT r.key, g.id, g.length, g.chunk_size, e.ordinal, e.present
                FROM extent e JOIN generation g ON g.id = e.generation JOIN resource r ON r.id = g.resource
                """
            return try Row.fetchAll(db, sql: sql).flatMap { row in
                let (url, id, length, size): (String, Int64, Int64, Int64) = (row[0], row[1], row[2], row[3])
                let (ordinal, present): (Int64, UInt64) = (row[4], UInt64(bitPattern: row[5] as Int64))
                guard let film = films.first(where: { url.hasSuffix($0.path) }) else { throw UnknownFilm(url: url) }
                let name = String(format: "%016llx", id)
                return (0..<64).filter { present >> UInt64($0) & 1 == 1 }.map { bit in
                    let start = (ordinal * 64 + Int64(bit)) * size
                    return Chunk(
                        film: film, file: "data/\(name.prefix(2))/\(name)",
                        range: start..<min(start + size, max(length, start)))
                }
            }
        }
    }

    /// Reads a copy: to open an index is to change it.
    private func readIndex<Value>(_ body: (Database) throws -> Value) throws -> Value {
        let copy = try TemporaryDirectory()
        for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-journal"]
        where FileManager.default.fileExists(atPath: "\(directory)/\(name)") {
            try FileManager.default.copyItem(atPath: "\(directory)/\(name)", toPath: copy.file(name))
        }
        return try DatabaseQueue(path: copy.file("index.sqlite")).write(body)
    }

    private struct UnknownFilm: Error {
        let url: String
    }
}

extension [CacheImage.Chunk] {
    /// Present runs, joined.
    var runs: [(film: Film, range: Range<Int64>)] {
        var runs: [(film: Film, range: Range<Int64>)] = []
        for chunk in sorted(by: { ($0.film.path, $0.range.lowerBound) < ($1.film.path, $1.range.lowerBound) })
        where !chunk.range.isEmpty {
            if let last = runs.last, last.film.path == chunk.film.path, last.range.upperBound == chunk.range.lowerBound
            {
                runs[runs.count - 1].range = last.range.lowerBound..<chunk.range.upperBound
            } else {
                runs.append((chunk.film, chunk.range))
            }
        }
        return runs
    }
}
