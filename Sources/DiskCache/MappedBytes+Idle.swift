/// Decides how long idle parts of files stay mapped. Mapping them again costs little, but not nothing, so parts that
/// are read again and again stay.
extension MappedBytes {
    /// This many bytes of idle parts stay for long; the times, in milliseconds, say how long more than that stay, and
    /// how long any.
    private static let (idleBytes, shortIdle, longIdle): (Int64, Int64, Int64) = (64 << 20, 5_000, 60_000)

    /// - Parameter now: by `now`.
    static func dropIdle(of files: [any GenerationBytes], now: Int64 = now()) {
        var idle: [(lastUse: Int64, bytes: Int64)] = []
        for file in files { file.addIdleMappings(to: &idle) }
        guard let last = lastToDrop(idle, now: now) else { return }
        for file in files { file.dropMappings(usedUntil: last) }
    }

    /// - Returns: drop parts that were last used at this time or before; nil for none.
    static func lastToDrop(_ idle: [(lastUse: Int64, bytes: Int64)], now: Int64) -> Int64? {
        var kept: Int64 = 0
        let isSurplus = idle.reduce(0) { $0 + $1.bytes } > idleBytes
        let surplus =
            !isSurplus
            ? nil
            : idle.sorted { $0.lastUse > $1.lastUse }.first { part in
                kept += part.bytes
                return kept > idleBytes && part.lastUse <= now - shortIdle
            }
        let old = idle.contains { $0.lastUse <= now - longIdle } ? now - longIdle : nil
        return [surplus?.lastUse, old].compactMap(\.self).max()
    }
}
