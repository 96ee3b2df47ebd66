import CachePolicy
import ControlAPI
import Downloads
import Foundation
import Testing
import TestSupport

@testable import Reelcache

extension Stage {
    /// Where downloads are told, to tell of some that nobody has ordered.
    var snapshots: DownloadSnapshots { proxy.cache.downloader.manager.snapshots }

    /// Follows downloads.
    /// - Parameter query: with its `?`.
    func listener(
        _ query: String = "", headers: [(String, String)] = [], version: String = "1.1", receiveBuffer: Int? = nil
    ) throws -> EventListener {
        try listener(
            of: "/api/v1/downloads/events" + query, headers: headers, version: version, receiveBuffer: receiveBuffer)
    }

    /// Connects and listens.
    /// - Parameter target: the path of a stream of events, with its query.
    func listener(
        of target: String, headers: [(String, String)] = [], version: String = "1.1", receiveBuffer: Int? = nil
    ) throws -> EventListener {
        try EventListener(player(receiveBuffer: receiveBuffer), target, headers: headers, version: version)
    }
}

/// A client of a stream of events, such as `/api/v1/downloads/events`.
final class EventListener {
    /// One event, as it was sent.
    struct Event: Equatable {
        let name: String
        let id: String?
        let data: String

        func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
            try ControlJSON.decode(type, from: Array(data.utf8))
        }
    }

    let client: RawClient
    let head: RawClient.ResponseHead
    private var rest = ""
    private var events: [Event] = []

    init(_ client: RawClient, _ target: String, headers: [(String, String)], version: String) throws {
        self.client = client
        try client.send(client.request(target, headers: headers, version: version))
        head = try client.readHead()
    }

    /// The next one.
    func event() throws -> Event {
        while events.isEmpty { try read() }
        return events.removeFirst()
    }

    private func read() throws {
        let piece = try client.readBody(upTo: 1 << 20)
        guard !piece.isEmpty else { throw RawClient.ResponseError.truncated(received: 0, expected: nil) }
        rest += String(decoding: piece, as: UTF8.self)
        // By strstr, which debug builds need: in them a search in a String takes a thousand times as long.
        while let length = rest.withCString({ text in strstr(text, "\n\n").map { UnsafePointer($0) - text } }) {
            let block = String(Substring(rest.utf8.prefix(length)))
            rest = String(Substring(rest.utf8.dropFirst(length + 2)))
            guard !block.hasPrefix(":") else { continue }
            let fields = block.split(separator: "\n").map { $0.split(separator: ": ", maxSplits: 1).map(String.init) }
            let names = fields.map { $0[0] }
            #expect(names == ["event", "id", "data"] || names == ["event", "data"], "\(block)")
            events.append(
                Event(name: fields[0][1], id: names.count == 3 ? fields[1][1] : nil, data: fields[names.count - 1][1]))
        }
    }

    /// The next batch as short texts, such as `3 paused`, `-3` for one that is removed, and `summary`; and the number
    /// of its last event.
    func batch() throws -> (texts: [String], id: String) {
        var texts: [String] = []
        while true {
            let event = try event()
            switch event.name {
            case "download":
                let report = try event.decoded(Download.self)
                texts.append("\(report.id) \(report.state)")
            case "removed": texts.append("-\(try event.decoded(RemovedDownload.self).id)")
            default: texts.append(event.name)
            }
            if let id = event.id { return (texts, id) }
        }
    }
}

extension Download {
    /// One that nobody has ordered.
    static func sample(_ id: Int64, _ state: Download.State = .waiting, bytes: Int64 = 0) -> Download {
        var report = template
        (report.id, report.urlText, report.state, report.bytes) = (id, "https://example.org/\(id).mp4", state, bytes)
        return report
    }

    private static let template: Download = {
        let text = """
            {"id": 0, "url": "", "state": "waiting", "priority": "normal", "connections": 1, "is_pinned": true, "bytes": 0, "failures": 0, "added": 1}
            """
        do { return try ControlJSON.decode(Download.self, from: Array(text.utf8)) } catch {
            preconditionFailure("no report: \(error)")
        }
    }()
}

extension DownloadSnapshots {
    func post(_ reports: Download..., removed: [Int64] = [], waiting: Int = 0) {
        post(reports, removed: removed, waiting: waiting)
    }

    func post(_ reports: [Download], removed: [Int64] = [], waiting: Int = 0) {
        var summary = DownloadTotals()
        summary.waiting = waiting
        let entries = reports.compactMap { report in
            (try? OriginURL(url: report.urlText)).map {
                Entry(
                    report: report, url: $0, place: .init(group: 0, priority: .normal, order: Double(report.id)))
            }
        }
        post(entries, removed: removed, summary: summary)
    }
}
