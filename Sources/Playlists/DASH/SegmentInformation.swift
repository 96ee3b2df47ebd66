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

    init() {}

    /// - Parameters:
    ///   - element: a level, which has one of the three elements, or none.
    ///   - outer: the information of the level above.
    /// - Returns: nil if no level states anything.
    init?(_ element: MPDElement, inheriting outer: SegmentInformation?) {
        guard let (kind, source) = Self.source(element) else {
            guard let outer else { return nil }
            self = outer
            return
        }
        if let outer, outer.kind == kind { self = outer }
        self.kind = kind
        take(source)
    }

    private static func source(_ element: MPDElement) -> (Kind, MPDElement)? {
        if let template = element.child(.segmentTemplate) { return (.template, template) }
        if let list = element.child(.segmentList) { return (.list, list) }
        return element.child(.segmentBase).map { (.base, $0) }
    }

    private mutating func take(_ source: MPDElement) {
        timescale =
            source["timescale"].flatMap { ASCII.decimal($0.utf8, upTo: PlaylistLimits.timescale) }.flatMap {
                $0 > 0 ? $0 : nil
            } ?? timescale
        duration = source.ticks("duration").flatMap { $0 > 0 ? $0 : nil } ?? duration
        startNumber = source.number("startNumber") ?? startNumber
        endNumber = source.number("endNumber") ?? endNumber
        presentationTimeOffset = source.ticks("presentationTimeOffset") ?? presentationTimeOffset
        timeline = source.child(.segmentTimeline).map { SegmentTiming.Timeline($0.timeline) } ?? timeline
        if !source.segmentURLs.isEmpty { segmentURLs = source.segmentURLs }
        media = source.template("media") ?? media
        initializationTemplate = source.template("initialization") ?? initializationTemplate
        takePlaces(source)
    }

    private mutating func takePlaces(_ source: MPDElement) {
        if let element = source.child(.initialization) { initialization = Place(element) }
        if let element = source.child(.representationIndex) { index = Place(element) }
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

    func url(at base: OriginURL) -> OriginURL? { reference.map { base.resolving($0) } ?? base }
}
