import Glibc

/// Sends bytes to the kernel; this is the only place that does.
extension Output {
    enum Sent {
        case sent(Int), full, failed
        /// The bytes of the span could not be read.
        case unreadable
    }

    /// Sends the unsent bytes, or as many of them as the socket accepts.
    func transmit(to socket: Int32, _ transmission: Transmission) -> Sent {
        if transmission == .sendfile, let file, framedBytesSent == framed.count {
            var offset = off_t(file.offset)
            return note(sendfile(socket, file.descriptor, &offset, span.count))
        }
        return note(sendMemory(to: socket, withSpan: transmission == .mapping || file == nil))
    }

    /// Sends framed bytes and the span in one call. If the mapped file shrank or cannot be read, the kernel
    /// returns EFAULT: the process itself never touches mapped bytes here, so there is no SIGBUS.
    private func sendMemory(to socket: Int32, withSpan: Bool) -> Int {
        framed.withUnsafeBytes { framed in
            withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
                let head = UnsafeRawBufferPointer(rebasing: framed[framedBytesSent...])
                vectors[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress), iov_len: head.count)
                vectors[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: span.baseAddress), iov_len: span.count)
                var message = msghdr()
                message.msg_iov = vectors.baseAddress
                message.msg_iovlen = withSpan ? 2 : 1
                let more = withSpan ? 0 : Int32(MSG_MORE) // no trap: a constant
                return sendmsg(socket, &message, Int32(MSG_NOSIGNAL) | more) // no trap: a constant
            }
        }
    }

    private func note(_ count: Int) -> Sent {
        if count > 0 {
            sent(count)
            return .sent(count)
        }
        if count < 0 && errno == EINTR { return .sent(0) }
        if count < 0 && errno == EAGAIN { return .full }
        return count == 0 || errno == EFAULT || errno == EIO ? .unreadable : .failed
    }
}
