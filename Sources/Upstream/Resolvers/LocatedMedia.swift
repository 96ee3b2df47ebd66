import CachePolicy

/// A location as it was obtained at one time.
package struct LocatedMedia: Sendable, Equatable {
    package let location: MediaLocation
    /// Differs from that of every other location, so that one that expired is not confused with its successor.
    let number: UInt64
}

/// What is known of the location of a URL's media.
package enum KnownLocation: Sendable {
    case located(LocatedMedia)
    case failed(ResolverFailure)
    /// The caller's waiter will be called.
    case waiting
}
