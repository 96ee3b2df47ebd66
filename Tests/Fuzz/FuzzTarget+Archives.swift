@testable import DiskCache

extension FuzzTarget {
    static let archives = [
        FuzzTarget(
            name: "archive",
            seeds: [
                "reelcache archive 1\n", "reelcache archive 2\nR", "reelcache archive 1\nR\u{1}\0\0\0{",
                "reelcache archive 1\nZ\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            ],
            run: archive),
        FuzzTarget(
            name: "archive-head",
            seeds: [
                """
                {"cached":4904,"chunk_size":4096,"downloaded":false,"fields":[["ETag","\\"v1\\""],["Content-Type","video/mp4"]],\
                "final_url":"https://cdn.example/a","generation":"0123456789abcdef","initial_age":7,"last_access":5,"length":9000,\
                "pinned":true,"present":[0,4096,8192,9000],"public":true,"selecting":[],"status":200,"stored_at":1700000000,\
                "url":"https://example.com/a","validated_at":1700000100,"whole":"https://example.com/a.m3u8"}
                """
            ],
            run: archiveHead),
    ]

    /// The same however its bytes were split, and nothing that did not come.
    private static func archive(_ input: [UInt8]) throws {
        let whole = read(input, step: max(1, input.count))
        for step in [1, 7] where input.count < 20_000 {
            let split = read(input, step: step)
            try hold(split.events == whole.events && split.error == whole.error, "another archive in pieces of \(step)")
        }
        try hold(whole.bytes <= input.count, "more chunks than there was input")
    }

    private static func read(_ input: [UInt8], step: Int) -> (events: [String], error: String?, bytes: Int) {
        let reader = ArchiveReader(now: 1_800_000_000_000_000)
        var (events, bytes): ([String], Int) = ([], 0)
        do throws(ArchiveError) {
            for start in stride(from: 0, to: input.count, by: step) {
                let taken = input[start..<min(input.count, start + step)].withUnsafeBytes { piece in
                    Result { () throws(ArchiveError) in
                        try reader.append(piece) { event throws(ArchiveError) in
                            switch event {
                            case .resource(let resource): events.append(resource.key.text)
                            case .chunk(let number, let time, let chunk):
                                events.append("\(number) \(time) \(chunk.count)")
                                bytes += chunk.count
                            case .endOfResource: events.append("end of resource")
                            case .end: events.append("end")
                            }
                        }
                    }
                }
                try taken.get()
            }
            try reader.finish()
            return (events, nil, bytes)
        } catch { return (events, "\(error)", bytes) }
    }

    /// What is valid stays so when it is written again.
    private static func archiveHead(_ input: [UInt8]) throws {
        guard let head = try? ArchiveHead(line: input) else { return }
        for now in [0, 1_800_000_000_000_000, Int64.max] {
            guard let resource = try? head.checked(now: now) else { continue }
            try hold(resource.lastAccess >= 0 && resource.lastAccess <= now, "a read in the future")
            try hold(0...resource.length ~= resource.cached, "more is cached than there is")
            try hold((resource.present ?? []).allSatisfy { $0.upperBound <= resource.length }, "a range beyond the end")
            let again = try ArchiveHead(line: head.line)
            try hold(again == head, "another head when it is written again")
        }
    }
}
