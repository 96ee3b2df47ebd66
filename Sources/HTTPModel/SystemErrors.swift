import Glibc

extension String {
    /// The system's message for an error number (strerror(3)).
    package init(errno code: Int32) { self.init(cString: strerror(code)) }
}
