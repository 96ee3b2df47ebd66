import Glibc

/// Sends bytes to the kernel; this is the only place that does.
extension Output {
    /// How far an answer has come.
    enum Progress {
        /// All of it was sent.
        case complete
        /// Its source has no bytes for now, and calls `resume`.
        case waiting
        /// The socket accepts no more, or others have their turn.
        case full
        /// It cannot be completed.
        case broken
        /// The same, since the bytes of the span could not be read.
        case unreadable
    }

    private enum Sent { case sent(Int), full, failed, unreadable }

    /// Each call has a cost, however little it sends: a body in very many parts must not keep the others waiting.
    private static let leastCost = 4 << 10

    /// Sends until the socket is full, the source has nothing, the answer is sent, or the turn is over.
    /// - Parameter begin: called before the first bytes of the body are sent.
    func send(to socket: Int32, begin: () -> Void) -> Progress {
        var turn = limits.writeTurnBytes
        while true {
            if span.isEmpty, !isComplete, let source {
                guard pull(from: source, begin) else { return .broken }
            }
            guard hasUnsent else { return isComplete ? .complete : .waiting }
            guard turn > 0 else { return .full }
            switch transmit(to: socket, limits.transmission) {
            case .sent(let count): turn -= max(count, Self.leastCost)
            case .full: return .full
            case .failed: return .broken
            case .unreadable:
                guard source?.takeBack(span.count) == true else { return .unreadable }
                takeBack()
            }
        }
    }

    /// Requests the next span from the source.
    /// - Returns: false if the answer cannot be completed. RFC 9112 §8: closing the connection marks a message as
    ///   incomplete; the client must not take it for complete.
    private func pull(from source: any BodySource, _ begin: () -> Void) -> Bool {
        let limit = min(limits.maxWriteBytes, max(limits.firstWriteBytes, bodyBytesTaken))
        let step = source.next(limit: owed > 0 ? min(limit, owed) : limit)
        // It may have ended the connection.
        guard self.source === source else { return true }
        switch step {
        case .span(let span):
            if bodyBytesTaken == 0 { begin() }
            return take(span)
        case .wait: return true
        case .end: return complete()
        case .cut: return false
        }
    }

    /// Sends the unsent bytes, or as many of them as the socket accepts.
    private func transmit(to socket: Int32, _ transmission: Transmission) -> Sent {
        if transmission == .sendfile, let file, !hasUnsentFraming {
            var offset = off_t(file.offset)
            return note(sendfile(socket, file.descriptor, &offset, span.count))
        }
        return note(sendMemory(to: socket, withSpan: transmission == .mapping || file == nil))
    }

    /// Sends framed bytes and the span in one call. If the mapped file shrank or cannot be read, the kernel
    /// returns EFAULT: the process itself never touches mapped bytes here, so there is no SIGBUS.
    private func sendMemory(to socket: Int32, withSpan: Bool) -> Int {
        withUnsentFraming { head in
            withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
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

    /// Sets whether closing the socket resets the connection, if the end of the connection is the end of the body, as
    /// for an HTTP/1.0 client. Until the body is complete, anything that ends the connection resets it, including the
    /// end of this process: otherwise half a body would look like a whole one.
    func setResetsOnClose(_ resets: Bool, of socket: Int32) {
        guard case .untilClose = framing else { return }
        var value = Glibc.linger(l_onoff: resets ? 1 : 0, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<Glibc.linger>.size))
    }
}
