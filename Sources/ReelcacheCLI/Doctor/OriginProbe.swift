import CachePolicy
import EventIO
import Foundation
import HTTPModel
import Reelcache
import Synchronization
import Upstream

/// Sends one request as the proxy would, with its redirects, its certificates and its address policy.
struct OriginProbe {
    private let settings: UpstreamSettings
    private let outgoing: OutgoingProxy?

    /// The time limit for the whole request, in seconds.
    private static let patience = 15.0

    /// - Parameter outgoing: the proxy through which origins are reached; nil to reach what is requested directly.
    init(_ configuration: ProxyConfiguration, through outgoing: OutgoingProxy?) {
        self.outgoing = outgoing
        settings = UpstreamSettings(
            connectTimeout: min(10, Double(configuration.connectTimeout.components.seconds)),
            caFile: configuration.certificateFile, userAgent: "reelcache/\(Proxy.version)")
    }

    /// Requests the first byte. Blocks.
    func request(_ url: String, fields: HeaderFields = HeaderFields(), policy: AddressPolicy) -> AnswerFacts {
        guard let loop = try? EventLoop() else { return .failed(.outOfDescriptors(host: url)) }
        do throws(EventLoopError) { try loop.start() } catch {
            return .failed(.cannotConnect(host: url, detail: "\(error)"))
        }
        defer { loop.stop() }
        let answer = ProbeAnswer(url)
        let (settings, outgoing) = (settings, outgoing)
        let client = loop.sync {
            let client = UpstreamClient(
                loop: loop, policy: Current(policy), settings: settings, outgoing: Current(outgoing))
            var request = UpstreamRequest(url: url, span: .bounded(0..<1), fields: fields)
            request.confined = fields.lines.map(\.name)
            let transfer = client.start(request, delegate: answer.delegate)
            return LoopBound((client, transfer), on: loop)
        }
        let facts = answer.wait(seconds: Self.patience)
        loop.sync {
            client.value.1.cancel()
            client.value.0.shutdown()
        }
        return facts ?? .failed(.timedOut(host: URLComponents(string: url)?.host ?? url, phase: .response))
    }
}

/// The first result of a transfer: a head, or an error.
private final class ProbeAnswer: Sendable {
    private let facts = Mutex<AnswerFacts?>(nil)
    private let bell = DispatchSemaphore(value: 0)
    /// The requested URL.
    let url: String

    init(_ url: String) { self.url = url }

    var delegate: Delegate { Delegate(self) }

    func note(_ new: AnswerFacts) {
        let isFirst = facts.withLock { facts in
            defer { facts = facts ?? new }
            return facts == nil
        }
        if isFirst { bell.signal() }
    }

    func wait(seconds: Double) -> AnswerFacts? {
        _ = bell.wait(timeout: .now() + seconds)
        return facts.withLock { $0 }
    }

    /// Loop-bound.
    final class Delegate: TransferDelegate {
        private let answer: ProbeAnswer

        init(_ answer: ProbeAnswer) { self.answer = answer }

        func transfer(_ transfer: Transfer, receivedHead head: UpstreamHead) {
            answer.note(.head(AnswerHead(head, of: answer.url)))
        }

        func transfer(_ transfer: Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool { true }

        func transfer(_ transfer: Transfer, finishedWith error: UpstreamError?) {
            answer.note(.failed(error ?? .broken(detail: "no response")))
        }
    }
}

extension AnswerHead {
    init(_ head: UpstreamHead, of url: String) {
        status = head.status
        hasRanges = head.status == 206 && head.contentRange != nil
        let tag = head.fields["ETag"]
        hasValidator = tag.map { !$0.hasPrefix("W/") } ?? false || head.fields["Last-Modified"] != nil
        length = head.status == 206 ? head.contentRange?.total : head.contentLength
        type = head.fields["Content-Type"]
        date = head.fields["Date"].flatMap(HTTPDate.parse)
        movedTo = head.finalURL == url ? nil : (try? OriginURL(url: head.finalURL))?.host
    }
}
