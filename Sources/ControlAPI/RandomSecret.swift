import HTTPModel

/// Random text that nobody can guess.
package enum RandomSecret {
    /// - Parameter byteCount: how many random bytes it has.
    /// - Returns: two lower-case hexadecimal digits for each byte.
    package static func make(byteCount: Int, using generator: inout some RandomNumberGenerator) -> String {
        let digits = (0..<byteCount).flatMap { _ -> [UInt8] in
            let byte = UInt8.random(in: 0...255, using: &generator)
            return [ASCII.hexDigit(byte >> 4), ASCII.hexDigit(byte & 15)]
        }
        return String(decoding: digits, as: UTF8.self).lowercased()
    }

    /// Whether both are the same text. Takes the same time wherever texts of one length differ, so that a secret
    /// cannot be guessed a digit at a time.
    package static func areEqual(_ shown: some StringProtocol, _ secret: String) -> Bool {
        let (shown, secret) = (Array(shown.utf8), Array(secret.utf8))
        guard shown.count == secret.count else { return false }
        return zip(shown, secret).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
