extension MPD {
    /// The edits that leave only some of the representations. Sets and periods that become empty are removed as
    /// well.
    /// - Returns: nil if nothing would be left.
    package func edits(keeping kept: Set<RepresentationID>, within budget: WorkBudget) throws(PlaylistError)
        -> [AddressEdit]?
    {
        try budget.take(root.children.count &+ representations.count)
        var edits: [AddressEdit] = []
        var isEmpty = true
        for (period, element) in zip(periods.indices, root.children.filter { $0.name == .period }) {
            let sets = setEdits(inPeriod: period, kept)
            if let sets {
                isEmpty = false
                edits += sets
            } else {
                edits.append(AddressEdit(range: element.whole, replacement: ""))
            }
        }
        return isEmpty ? nil : edits
    }

    /// Nil if no set is left.
    private func setEdits(inPeriod period: Int, _ kept: Set<RepresentationID>) -> [AddressEdit]? {
        var edits: [AddressEdit] = []
        var isEmpty = true
        for (place, set) in periods[period].adaptationSets.enumerated() {
            let isKept = { kept.contains(RepresentationID(period: period, adaptationSet: place, representation: $0)) }
            let gone = set.representations.indices.filter { !isKept($0) }
            if gone.count == set.representations.count {
                edits.append(AddressEdit(range: set.range, replacement: ""))
            } else {
                isEmpty = false
                edits += gone.map { AddressEdit(range: set.representations[$0].range, replacement: "") }
            }
        }
        return isEmpty ? nil : edits
    }
}
