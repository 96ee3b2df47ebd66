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
        .target(name: "Units", dependencies: ["HTTPModel"]),
        .target(name: "CachePolicy", dependencies: ["CIDN2", "CXXHash", "HTTPModel", "Units"]),
        .target(name: "Playlists", dependencies: ["CExpat", "HTTPModel", "CachePolicy"]),
        .target(name: "Activity", dependencies: ["CachePolicy", "HTTPModel", "Metrics", "Units"]),

        // Mechanisms
        .target(name: "Metrics", dependencies: ["CXXHash"]),
        .target(name: "EventIO", dependencies: ["CEvent", "CLinux"]),
        .target(
            name: "HTTPTransport",
            dependencies: [
                "CLinux", "CachePolicy", "EventIO", "HTTPModel", "Metrics",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "Upstream",
            dependencies: [
                "CCurl", "EventIO", "HTTPModel", "CachePolicy", "Metrics",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "DiskCache",
            dependencies: [
                "Units",
                "CLinux", "CXXHash", "CachePolicy", "HTTPModel", "Metrics",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]),

        .target(
            name: "Locating",
            dependencies: [
                "CLinux", "CXXHash", "CachePolicy", "EventIO", "HTTPModel", "Metrics",
                .product(name: "Logging", package: "swift-log"),
            ]),

        // What joins them
        .target(
            name: "CacheFill",
            dependencies: [
                "Units",
                "Activity", "EventIO", "HTTPModel", "CachePolicy", "Locating", "Metrics", "Upstream", "DiskCache",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "Presentations",
            dependencies: [
                "Activity", "CXXHash", "CZlib", "CacheFill", "CachePolicy", "DiskCache", "EventIO", "HTTPModel",
                "Metrics",
                "Playlists",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "Downloads",
            dependencies: [
                "Units",
                "CachePolicy", "CacheFill", "DiskCache", "EventIO", "HTTPModel", "Presentations", "Playlists",
                "Upstream",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "Subscriptions",
            dependencies: [
                "Units",
                "CachePolicy", "CacheFill", "DiskCache", "Downloads", "EventIO", "HTTPModel", "Playlists",
                "Presentations", "Upstream",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),
        .target(
            name: "MediaProxy",
            dependencies: [
                "Activity", "EventIO", "HTTPModel", "CachePolicy", "Metrics", "HTTPTransport", "Upstream", "DiskCache",
                "CacheFill", "Playlists", "Presentations", .product(name: "Logging", package: "swift-log"),
            ]),
        .target(name: "CDashboard", exclude: ["page"]),
        .target(
            name: "ControlAPI",
            dependencies: [
                "CDashboard", "Activity", "Units", "EventIO", "HTTPModel", "CachePolicy", "Metrics", "HTTPTransport",
                "DiskCache", "Downloads", "Playlists", "Presentations", "Subscriptions",
            ]),
        .target(
            name: "Reelcache",
            dependencies: [
                "Units",
                "Activity", "CLinux", "EventIO", "HTTPModel", "CachePolicy", "Metrics", "HTTPTransport", "Upstream",
                "DiskCache", "CacheFill", "MediaProxy", "Playlists", "Presentations",
                "ControlAPI", "Downloads", "Subscriptions", .product(name: "Logging", package: "swift-log"),
            ]),

        // What the command line needs besides
        .target(name: "CBuild", cSettings: commit.map { [.define("REELCACHE_COMMIT", to: $0)] } ?? []),
        .target(name: "LocalFiles", dependencies: ["CLinux", "HTTPModel"]),
        .target(
            name: "TerminalText",
            dependencies: [
                "Activity", "CachePolicy", "Downloads", "HTTPModel", "LocalFiles", "Metrics", "Subscriptions", "Units",
            ]),
        .target(
            name: "Configuration",
            dependencies: [
                "CachePolicy", "DiskCache", "HTTPModel", "HTTPTransport", "Reelcache", "Units",
                .product(name: "Logging", package: "swift-log"), .product(name: "Yams", package: "Yams"),
            ]),
        .target(
            name: "Administration",
            dependencies: [
                "Activity", "CachePolicy", "ControlAPI", "DiskCache", "Downloads", "EventIO", "HTTPModel",
                "LocalFiles", "Metrics", "Presentations", "Reelcache", "Subscriptions", "Units", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .target(name: "Manual", dependencies: ["Configuration"]),
        .target(name: "Completion"),
        .target(
            name: "Doctor",
            dependencies: [
                "CLinux", "CachePolicy", "Configuration", "ControlAPI", "DiskCache", "EventIO", "HTTPModel",
                "HTTPTransport", "Locating", "Metrics", "Reelcache", "Units", "Upstream",
            ]),
        .executableTarget(
            name: "ReelcacheCLI",
            dependencies: [
                "Activity", "Administration", "Completion", "Configuration", "Doctor", "LocalFiles", "Manual",
                "TerminalText", "Units",
                "Reelcache", "ControlAPI", "DiskCache", "Downloads", "CachePolicy", "HTTPModel", "Metrics", "CLinux",
                "Playlists", "Subscriptions",
                "CBuild", "CCurl", "CEvent", "CExpat", "CIDN2", "CXXHash", "CZlib", "Upstream",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]),

        // What a program of one's own looks like
        .executableTarget(
            name: "EmbeddingExample",
            dependencies: ["Reelcache", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Examples/Embedding"),
        .executableTarget(
            name: "ShortExample", dependencies: ["Reelcache"], path: "Examples/Short", exclude: ["Package.swift"]),

        // Tests
        .target(name: "TestSupport", dependencies: ["CLinux", "Metrics"], path: "Tests/TestSupport"),
        .target(
            name: "FillTestSupport",
            dependencies: [
                "CacheFill", "CachePolicy", "DiskCache", "EventIO", "HTTPModel", "Metrics", "TestSupport", "Upstream",
                .product(name: "Logging", package: "swift-log"),
            ], path: "Tests/FillTestSupport"),
        .testTarget(name: "HTTPModelTests", dependencies: ["HTTPModel", "TestSupport"]),
        .testTarget(name: "CachePolicyTests", dependencies: ["CachePolicy", "HTTPModel", "TestSupport"]),
        .testTarget(name: "UnitsTests", dependencies: ["Units", "TestSupport"]),
        .testTarget(name: "ActivityTests", dependencies: ["Activity", "CachePolicy", "Metrics", "TestSupport"]),
        .testTarget(name: "LocalFilesTests", dependencies: ["LocalFiles", "TestSupport"]),
        .testTarget(
            name: "TerminalTextTests",
            dependencies: ["Activity", "Downloads", "Metrics", "TerminalText", "TestSupport"]),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: [
                "Configuration", "Reelcache", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(name: "ManualTests", dependencies: ["Configuration", "Manual", "TestSupport"]),
        .testTarget(
            name: "AdministrationTests",
            dependencies: ["Administration", "CachePolicy", "HTTPModel", "Reelcache", "TestSupport"]),
        .testTarget(
            name: "PlaylistsTests",
            dependencies: ["Playlists", "CachePolicy", "HTTPModel", "Presentations", "TestSupport"]),
        .testTarget(
            name: "PresentationsTests",
            dependencies: [
                "Activity", "CLinux", "CacheFill", "Presentations", "CachePolicy", "DiskCache", "FillTestSupport",
                "HTTPModel", "Metrics", "Playlists", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "LocatingTests",
            dependencies: [
                "CachePolicy", "HTTPModel", "Locating", "Metrics", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "CacheFillTests",
            dependencies: [
                "Upstream",
                "EventIO",
                "CacheFill", "CachePolicy", "DiskCache", "FillTestSupport", "HTTPModel", "Locating", "Metrics",
                "TestSupport", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "DownloadsTests",
            dependencies: [
                "Downloads", "CachePolicy", "Playlists", "TestSupport", "Units",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "SubscriptionsTests",
            dependencies: [
                "Subscriptions", "CachePolicy", "Downloads", "Playlists", "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "UpstreamTests", dependencies: ["Upstream", "EventIO", "HTTPModel", "CachePolicy", "TestSupport"]),
        .testTarget(
            name: "DiskCacheTests",
            dependencies: [
                "DiskCache", "HTTPModel", "CachePolicy", "Metrics", "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "HTTPTransportTests",
            dependencies: ["HTTPTransport", "CachePolicy", "EventIO", "HTTPModel", "Metrics", "TestSupport"]),
        .testTarget(name: "MetricsTests", dependencies: ["Metrics", "TestSupport"]),
        .testTarget(
            name: "ScenarioTests",
            dependencies: [
                "Activity", "Administration", "EventIO", "LocalFiles",
                "Reelcache", "CacheFill", "ControlAPI", "DiskCache", "Downloads", "HTTPModel", "HTTPTransport",
                "Upstream", "CachePolicy", "Metrics", "Playlists", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "ReelcacheTests",
            dependencies: [
                "EventIO",
                "Reelcache", "CachePolicy", "DiskCache", "Downloads", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(name: "CompletionTests", dependencies: ["Completion", "TestSupport"]),
        .testTarget(name: "DoctorTests", dependencies: ["Doctor", "TestSupport", "Upstream"]),
        .testTarget(name: "CommandTests", dependencies: ["TestSupport"]),
        .testTarget(
            name: "DurabilityTests",
            dependencies: ["CLinux", "TestSupport", .product(name: "GRDB", package: "GRDB.swift")]),
        .testTarget(name: "PlayerTests", dependencies: ["TestSupport"]),
        // The programs in `World` are run by the tests, and read from where they are.
        .testTarget(name: "GuideTests", dependencies: ["TestSupport"], exclude: ["World"]),
    ]
)

// What reads bytes that others wrote, under fire: a test of a few seconds, or a program for libFuzzer where
// scripts/fuzz builds it.
let fuzzed: [Target.Dependency] = [
    "HTTPModel", "CachePolicy", "Playlists", "Upstream", "DiskCache", "Configuration", "ControlAPI", "Downloads",
    "Locating", "Metrics", "TerminalText", "TestSupport", "Units",
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
