/// How the bytes of a reader came.
package struct ReaderAccount {
    /// Whether it follows a fetch that another request started.
    package internal(set) var isCollapsed = false
    /// Whether bytes pass through only because the store has no room for them.
    package internal(set) var lacksRoom = false
    /// Whether bytes pass through because the disk could not read them.
    package internal(set) var hasLeftDisk = false
    /// Whether what it reads counts as played.
    var isPlay = false
    /// Whether what it reads counts as sent.
    var isSent = true
    /// Whether what is stored was fetched for this request before.
    var isFetched = false
    /// How many bytes it has returned from the store.
    package internal(set) var stored: Int64 = 0
    /// How many bytes that were fetched for this request or one that it joined.
    package internal(set) var fetched: Int64 = 0
}
