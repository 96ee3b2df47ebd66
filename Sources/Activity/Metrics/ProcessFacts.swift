import Glibc

/// What the kernel counts for this process.
package struct ProcessFacts: Sendable, Equatable {
    /// Seconds of processor time, in user and system mode.
    package var cpuSeconds: Double
    /// Bytes in memory, and of address space.
    package var residentBytes: Int64
    package var virtualBytes: Int64
    package var openFiles: Int
    /// The most files that may be open.
    package var maxFiles: Int64
    /// When the process started, in seconds since 1970.
    package var startTime: Double

    package init(
        cpuSeconds: Double, residentBytes: Int64, virtualBytes: Int64, openFiles: Int, maxFiles: Int64,
        startTime: Double
    ) {
        (self.cpuSeconds, self.residentBytes, self.virtualBytes) = (cpuSeconds, residentBytes, virtualBytes)
        (self.openFiles, self.maxFiles, self.startTime) = (openFiles, maxFiles, startTime)
    }

    /// Reads them from the kernel, without waiting for a disk.
    package static func read() -> ProcessFacts {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let cpu = [usage.ru_utime, usage.ru_stime].map { Double($0.tv_sec) + Double($0.tv_usec) / 1e6 }
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // proc(5): the whole and the resident size, in pages.
        let pages = text("/proc/self/statm").split(separator: " ").prefix(2).map { Int64($0) ?? 0 }
        let pageSize = Int64(getpagesize())
        return ProcessFacts(
            cpuSeconds: cpu[0] + cpu[1],
            residentBytes: pages.count > 1 ? pages[1].multipliedReportingOverflow(by: pageSize).partialValue : 0,
            virtualBytes: pages.first.map { $0.multipliedReportingOverflow(by: pageSize).partialValue } ?? 0,
            openFiles: countOpenFiles(), maxFiles: Int64(clamping: limit.rlim_cur), startTime: start)
    }

    /// The number of entries of `/proc/self/fd`, which newer kernels state as its size.
    private static func countOpenFiles() -> Int {
        var info = stat()
        if stat("/proc/self/fd", &info) == 0, info.st_size > 0 { return Int(clamping: info.st_size) }
        guard let stream = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(stream) }
        var count = 0
        while readdir(stream) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the look itself.
        return max(0, count - 3)
    }

    /// proc(5): the 22nd field of `stat`, in clock ticks since the machine was booted. The second field, the name of the
    /// program, is in parentheses and may contain anything.
    private static let start: Double = {
        let fields = text("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        let ticks = fields.count > 19 ? Double(fields[19]) ?? 0 : 0
        var now = timespec(), sinceBoot = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        let boot = Double(now.tv_sec - sinceBoot.tv_sec) + Double(now.tv_nsec - sinceBoot.tv_nsec) / 1e9
        return ((boot + ticks / Double(max(1, sysconf(Int32(_SC_CLK_TCK))))) * 100).rounded() / 100
    }()

    /// The beginning of a file of the kernel's.
    private static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : ""
    }
}
