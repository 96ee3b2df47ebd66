import HTTPModel

/// A running transfer of a download.
struct DownloadAttempt {
    /// Tells late ends of earlier attempts apart.
    let number: Int64
    let running: any RunningDownload
    /// The bytes of it that are counted already.
    private var counted: Int64 = 0

    init(number: Int64, _ running: any RunningDownload) { (self.number, self.running) = (number, running) }

    /// The bytes that it has fetched since the last call.
    mutating func takeFetched() -> Int64 {
        let fetched = running.fetched
        defer { counted = max(counted, fetched) }
        return max(0, fetched -| counted)
    }
}
