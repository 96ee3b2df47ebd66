import CachePolicy
import HTTPModel

/// The contents of `SegmentBase`, `SegmentList` and `SegmentTemplate`, from the period down to the representation
/// (ISO/IEC 23009-1 §5.3.9): a level inherits values that it does not state.
struct SegmentInformation: Sendable {
    enum Kind: Sendable {
        /// One file, which may contain an index.
        case base
        case list
        case template
    }

    /// A part of a file, which the text or else `BaseURL` names.
    struct Place: Sendable {
        /// Nil: the file that `BaseURL` names.
        let reference: String?
        let range: Range<Int64>?
    }

    var kind = Kind.base
    /// Ticks per second; never 0.
    var timescale: Int64 = 1
    /// The duration of each segment, in ticks.
    var duration: Int64?
    var startNumber: Int64?
    var endNumber: Int64?
    /// The media's own time at the start of the period, in ticks.
    var presentationTimeOffset: Int64 = 0
    var initialization: Place?
    var index: Place?
    var timeline: SegmentTiming.Timeline?
    var segmentURLs: [SegmentURLEntry] = []
    var media: Template?
    var initializationTemplate: Template?

    typealias Template = Result<AddressTemplate, PlaylistError>

    /// That of one level, for all below it that state nothing themselves.
    final class Shared: Sendable {
        static let none = Shared(SegmentInformation())

        let value: SegmentInformation

        private init(_ value: SegmentInformation) { self.value = value }

        /// - Parameters:
        ///   - element: a level, which has one of the three elements, or none.
        ///   - outer: the information of the level above.
        static func of(_ element: MPDElement, inheriting outer: Shared, _ budget: WorkBudget) throws(PlaylistError)
            -> Shared
        {
            guard let (kind, source) = try SegmentInformation.source(element, budget) else { return outer }
            try budget.make(MemoryLayout<SegmentInformation>.stride)
            var value = outer.value.kind == kind ? outer.value : SegmentInformation()
            value.kind = kind
            try value.take(source, budget)
            return Shared(value)
        }
    }

    private static func source(_ element: MPDElement, _ budget: WorkBudget) throws(PlaylistError) -> (
        Kind, MPDElement
    )? {
        if let template = try element.child(.segmentTemplate, budget) { return (.template, template) }
        if let list = try element.child(.segmentList, budget) { return (.list, list) }
        return try element.child(.segmentBase, budget).map { (.base, $0) }
    }

    private mutating func take(_ source: MPDElement, _ budget: WorkBudget) throws(PlaylistError) {
        timescale =
            source["timescale"].flatMap { ASCII.decimal($0.utf8, upTo: PlaylistLimits.timescale) }.flatMap {
                $0 > 0 ? $0 : nil
            } ?? timescale
        duration = source.ticks("duration").flatMap { $0 > 0 ? $0 : nil } ?? duration
        startNumber = source.number("startNumber") ?? startNumber
        endNumber = source.number("endNumber") ?? endNumber
        presentationTimeOffset = source.ticks("presentationTimeOffset") ?? presentationTimeOffset
        if let element = try source.child(.segmentTimeline, budget) {
            timeline = try SegmentTiming.Timeline(element.timeline, budget)
        }
        if !source.segmentURLs.isEmpty { segmentURLs = source.segmentURLs }
        media = source.template("media") ?? media
        initializationTemplate = source.template("initialization") ?? initializationTemplate
        try takePlaces(source, budget)
    }

    private mutating func takePlaces(_ source: MPDElement, _ budget: WorkBudget) throws(PlaylistError) {
        if let element = try source.child(.initialization, budget) { initialization = Place(element) }
        if let element = try source.child(.representationIndex, budget) { index = Place(element) }
        if let range = source["indexRange"].flatMap(MediaNumbers.byteRange) {
            index = Place(reference: index?.reference, range: range)
        }
    }
}

extension SegmentInformation {
    /// The number or time of the first segment that there may ever be.
    func lowest(isTime: Bool) -> Int64 {
        if isTime { timeline.map(\.start) ?? presentationTimeOffset } else { startNumber ?? 1 }
    }
}

extension MPDElement {
    fileprivate func template(_ name: String) -> SegmentInformation.Template? {
        addresses[name].map { text in Result { () throws(PlaylistError) in try AddressTemplate(text.reference) } }
    }
}

extension SegmentInformation.Place {
    /// `sourceURL` and `range` (ISO/IEC 23009-1 §5.3.9.2.2).
    fileprivate init(_ element: MPDElement) {
        self.init(
            reference: element.addresses["sourceURL"]?.reference,
            range: element["range"].flatMap(MediaNumbers.byteRange))
    }

    func address(at base: OriginURL) -> WrittenAddress { WrittenAddress(reference: reference ?? "", base: base) }
}
