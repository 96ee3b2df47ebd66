import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import Upstream

/// The proxy that serves a cache directory, as seen by other processes.
public struct RunningProxy: Sendable {
    /// The URL at which it can be reached.
    public let baseURL: String
    /// The ID of its process.
    public let processID: Int32
    /// The cache directory that it serves.
    public let cacheDirectory: String
    package var place: ProxyPlace
    /// How long each request of the control interface may take, in seconds; nil for work that waits for the disk.
    package var timeout: Double?
    /// Whether URLs in answers have their secrets, as a command needs to name them again.
    package var showsSecrets = true
    /// The proxy of this process; nil if there is none, or only its control interface.
    package private(set) var own: Proxy?

    /// Whether this process runs it, or its control interface, for one command alone.
    package let isOwn: Bool
    /// Whether another process runs it for one command, so that players can't rely on its address.
    package let isBrief: Bool
    /// Whether SIGHUP makes it read its configuration again. Others are ended by it.
    package let reloads: Bool
    /// The paths at which it looks for its configuration file; none if it was not started by `serve`.
    private let configurationFiles: [String]

    /// Finds the proxy of a cache directory; nil if none is running.
    public init?(cacheDirectory: String) {
        guard let owner = CacheOwner.current(of: cacheDirectory), !owner.url.isEmpty else { return nil }
        baseURL = owner.url
        place = ProxyPlace(url: owner.url)
        processID = owner.pid
        self.cacheDirectory = cacheDirectory
        (isOwn, isBrief, reloads) = (false, owner.isBrief ?? false, owner.reloads ?? false)
        configurationFiles = owner.configurationFiles ?? []
    }

    /// A proxy of this process, or its control interface alone.
    package init(own: Proxy?, baseURL: String, cacheDirectory: String, place: ProxyPlace) {
        (self.own, self.baseURL, self.cacheDirectory, self.place) = (own, baseURL, cacheDirectory, place)
        (processID, isOwn, isBrief, reloads, configurationFiles) = (getpid(), true, false, false, [])
    }

    /// The configuration file that it reads when it is told to; nil if it finds none.
    package var configurationFile: String? { configurationFiles.first { access($0, F_OK) == 0 } }

    /// Gets a path of its control interface, such as `/stats`. Blocks.
    /// - Throws: `ProxyError` if it does not answer, or not with 200.
    public func get(_ path: String) throws -> Data {
        do {
            var request = BlockingFetch(baseURL + path)
            request.timeout = 10
            // Required if the proxy listens beyond the loopback interface.
            if let token = try? ControlToken(of: cacheDirectory) {
                request.fields.append("Authorization", "Bearer \(token.text)")
            }
            let (status, body) = try request.bytes()
            guard status == 200 else {
                throw ProxyError.noAnswer("the proxy at \(baseURL) answers \(status) to \(path)")
            }
            return Data(body)
        } catch let error as ProxyError {
            throw error
        } catch {
            throw ProxyError.noAnswer("the proxy at \(baseURL) does not answer: \(error)")
        }
    }
}
