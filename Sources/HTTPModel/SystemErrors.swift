import Glibc

extension String {
    /// What the system says of one of its error numbers (strerror(3)).
    package init(errno code: Int32) { self.init(cString: strerror(code)) }
}
