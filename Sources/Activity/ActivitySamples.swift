import HTTPModel

/// What loops tell of a moment.
package struct ActivitySamples: Sendable {
    package var plays: [PlaySample] = []
    package var fetches: [FetchSample] = []
    /// How many more there are, which a loop left out because it has so many.
    package var (hiddenPlays, hiddenFetches) = (0, 0)

    /// The most plays and the most fetches that one loop tells of: it has other things to do.
    package static let mostOfALoop = 500

    package init(plays: [PlaySample] = [], fetches: [FetchSample] = []) {
        (self.plays, self.fetches) = (plays, fetches)
    }

    package static func += (all: inout Self, more: Self) {
        all.plays += more.plays
        all.fetches += more.fetches
        all.hiddenPlays +|= more.hiddenPlays
        all.hiddenFetches +|= more.hiddenFetches
    }
}
