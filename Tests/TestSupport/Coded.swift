/// Content codings as simple as they come: nothing is made shorter.
package enum Coded {
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        let length = UInt16(bytes.count)
        return [1] + little(length) + little(~length) + bytes
    }

    private static func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    /// RFC 1952
    package static func gzip(_ bytes: [UInt8]) -> [UInt8] {
        var sum: UInt32 = ~0
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
        }
        return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255] + stored(bytes) + little(~sum) + little(UInt32(bytes.count))
    }

    /// RFC 1950
    package static func deflate(_ bytes: [UInt8]) -> [UInt8] {
        var (a, b): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            a = (a + UInt32(byte)) % 65521
            b = (b + a) % 65521
        }
        return [0x78, 0x01] + stored(bytes) + little(UInt32(b << 16 | a).bigEndian)
    }
}
