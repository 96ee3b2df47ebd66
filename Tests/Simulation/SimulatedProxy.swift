import Activity
import CacheFill
import CachePolicy
import DiskCache
import EventIO
import Glibc
import HTTPModel
@testable import HTTPTransport
import Logging
import MediaProxy
import Presentations
import Upstream

/// The product, from the client's socket to the file, on a schedule: all of it is real but the threads, the time, the
/// dice, the listener and the origin.
final class SimulatedProxy {
    let store: CacheStore
    let metrics = ProxyMetrics()
    let policy = Current(ProxyPolicy())
    private let schedule: Schedule
    private let loops: [EventLoop]
    let filler: CacheFiller
    let fillers: [LoopFiller]
    private let servers: [LoopServer]
    private let balance: ConnectionBalance

    /// What any request that is not for media gets.
    private final class NoControl: RequestHandler {
        func handle(_ exchange: Exchange) { exchange.respond(404, text: "no such page") }
    }

    init(
        _ schedule: Schedule, _ origin: SimulatedOrigin, loops: [EventLoop], in directory: String, maxSize: Int64,
        openFiles: Int
    ) throws {
        self.schedule = schedule
        self.loops = loops
        var configuration = StoreConfiguration(directory: directory)
        configuration.maxSize = maxSize
        configuration.minFree = 0
        configuration.geometry = ChunkGeometry(chunkSize: 16 << 10)!
        configuration.driver = schedule
        let metrics = metrics, logger = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        let store = try CacheStore(configuration, metrics: metrics, logger: logger)
        self.store = store
        var settings = FillSettings()
        settings.clock = { schedule.now }
        settings.random = { schedule.unit() }
        let filler = CacheFiller(
            store: store, settings: settings, policy: policy, capacity: openFiles, metrics: metrics, logger: logger
        ) { Int64(schedule.now / 1_000_000_000) }
        self.filler = filler
        let mount = Mount(path: "/mount/", origin: try OriginURL(url: "http://origin.test/"))
        policy.change { $0.mounts = [mount] }
        let addresses = Current(try AddressPolicy(allow: []))
        fillers = loops.map { loop in
            loop.drive {
                let client = UpstreamClient(loop: loop, policy: addresses)
                client.simulated = { origin.begin($0, $1, on: loop) }
                return LoopFiller(filler, upstream: client, loop: loop)
            }
        }
        let shelf = PlaylistShelf(), balance = ConnectionBalance(loops: loops)
        let ahead = SegmentAhead(shelf, nanoseconds: { schedule.now })
        let next = NextItems(shelf.feeds, nanoseconds: { schedule.now })
        let (table, probes, policy) = (ClientLedger.SharedClients(), ProbeLedger.SharedProbes(), policy)
        servers = zip(loops, fillers).map { loop, loopFiller in
            loop.drive {
                let server = LoopServer(
                    loop: loop, listeningSocket: nil, limits: TransportLimits(), clients: ClientRules(), table: table,
                    probes: probes, metrics: metrics, balance: balance,
                    handler: MediaHandler(
                        ProxyLoop(
                            loopFiller, shelf: shelf, ahead: ahead, next: next, policy: policy, addresses: addresses,
                            via: Via(pseudonym: "simulated"), hosts: HostPolicy(names: [])),
                        plays: LoopPlays(shelf), control: NoControl()),
                    recorder: nil)
                balance.register(server)
                return server
            }
        }
        self.balance = balance
    }

    /// A new connection, served by a loop.
    /// - Returns: the client's end: non-blocking, to be closed by the caller.
    func connect(to loop: Int) throws -> Int32 {
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair) == 0 else {
            throw Violation("no socket: \(errno)")
        }
        balance.keep(on: loop)
        let socket = AcceptedSocket(pair[1], peer: IPEndpoint(IPAddress(v4: 0x7F00_0001), port: 1))
        loops[loop].drive { servers[loop].adopt(socket) }
        return pair[0]
    }

    /// Makes all that is present durable.
    func save() throws { try store.commit([], partsOf: CacheKey(text: "none")) }

    /// The bytes that the index has of each resource.
    func savedBytes() throws -> [String: Int64] {
        let resources = try store.resources(ResourceQuery()).resources
        return Dictionary(uniqueKeysWithValues: resources.map { ($0.urlText, $0.cachedBytes) })
    }

    func remove(_ url: String) throws { _ = try store.remove(CacheKey(text: url), isDryRun: false) }

    /// Ends all transfers and closes the cache, as `CacheEngine.shutDown` does.
    func close() throws {
        for (loop, filler) in zip(loops, fillers) { loop.drive { filler.shutdown() } }
        store.endThreads()
        try schedule.run(seconds: 0)
        filler.closeAll()
        balance.clear()
        schedule.endTicks()
        try store.close()
        schedule.forgetWork()
    }
}

/// What must not be.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
