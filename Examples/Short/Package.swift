// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "short",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "reelcache", path: "../..")],
    targets: [
        .executableTarget(
            name: "ShortExample", dependencies: [.product(name: "Reelcache", package: "reelcache")], path: ".",
            exclude: ["Package.swift"])
    ]
)
