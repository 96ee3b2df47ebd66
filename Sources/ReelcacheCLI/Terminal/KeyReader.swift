/// A key that was pressed.
package enum Key: Sendable, Equatable {
    case character(Character)
    case up, down, pageUp, pageDown, home, end, enter, escape
    /// The screen is to be drawn again (Ctrl-L).
    case redraw
}

/// Reads keys from what a terminal sends. Pasted text, answers of the terminal, and sequences that it does not know are
/// skipped: nobody means the keys in them. Keeps at most a few bytes from one call to the next.
package struct KeyReader: Sendable {
    /// What comes next.
    private enum Phase: Sendable {
        case keys
        /// Text that is being pasted, up to `ESC [ 201 ~`.
        case paste
        /// A control string (ECMA-48 §5.6), such as the terminal's name or colours, up to `ESC \` or BEL.
        case string
        /// The rest of a sequence that is too long to be a key, up to its final byte.
        case sequence
    }

    private var phase = Phase.keys
    /// The beginning of a sequence, or of a character.
    private var rest: [UInt8] = []

    private static let longest = 32
    private static let escape: UInt8 = 0x1B
    private static let bell: UInt8 = 0x07
    private static let endOfPaste = Array("\u{1B}[201~".utf8)

    package init() {}

    /// Whether a pause means something: an Escape was received, which may be a key of its own or the beginning of a
    /// sequence, or what has begun never ends.
    package var isWaiting: Bool {
        switch phase {
        case .keys: rest.first == Self.escape
        case .paste: false
        case .string, .sequence: true
        }
    }

    /// How many bytes are kept.
    package var kept: Int { rest.count }

    /// - Returns: the keys that are complete.
    package mutating func take(_ bytes: some Sequence<UInt8>) -> [Key] {
        var keys: [Key] = []
        for byte in bytes {
            rest.append(byte)
            switch phase {
            case .keys: if let key = step() { keys.append(key) }
            case .paste: skipPasted()
            case .string: skipString()
            case .sequence: skipSequence()
            }
        }
        return keys
    }

    /// Nothing has come for a moment: an Escape was the key, and what has not ended never will.
    package mutating func pause() -> [Key] {
        guard isWaiting else { return [] }
        let isAlone = phase == .keys && rest.count == 1
        (phase, rest) = (.keys, [])
        return isAlone ? [.escape] : []
    }

    private mutating func skipPasted() {
        if rest == Self.endOfPaste {
            (phase, rest) = (.keys, [])
        } else if !Self.endOfPaste.starts(with: rest) {
            rest = rest.last == Self.escape ? [Self.escape] : []
        }
    }

    private mutating func skipString() {
        if rest.last == Self.bell || rest == [Self.escape, UInt8(ascii: "\\")] { phase = .keys }
        rest = rest.last == Self.escape ? [Self.escape] : []
    }

    private mutating func skipSequence() {
        guard let byte = rest.popLast() else { return }
        if byte == Self.escape { (phase, rest) = (.keys, [byte]) }
        if 0x40...0x7E ~= byte { phase = .keys }
    }

    // MARK: One key

    private mutating func step() -> Key? {
        guard let first = rest.first else { return nil }
        if first == Self.escape { return sequence() }
        guard first >= 0x80 else {
            rest = []
            return Self.key(first)
        }
        // A character that breaks off is nothing; what comes instead is.
        if rest.count > 1, let last = rest.last, !(0x80..<0xC0 ~= last) {
            rest = [last]
            return step()
        }
        return character(first)
    }

    private static func key(_ byte: UInt8) -> Key? {
        switch byte {
        case 0x0A, 0x0D: .enter
        case 0x0C: .redraw
        case 0x20..<0x7F: .character(Character(Unicode.Scalar(byte)))
        default: nil
        }
    }

    /// A character of several bytes (RFC 3629).
    private mutating func character(_ first: UInt8) -> Key? {
        let length = first >= 0xF5 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1
        guard rest.count >= length else { return nil }
        defer { rest = [] }
        return String(validating: rest, as: UTF8.self)?.first.map(Key.character)
    }

    /// A sequence of control characters (ECMA-48 §5.4): `ESC [ parameters final`, or `ESC O final`.
    private mutating func sequence() -> Key? {
        guard rest.count > 1 else { return nil }
        // A second Escape begins anew.
        if rest.last == Self.escape {
            rest = [Self.escape]
            return .escape
        }
        switch Character(Unicode.Scalar(rest[1])) {
        case "O", "[":
            guard rest.count > 2, let final = rest.last, 0x40...0x7E ~= final else {
                if rest.count >= Self.longest { (phase, rest) = (.sequence, []) }
                return nil
            }
        case "]", "P", "X", "^", "_": phase = .string
        default: break
        }
        defer { rest = [] }
        return named(String(decoding: rest.dropFirst(), as: UTF8.self))
    }

    private mutating func named(_ sequence: String) -> Key? {
        switch sequence {
        case "[A", "OA": .up
        case "[B", "OB": .down
        case "[5~": .pageUp
        case "[6~": .pageDown
        case "[H", "OH", "[1~", "[7~": .home
        case "[F", "OF", "[4~", "[8~": .end
        case "OM": .enter
        case "[200~": beginPaste()
        default: nil
        }
    }

    private mutating func beginPaste() -> Key? {
        phase = .paste
        return nil
    }
}
