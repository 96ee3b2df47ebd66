import Foundation

/// A seeded random number generator, so that a random test that failed can be run again with the same choices.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    /// The increment of the sequence: 2⁶⁴ divided by the golden ratio, odd.
    static let increment: UInt64 = 0x9E37_79B9_7F4A_7C15

    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= Self.increment
        return Self.mix(state)
    }

    /// A generator for the test `name`: seeded from `REELCACHE_SEED` (decimal, or hexadecimal with `0x`), else from the
    /// system. Prints the seed to standard output, so call it once per test.
    package static func forTest(_ name: String) -> SplitMix64 {
        let seed = seedFromEnvironment() ?? UInt64.random(in: .min ... .max)
        print("\(name): REELCACHE_SEED=\(seed)")
        return SplitMix64(seed: seed)
    }

    /// The finalizer: a bijection of 64-bit words in which each input bit changes about half of the output bits.
    static func mix(_ word: UInt64) -> UInt64 {
        var z = word
        z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z &>> 31)
    }

    /// A set but unreadable seed traps: a run that was meant to reproduce a failure must not use another seed.
    private static func seedFromEnvironment() -> UInt64? {
        guard let text = ProcessInfo.processInfo.environment["REELCACHE_SEED"], !text.isEmpty else { return nil }
        let seed = text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16) : UInt64(text)
        precondition(seed != nil, "REELCACHE_SEED is not a 64-bit number: \(text)")
        return seed
    }
}
