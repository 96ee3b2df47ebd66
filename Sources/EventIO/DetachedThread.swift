import CLinux
import Glibc

/// A thread that is not joined: it ends with its work.
package enum DetachedThread {
    private final class Work: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(_ name: String, _ run: @escaping @Sendable () -> Void) { (self.name, self.run) = (name, run) }
    }

    /// Starts a thread that does `work`.
    /// - Parameter name: as `top -H` shows it; of at most 15 bytes, as the kernel keeps no more (prctl(2)).
    /// - Returns: 0, or the error number for which the system starts no thread. `work` is then not done.
    package static func start(_ name: String, _ work: @escaping @Sendable () -> Void) -> Int32 {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let box = Unmanaged.passRetained(Work(name, work))
        let status = pthread_create(
            &thread, &attributes,
            { context in
                let work = Unmanaged<Work>.fromOpaque(context!).takeRetainedValue()
                reel_name_thread(work.name)
                reel_block_broken_pipes()
                work.run()
                return nil
            }, box.toOpaque())
        if status != 0 { box.release() }
        return status
    }
}
