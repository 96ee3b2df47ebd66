// swift-tools-version: 6.1
import PackageDescription

/// The commit that `reelcache --version` names, as `scripts/build-release` determines it. SwiftPM's own
/// `Context.gitInformation` is not used: it keeps the commit of the first build, because it is not part of the key
/// under which SwiftPM caches what a manifest says.
let commit = Context.environment["REELCACHE_COMMIT"].flatMap { $0.isEmpty ? nil : $0 }

/// Debian packages that the system libraries below come from; `scripts/setup` installs what is missing.
let package = Package(
    name: "reelcache",
    // Reelcache is for Linux alone (Sources/Reelcache/Proxy.swift says so to a compiler). What is named here is what its
    // dependencies ask for: without it SwiftPM refuses the package, on whatever system.
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "reelcache", targets: ["ReelcacheCLI"]),
        .library(name: "Reelcache", targets: ["Reelcache"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.0.0"),
    ],
    targets: [
        // System libraries
        .systemLibrary(
            name: "CEvent", path: "CEvent", pkgConfig: "libevent_pthreads", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(name: "CXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),

        // Pure values and decisions
        .target(
            name: "HTTPModel",
            dependencies: [
                .product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers")
            ]),
        .target(name: "CachePolicy", dependencies: ["CIDN2", "CXXHash", "HTTPModel"]),
        .target(name: "Playlists", dependencies: ["CExpat", "CachePolicy", "HTTPModel"]),
        .target(name: "Activity", dependencies: ["CXXHash", "CachePolicy", "HTTPModel"]),

        // Mechanisms
        .target(name: "EventIO", dependencies: ["CEvent", "CLinux", "HTTPModel"]),
        .target(name: "HTTPTransport", dependencies: ["Activity", "CLinux", "CachePolicy", "EventIO", "HTTPModel"]),
        .target(
            name: "Upstream",
            dependencies: [
                "Activity", "CCurl", "CLinux", "CXXHash", "CachePolicy", "EventIO", "HTTPModel",
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "DiskCache",
            dependencies: [
                "Activity", "CLinux", "CXXHash", "CachePolicy", "HTTPModel",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]),

        // What joins them
        .target(
            name: "CacheFill",
            dependencies: [
                "Activity", "CachePolicy", "DiskCache", "EventIO", "HTTPModel", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "Presentations",
            dependencies: [
                "Activity", "CXXHash", "CZlib", "CacheFill", "CachePolicy", "DiskCache", "EventIO", "HTTPModel",
                "Playlists", .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "Downloads",
            dependencies: [
                "CacheFill", "CachePolicy", "DiskCache", "EventIO", "HTTPModel", "Playlists", "Presentations",
                "Upstream", .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "MediaProxy",
            dependencies: [
                "Activity", "CacheFill", "CachePolicy", "DiskCache", "EventIO", "HTTPModel", "HTTPTransport",
                "Playlists", "Presentations", "Upstream", .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "ControlAPI",
            dependencies: ["Activity", "CachePolicy", "DiskCache", "Downloads", "HTTPModel", "Playlists"]),
        .target(name: "CDashboard", exclude: ["page"]),
        .target(
            name: "Reelcache",
            dependencies: [
                "Activity", "CDashboard", "CLinux", "CacheFill", "CachePolicy", "ControlAPI", "DiskCache", "Downloads",
                "EventIO", "HTTPModel", "HTTPTransport", "MediaProxy", "Playlists", "Presentations", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ]),

        // What the command line needs besides
        .target(name: "CBuild", cSettings: commit.map { [.define("REELCACHE_COMMIT", to: $0)] } ?? []),
        .target(
            name: "Configuration",
            dependencies: [
                "CachePolicy", "DiskCache", "HTTPModel", "HTTPTransport", "Reelcache",
                .product(name: "Logging", package: "swift-log"), .product(name: "Yams", package: "Yams"),
            ]),
        .target(
            name: "Administration",
            dependencies: [
                "Activity", "CLinux", "CachePolicy", "ControlAPI", "DiskCache", "Downloads", "EventIO", "HTTPModel",
                "Presentations", "Reelcache", "Upstream", .product(name: "Logging", package: "swift-log"),
            ]),
        .executableTarget(
            name: "ReelcacheCLI",
            dependencies: [
                "Activity", "Administration", "CBuild", "CCurl", "CEvent", "CExpat", "CIDN2", "CLinux", "CXXHash",
                "CZlib", "CachePolicy", "Configuration", "ControlAPI", "DiskCache", "Downloads", "EventIO",
                "HTTPModel", "HTTPTransport", "Playlists", "Reelcache", "Upstream",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),

        // What a program of one's own looks like
        .executableTarget(
            name: "EmbeddingExample",
            dependencies: ["Reelcache", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Examples/Embedding"),
        .executableTarget(
            name: "ShortExample", dependencies: ["Reelcache"], path: "Examples/Short", exclude: ["Package.swift"]),

        // Tests
        .target(
            name: "TestSupport", dependencies: ["Activity", "CLinux", .product(name: "Logging", package: "swift-log")],
            path: "Tests/TestSupport"),
        .target(
            name: "FillTestSupport",
            dependencies: [
                "Activity", "CacheFill", "CachePolicy", "DiskCache", "EventIO", "HTTPModel", "TestSupport", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ], path: "Tests/FillTestSupport"),
        .testTarget(name: "HTTPModelTests", dependencies: ["HTTPModel", "TestSupport"]),
        .testTarget(name: "CachePolicyTests", dependencies: ["CachePolicy", "HTTPModel", "TestSupport"]),
        .testTarget(name: "ActivityTests", dependencies: ["Activity", "CachePolicy", "TestSupport"]),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: [
                "Configuration", "Reelcache", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "AdministrationTests",
            dependencies: [
                "Administration", "CachePolicy", "ControlAPI", "Reelcache", "TestSupport",
            ]),
        .testTarget(
            name: "PlaylistsTests",
            dependencies: [
                "CachePolicy", "HTTPModel", "Playlists", "Presentations", "TestSupport",
            ]),
        .testTarget(
            name: "PresentationsTests",
            dependencies: [
                "Activity", "CLinux", "CacheFill", "CachePolicy", "DiskCache", "FillTestSupport", "HTTPModel",
                "Playlists", "Presentations", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "CacheFillTests",
            dependencies: [
                "Activity", "CacheFill", "CachePolicy", "DiskCache", "EventIO", "FillTestSupport", "HTTPModel",
                "TestSupport", "Upstream", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "DownloadsTests",
            dependencies: [
                "CachePolicy", "Downloads", "HTTPModel", "Playlists", "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "UpstreamTests",
            dependencies: [
                "CachePolicy", "EventIO", "HTTPModel", "TestSupport", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "DiskCacheTests",
            dependencies: [
                "Activity", "CachePolicy", "DiskCache", "HTTPModel", "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "HTTPTransportTests",
            dependencies: [
                "Activity", "CachePolicy", "EventIO", "HTTPModel", "HTTPTransport", "TestSupport",
            ]),
        .testTarget(
            name: "ScenarioTests",
            dependencies: [
                "Activity", "Administration", "CacheFill", "CachePolicy", "ControlAPI", "DiskCache", "Downloads",
                "EventIO", "HTTPModel", "HTTPTransport", "Playlists", "Reelcache", "TestSupport", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "ReelcacheTests",
            dependencies: [
                "Activity", "CachePolicy", "DiskCache", "Downloads", "EventIO", "HTTPModel", "HTTPTransport",
                "Reelcache", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "Activity", "Administration", "CachePolicy", "Configuration", "ControlAPI", "Downloads", "Reelcache",
                "ReelcacheCLI", "TestSupport", "Upstream", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "Activity", "CacheFill", "CachePolicy", "DiskCache", "Downloads", "EventIO", "HTTPModel",
                "HTTPTransport",
                "MediaProxy", "Presentations", "TestSupport", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ], path: "Tests/Simulation",
            exclude: ["Past", "Safeguards", "simulate"],
            // SQLite finds the simulated disk's.
            linkerSettings: [.unsafeFlags(["-Xlinker", "--export-dynamic-symbol=fdatasync"])]),
        .testTarget(name: "CommandTests", dependencies: ["TestSupport"]),
        .testTarget(
            name: "DurabilityTests",
            dependencies: [
                "CLinux", "TestSupport", .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        .testTarget(name: "PlayerTests", dependencies: ["TestSupport"]),
        // The programs in `World` are run by the tests, and read from where they are.
        .testTarget(name: "GuideTests", dependencies: ["TestSupport"], exclude: ["World"]),
    ]
)

// What reads bytes that others wrote, under fire: a test of a few seconds, or a program for libFuzzer where
// scripts/fuzz builds it.
let fuzzed: [Target.Dependency] = [
    "Activity", "HTTPModel", "CachePolicy", "Playlists", "Upstream", "DiskCache", "Configuration", "ControlAPI",
    "Downloads",
    "TestSupport",
    .product(name: "GRDB", package: "GRDB.swift"),
]
package.targets.append(
    Context.environment["REELCACHE_LIBFUZZER"] == nil
        ? .testTarget(
            name: "FuzzTests", dependencies: fuzzed, path: "Tests/Fuzz", exclude: ["Corpus", "LibFuzzer.swift"])
        : .executableTarget(
            name: "Fuzz", dependencies: fuzzed, path: "Tests/Fuzz", exclude: ["Corpus", "FuzzTests.swift"],
            swiftSettings: [.unsafeFlags(["-parse-as-library"])]))

// Some of the tests without the rest, where these cannot run or would take too long to build (scripts/test --sanitize).
if let wanted = Context.environment["REELCACHE_TESTS"]?.split(separator: ",") {
    package.targets.removeAll { target in target.isTest && !wanted.contains { $0 == target.name } }
}
