import CachePolicy
import Foundation
import GRDB
import HTTPModel

@testable import Configuration
@testable import ControlAPI
@testable import DiskCache
@testable import Downloads
@testable import Upstream

extension FuzzTarget {
    static let documents = [
        FuzzTarget(
            name: "configuration",
            seeds: [
                "max_size: 100GB\nallow: [nas.local, 192.168.1.0/24]\nrules:\n- host: \"*.cdn.example\"\n  key: https://cdn.example{path}\n  ttl: 30d\n",
                "mounts: {/tv/: https://origin.example/vod/}\nfill: ahead 32MiB\nlinger: 5s\nthreads: 4\noffline: yes\n",
                "a: &b [*b]\n? {}\n: |\n  x\n",
                "rules:\n- {path: [/a, '*.mp4'], headers: {X-Key: a}, ignore_query: [a, b*], max_object: 2GB, fill: whole, pin: true, bypass: false}\n",
            ],
            run: configuration),
        FuzzTarget(
            name: "json",
            seeds: [
                "{\"pinned\": true}",
                "{\"former\":[{\"generation\":1,\"present\":[0,65536],\"hits\":1,\"isPinned\":false}],\"key\":\"a\",\"wasPinned\":false}",
                "[[[[[[]]]]]]", "{\"max_active\": 1e400}",
            ],
            run: json),
        FuzzTarget(
            name: "resolver-output",
            seeds: [
                "https://cdn.example/film.mp4?expire=1800000100&sig=a\n",
                "{\"url\": \"https://cdn.example/a\", \"http_headers\": {\"User-Agent\": \"x\"}, \"expires\": 1e300, \"title\": \"a/b\", \"ext\": \"mp4\"}",
                "{\"url\": \"http://a/\", \"expires_in\": \"-9e18\", \"key\": \"\\u0000\"}\n{",
                "{\"requested_formats\": []}",
            ],
            run: resolverOutput),
        FuzzTarget(
            name: "download-rows", seeds: ["0123456789abcdef0123456789abcdef", "\u{1}\u{2}\u{3}\u{4}"],
            run: downloadRows),
        FuzzTarget(
            name: "index-rows", seeds: ["0123456789abcdef0123456789abcdef", "\u{1}\u{2}\u{3}\u{4}"], run: indexRows),
    ]

    private static func configuration(_ input: [UInt8]) throws {
        var settings = Settings()
        let problems = ConfigurationFile(path: "fuzzed.yaml", text: input).apply(to: &settings)
        for problem in problems { try hold(!problem.message.isEmpty, "a problem without a word") }
        // What is wrong changes nothing that was right.
        guard problems.isEmpty else { return }
        try hold(settings.proxy.maxSize >= 0 && settings.proxy.minFree >= 0, "sizes below 0")
        _ = SettingReport.all(settings)
    }

    private static func resolverOutput(_ input: [UInt8]) throws {
        switch Result(catching: { () throws(ResolverOutput.Problem) in
            try ResolverOutput.read(input, at: 1_800_000_000)
        }) {
        case .success(let location):
            for line in location.headers.lines {
                try hold(line.value.utf8.allSatisfy { $0 >= 0x20 || $0 == 0x09 }, "a line end in \(line.name)")
            }
            try hold(location.fileName.map { !$0.isEmpty && !$0.contains("/") } ?? true, "a path as a name")
        case .failure(let problem):
            try hold(!problem.reason.isEmpty && !problem.reason.contains("\n"), "a problem without a line")
        }
    }

    private static func json(_ input: [UInt8]) throws {
        _ = try? ReceivedJSON.decode(ResourceChange.self, from: input)
        _ = try? ControlJSON.decode(DownloadList.self, from: input)
        _ = try? JSONDecoder().decode(RestorePoint.self, from: Data(input))
    }

    /// A table of downloads with any values in it becomes a queue, or rows that are left out.
    private static func downloadRows(_ input: [UInt8]) throws {
        var rest = input[...]
        func byte() -> Int { rest.popFirst().map(Int.init) ?? 0 }
        var saved: [DownloadJob] = []
        for row in 0..<4 {
            var values: [String: (any DatabaseValueConvertible)?] = usualRow(Int64(row + 1))
            for _ in 0..<byte() % 6 {
                values[DownloadJob.columns.map(\.name)[byte() % DownloadJob.columns.map(\.name).count]] = value(
                    byte(), byte())
            }
            if let job = try? DownloadJob(StoredRow(Row(values))) { saved.append(job) }
        }
        var queue = DownloadQueue(
            settings: DownloadSettings(), restoring: saved, nextID: saved.map(\.id).max() ?? 1, now: 1e9, monotonic: 5)
        _ = queue.summary
        _ = queue.begin(now: 1e9)
        queue.wake(now: 1e9, monotonic: 1e6)
        for job in saved {
            _ = job.report
            if let stored = queue[job.id], !stored.state.hasEnded { queue.end(stored, as: .completed, now: 1e9) }
        }
        _ = queue.summary
        _ = queue.surplusEndedIDs
    }

    /// A generation and an extent of it with any values, as the index reads them.
    private static func indexRows(_ input: [UInt8]) throws {
        var rest = input[...]
        func byte() -> Int { rest.popFirst().map(Int.init) ?? 0 }
        var generation: [String: (any DatabaseValueConvertible)?] = [
            "id": 70000, "key": "https://example.org/a", "length": 1_000_000, "chunk_size": 65536, "overhead": 4096,
            "stored_at": 1_000_000_000,
            "validated_at": 1_000_000_000, "initial_age": 0, "status": 200, "final_url": "https://example.org/a",
            "is_public": 1,
            "fields": "[[\"ETag\",\"\\\"a\\\"\"]]", "selecting": "[]",
        ]
        var extent: [String: (any DatabaseValueConvertible)?] = [
            "ordinal": 0, "present": -1, "last_access": 0, "session": 1, "checksums": Data(count: 128),
        ]
        let columns = generation.keys.sorted(), extentColumns = extent.keys.sorted()
        for _ in 0..<byte() % 4 { generation[columns[byte() % columns.count]] = value(byte(), byte()) }
        for _ in 0..<byte() % 4 { extent[extentColumns[byte() % extentColumns.count]] = value(byte(), byte()) }
        guard let row = try? IndexRows.generationRow(StoredRow(Row(generation))) else { return }
        try hold((0...ChunkGeometry.longestBody).contains(row.length), "a length of \(row.length)")
        try useHead(row.head.fields, status: row.head.status)
        guard let part = try? IndexRows.extentRow(StoredRow(Row(extent)), row) else { return }
        let bytes = row.geometry.bodyBytes(of: part.present, inExtent: part.ordinal, length: row.length)
        try hold((0...row.length).contains(bytes), "\(bytes) bytes of \(row.length)")
    }

    private static func usualRow(_ id: Int64) -> [String: (any DatabaseValueConvertible)?] {
        [
            "id": id, "url": "https://example.org/\(id)", "first": nil, "priority": "normal", "connections": 1,
            "limit_rate": nil, "category": nil,
            "pinned": true, "state": "waiting", "place": Double(id), "ended": nil, "bytes": 0, "total": 1000,
            "file_name": nil, "network_failures": 0,
            "busy_failures": 0, "retry_at": nil, "added": 1e9, "started": nil, "finished": nil, "message": nil,
            "key": nil, "claim": nil,
        ]
    }

    private static func value(_ kind: Int, _ choice: Int) -> (any DatabaseValueConvertible)? {
        switch kind % 8 {
        case 0: Int64.edges[choice % Int64.edges.count]
        case 1: [0.5, 1e308, -1e308, .infinity, -.infinity, 1e18, -0.0, 9.3e18][choice % 8]
        case 2: ["completed", "failed", "downloading", "paused", "cancelled", "waiting", "high", ""][choice % 8]
        case 3: Data([UInt8(choice & 0xFF), 0, 255])
        case 4:
            [
                "{\"former\":[{\"generation\":1,\"present\":[-9223372036854775808,9223372036854775807],\"hits\":1,\"isPinned\":false}],\"key\":\"a\",\"wasPinned\":true}",
                "{}",
            ][choice % 2]
        case 5: nil
        case 6: Int64(choice)
        default: String(repeating: "x", count: choice)
        }
    }
}
