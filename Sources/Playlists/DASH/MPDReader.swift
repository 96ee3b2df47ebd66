import CachePolicy
import HTTPModel

extension MPD {
    /// Parses an MPD.
    /// - Parameters:
    ///   - bytes: the text, decoded (no content coding).
    ///   - base: the URL that answered, after any redirects.
    /// - Throws: if the text is not well-formed XML or not an MPD, has a document type, or exceeds a limit.
    package init(_ bytes: [UInt8], at base: OriginURL) throws(PlaylistError) {
        let root = try MPDTree.read(bytes)
        self.root = root
        self.base = base
        isDynamic = root["type"] == "dynamic"
        minimumUpdatePeriod = root.duration("minimumUpdatePeriod")
        availabilityStartTime = root["availabilityStartTime"].flatMap(ISO8601.dateTime)
        publishTime = root["publishTime"].flatMap(ISO8601.dateTime)
        mediaPresentationDuration = root.duration("mediaPresentationDuration")
        timeShiftBufferDepth = root.duration("timeShiftBufferDepth")
        suggestedPresentationDelay = root.duration("suggestedPresentationDelay")
        maxSegmentDuration = root.duration("maxSegmentDuration")
        locations = root.urls(.location, at: [base])
        patchLocations = root.urls(.patchLocation, at: [base])
        steering = root.urls(.contentSteering, at: [base]).first
        title = root.child(.programInformation)?.child(.title)?.content?.value
        let budget = MPDLevel.BaseBudget(bytes.count)
        let reader = MPDLevel(bases: [base], information: nil, budget: budget).entering(root)
        utcTimings = root.children(.utcTiming).map { UTCTiming($0, at: reader.bases.first ?? base) }
        periods = Self.timed(root.children(.period).map { Period($0, reader) }, until: mediaPresentationDuration)
        weight = bytes.count +| root.weight +| budget.used +| representations.count
            * MemoryLayout<Representation>.stride
        guard !budget.isSpent else { throw .tooLarge("the addresses of the MPD are too long in all") }
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
    let information: SegmentInformation?
    let budget: BaseBudget

    func entering(_ element: MPDElement) -> MPDLevel {
        MPDLevel(
            bases: element.bases(within: bases, budget),
            information: SegmentInformation(element, inheriting: information), budget: budget)
    }

    /// What the bases of all levels may take, resolved: a long one and many short ones below it would otherwise take
    /// the product of both.
    final class BaseBudget {
        private let limit: Int
        private(set) var used = 0

        init(_ length: Int) { limit = length *| 32 +| 1 << 20 }

        var isSpent: Bool { used > limit }

        /// Nil once it is spent.
        func taking(_ url: OriginURL?) -> OriginURL? {
            guard let url, !isSpent else { return nil }
            used += url.pathAndQuery.utf8.count + MemoryLayout<OriginURL>.stride // no trap: lengths in memory
            return isSpent ? nil : url
        }
    }
}

extension MPDElement {
    fileprivate func duration(_ name: String) -> Duration? { self[name].flatMap(ISO8601.duration) }

    /// The URLs in the child elements of a name. Of several bases, the first counts.
    fileprivate func urls(_ name: Name, at bases: [OriginURL]) -> [OriginURL] {
        guard let base = bases.first else { return [] }
        return children(name).compactMap { $0.content.flatMap { base.resolving($0.reference) } }
    }

    /// ISO/IEC 23009-1 §5.6.4: several bases are alternatives.
    fileprivate func bases(within outer: [OriginURL], _ budget: MPDLevel.BaseBudget) -> [OriginURL] {
        let references = children(.baseURL).map { $0.content?.reference ?? "" }
        guard !references.isEmpty else { return outer }
        var all: [OriginURL] = []
        for base in outer {
            for reference in references.prefix(PlaylistLimits.baseURLs) where all.count < PlaylistLimits.baseURLs {
                if let url = budget.taking(base.resolving(reference)) { all.append(url) }
            }
        }
        return all
    }

    /// The URL of the other document that contains the period or set. `urn:mpeg:dash:resolve-to-zero:2013` is not
    /// fetched: it means that there is none.
    fileprivate func remote(at base: OriginURL?) -> OriginURL? {
        addresses["xlink:href"].flatMap { base?.resolving($0.reference) }
    }
}

extension MPDElement.Text {
    var reference: String { Reference.text(Array(value.utf8)) }
}

extension MPD.UTCTiming {
    fileprivate init(_ element: MPDElement, at base: OriginURL) {
        self.init(
            scheme: element["schemeIdUri"] ?? "", value: element["value"] ?? "",
            urls: element.timeReferences.compactMap { base.resolving($0) })
    }
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
    fileprivate init(_ element: MPDElement, _ outer: MPDLevel) {
        let level = outer.entering(element)
        self.init(
            id: element["id"], start: element.duration("start"), duration: element.duration("duration"),
            adaptationSets: element.children(.adaptationSet).map { MPD.AdaptationSet($0, level) },
            remote: element.remote(at: outer.bases.first))
    }
}

extension MPD.AdaptationSet {
    fileprivate init(_ element: MPDElement, _ outer: MPDLevel) {
        let level = outer.entering(element)
        // Once: a set may have as many children as representations.
        let isProtected = element.isProtected
        let representations = element.children(.representation).map {
            MPD.Representation($0, of: element, isProtected: isProtected, level)
        }
        self.init(
            id: element["id"], kind: MPD.MediaKind(element, representations), language: element["lang"],
            isTrickMode: element.isTrickMode,
            representations: representations, remote: element.remote(at: outer.bases.first), range: element.whole)
    }
}

extension MPDElement {
    fileprivate var isProtected: Bool { child(.contentProtection) != nil }

    /// DASH-IF IOP §3.2.9
    fileprivate var isTrickMode: Bool {
        children(.essentialProperty).contains { $0["schemeIdUri"] == "http://dashif.org/guidelines/trickmode" }
    }
}

extension MPD.Representation {
    /// ISO/IEC 23009-1 §5.3.7: values that all representations of a set share may be stated in the set.
    /// - Parameter isProtected: whether the set says that all of them are.
    fileprivate init(_ element: MPDElement, of set: MPDElement, isProtected: Bool, _ outer: MPDLevel) {
        let level = outer.entering(element)
        let common = { (name: String) in element[name] ?? set[name] }
        let width = common("width").flatMap { Resolution.side($0.utf8) },
            height = common("height").flatMap { Resolution.side($0.utf8) }
        self.init(
            id: element["id"] ?? "", bandwidth: element["bandwidth"].flatMap(MediaNumbers.bandwidth),
            resolution: width.flatMap { width in height.map { Resolution(width: width, height: $0) } },
            frameRate: common("frameRate").flatMap(MediaNumbers.frameRate),
            codecs: MultivariantReader.codecs(common("codecs")),
            mimeType: common("mimeType"), isProtected: isProtected || element.isProtected,
            baseURLs: level.bases, information: level.information ?? SegmentInformation(),
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
