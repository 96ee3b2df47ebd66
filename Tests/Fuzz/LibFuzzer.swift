import Foundation

/// What libFuzzer calls; see `scripts/fuzz`. `REELCACHE_FUZZ_TARGET` names the target, `REELCACHE_FUZZ_SEEDS` a folder
/// that gets what to begin with.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["REELCACHE_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
        fatalError("name a target in REELCACHE_FUZZ_TARGET: \(FuzzTarget.all.map(\.name).joined(separator: " "))")
    }
    return target
}()

@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>>>
) -> CInt {
    guard let folder = ProcessInfo.processInfo.environment["REELCACHE_FUZZ_SEEDS"] else { return 0 }
    for target in FuzzTarget.all {
        let place = URL(filePath: folder).appending(path: target.name)
        try? FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        for (number, seed) in target.seeds.enumerated() {
            try? Data(seed.utf8).write(to: place.appending(path: "seed-\(number)"))
        }
        print(target.name)
    }
    exit(0)
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do { try target.run(Array(UnsafeBufferPointer(start: bytes, count: count))) } catch let violation as Violation {
        fatalError("\(target.name): \(violation)")
    } catch {}
    return 0
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// Where the package manager has the linker look for the beginning of this program: libFuzzer's own `main` is not
/// taken.
@_cdecl("Fuzz_main")
public func fuzz(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>>) -> CInt {
    var (count, arguments) = (count, arguments)
    return runDriver(&count, &arguments, { testOneInput($0, $1) })
}
