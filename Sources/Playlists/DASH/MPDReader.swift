import CachePolicy
import HTTPModel

extension MPD {
    /// Parses an MPD.
    /// - Parameters:
    ///   - bytes: the text, decoded (no content coding).
    ///   - base: the URL that answered, after any redirects.
    ///   - budget: earned by the text.
    /// - Throws: if the text is not well-formed XML or not an MPD, has a document type, or exceeds a limit.
    package init(_ bytes: [UInt8], at base: OriginURL, within budget: WorkBudget) throws(PlaylistError) {
        let root = try MPDTree.read(bytes, within: budget)
        self.root = root
        self.base = base
        isDynamic = root["type"] == "dynamic"
        minimumUpdatePeriod = root.duration("minimumUpdatePeriod")
        availabilityStartTime = root["availabilityStartTime"].flatMap(ISO8601.dateTime)
        mediaPresentationDuration = root.duration("mediaPresentationDuration")
        timeShiftBufferDepth = root.duration("timeShiftBufferDepth")
        maxSegmentDuration = root.duration("maxSegmentDuration")
        let former = budget.made
        title = try root.child(.programInformation, budget)?.child(.title, budget)?.content?.value
        let reader = try MPDLevel(bases: [base], information: .none, budget: budget).entering(root)
        let times = try root.children(.utcTiming, budget).flatMap(\.timeReferences).map {
            reference throws(PlaylistError) in
            try (reader.bases.first ?? base).resolving(reference, making: budget)
        }
        clocks = times.compactMap(\.self)
        let all = try root.children(.period, budget).map { element throws(PlaylistError) in try Period(element, reader)
        }
        periods = Self.timed(all, until: mediaPresentationDuration)
        // Elements are kept as they are written, and as what they mean.
        weight = root.weight +| budget.made &- former +| representations.count * MemoryLayout<Representation>.stride
    }

    /// ISO/IEC 23009-1 §5.3.2.1: a period begins where the previous one ends, and ends where the next one begins.
    private static func timed(_ periods: [Period], until end: Duration?) -> [Period] {
        var periods = periods
        var next: Duration? = .zero
        for place in periods.indices {
            periods[place].start = periods[place].start ?? next
            next = periods[place].start.flatMap { start in periods[place].duration.map { start + $0 } }
        }
        next = end
        for place in periods.indices.reversed() {
            if let start = periods[place].start, let end = next, periods[place].duration == nil {
                periods[place].duration = max(.zero, end - start)
            }
            next = periods[place].start
        }
        return periods
    }
}

/// What a level of an MPD passes on to the next: the bases of its addresses, and its segment information (ISO/IEC
/// 23009-1 §5.6.4, §5.3.9.1).
private struct MPDLevel {
    let bases: [OriginURL]
    let information: SegmentInformation.Shared
    let budget: WorkBudget

    func entering(_ element: MPDElement) throws(PlaylistError) -> MPDLevel {
        MPDLevel(
            bases: try element.bases(within: bases, budget),
            information: try .of(element, inheriting: information, budget), budget: budget)
    }
}

extension MPDElement {
    fileprivate func duration(_ name: String) -> Duration? { self[name].flatMap(ISO8601.duration) }

    /// ISO/IEC 23009-1 §5.6.4: several bases are alternatives.
    fileprivate func bases(within outer: [OriginURL], _ budget: WorkBudget) throws(PlaylistError) -> [OriginURL] {
        let references = try children(.baseURL, budget).prefix(PlaylistLimits.baseURLs).map {
            $0.content?.reference ?? ""
        }
        guard !references.isEmpty else { return outer }
        var all: [OriginURL] = []
        for base in outer {
            for reference in references where all.count < PlaylistLimits.baseURLs {
                if let url = try base.resolving(reference, making: budget) { all.append(url) }
            }
        }
        return all
    }

    /// The URL of the other document that contains the period or set. `urn:mpeg:dash:resolve-to-zero:2013` is not
    /// fetched: it means that there is none.
    fileprivate func remote(in level: MPDLevel) throws(PlaylistError) -> OriginURL? {
        guard let text = addresses["xlink:href"] else { return nil }
        return try level.bases.first?.resolving(text.reference, making: level.budget)
    }
}

extension OriginURL {
    /// Resolves a reference, to be kept: a long base and many references below it would otherwise take the product of
    /// both.
    fileprivate func resolving(_ reference: String, making budget: WorkBudget) throws(PlaylistError) -> OriginURL? {
        guard let url = try resolving(reference, within: budget) else { return nil }
        try budget.make(url.pathAndQuery.utf8.count &+ MemoryLayout<OriginURL>.stride)
        return url
    }
}

extension MPDElement.Text {
    var reference: String { Reference.text(Array(value.utf8)) }
}

extension MPDElement {
    /// In a `UTCTiming`: the addresses of time sources, separated by white space; none if its value is something
    /// else, such as a time.
    var timeReferences: [String] {
        guard self["schemeIdUri"]?.hasPrefix("urn:mpeg:dash:utc:http-") == true else { return [] }
        return (self["value"] ?? "").utf8.split(whereSeparator: ASCII.isXMLSpace).map { Reference.text(Array($0)) }
    }
}

extension MPD.Period {
    fileprivate init(_ element: MPDElement, _ outer: MPDLevel) throws(PlaylistError) {
        let level = try outer.entering(element)
        self.init(
            start: element.duration("start"), duration: element.duration("duration"),
            adaptationSets: try element.children(.adaptationSet, level.budget).map { set throws(PlaylistError) in
                try MPD.AdaptationSet(set, level)
            }, remote: try element.remote(in: outer))
    }
}

extension MPD.AdaptationSet {
    fileprivate init(_ element: MPDElement, _ outer: MPDLevel) throws(PlaylistError) {
        let level = try outer.entering(element), budget = level.budget
        // Once: a set may have as many children as representations.
        let isProtected = try element.isProtected(budget)
        let representations = try element.children(.representation, budget).map { child throws(PlaylistError) in
            try MPD.Representation(child, of: element, isProtected: isProtected, level)
        }
        self.init(
            kind: MPD.MediaKind(element, representations), language: element["lang"],
            isTrickMode: try element.isTrickMode(budget),
            representations: representations, remote: try element.remote(in: outer), range: element.whole)
    }
}

extension MPDElement {
    fileprivate func isProtected(_ budget: WorkBudget) throws(PlaylistError) -> Bool {
        try child(.contentProtection, budget) != nil
    }

    /// DASH-IF IOP §3.2.9
    fileprivate func isTrickMode(_ budget: WorkBudget) throws(PlaylistError) -> Bool {
        try children(.essentialProperty, budget).contains {
            $0["schemeIdUri"] == "http://dashif.org/guidelines/trickmode"
        }
    }
}

extension MPD.Representation {
    /// ISO/IEC 23009-1 §5.3.7: values that all representations of a set share may be stated in the set.
    /// - Parameter isProtected: whether the set says that all of them are.
    fileprivate init(_ element: MPDElement, of set: MPDElement, isProtected: Bool, _ outer: MPDLevel)
        throws(PlaylistError)
    {
        let level = try outer.entering(element)
        let isOneProtected = try element.isProtected(level.budget)
        let common = { (name: String) in element[name] ?? set[name] }
        let width = common("width").flatMap { Resolution.side($0.utf8) },
            height = common("height").flatMap { Resolution.side($0.utf8) }
        self.init(
            id: element["id"] ?? "", bandwidth: element["bandwidth"].flatMap(MediaNumbers.bandwidth),
            resolution: width.flatMap { width in height.map { Resolution(width: width, height: $0) } },
            frameRate: common("frameRate").flatMap(MediaNumbers.frameRate),
            codecs: MultivariantReader.codecs(common("codecs")),
            mimeType: common("mimeType"), isProtected: isProtected || isOneProtected,
            baseURLs: level.bases, information: level.information,
            range: element.whole)
    }
}

extension MPD.MediaKind {
    /// By the set's own statement, or else by types and codecs. Without any, it has pictures.
    fileprivate init(_ set: MPDElement, _ representations: [MPD.Representation]) {
        let type = set["mimeType"] ?? representations.first?.mimeType ?? ""
        let codec = representations.lazy.flatMap(\.codecs).compactMap { CodecKind($0) }.first
        let named =
            MPD.MediaKind(rawValue: set["contentType"] ?? "")
            ?? MPD.MediaKind(rawValue: String(type.prefix { $0 != "/" }))
        switch codec {
        case let kind? where named == nil: self = kind == .audio ? .audio : kind == .video ? .video : .text
        default: self = named ?? (type == "application/ttml+xml" ? .text : .video)
        }
    }
}
