/// One element of an MPD, with the offsets in the text that edits need.
struct MPDElement: Sendable {
    /// The elements that matter for segments and addresses (ISO/IEC 23009-1 §5.3). Others are skipped with all
    /// their contents.
    enum Name: String, CaseIterable, Sendable {
        case mpd = "MPD"
        case period = "Period"
        case adaptationSet = "AdaptationSet"
        case representation = "Representation"
        case baseURL = "BaseURL"
        case segmentBase = "SegmentBase"
        case segmentList = "SegmentList"
        case segmentTemplate = "SegmentTemplate"
        case segmentTimeline = "SegmentTimeline"
        case timelineEntry = "S"
        case segmentURL = "SegmentURL"
        case initialization = "Initialization"
        case representationIndex = "RepresentationIndex"
        case bitstreamSwitching = "BitstreamSwitching"
        case location = "Location"
        case patchLocation = "PatchLocation"
        case contentSteering = "ContentSteering"
        case utcTiming = "UTCTiming"
        case eventStream = "EventStream"
        case contentProtection = "ContentProtection"
        case essentialProperty = "EssentialProperty"
        case programInformation = "ProgramInformation"
        case title = "Title"

        /// The elements directly within which it matters; anywhere else it is skipped as well.
        var places: Set<Name> {
            switch self {
            case .mpd: []
            case .period, .location, .patchLocation, .contentSteering, .utcTiming, .programInformation: [.mpd]
            case .adaptationSet, .eventStream: [.period]
            case .representation: [.adaptationSet]
            case .baseURL, .segmentBase, .segmentList, .segmentTemplate:
                [.mpd, .period, .adaptationSet, .representation]
            case .segmentTimeline: [.segmentTemplate, .segmentList]
            case .timelineEntry: [.segmentTimeline]
            case .segmentURL: [.segmentList]
            case .initialization, .representationIndex, .bitstreamSwitching:
                [.segmentBase, .segmentList, .segmentTemplate]
            case .contentProtection, .essentialProperty: [.adaptationSet, .representation]
            case .title: [.programInformation]
            }
        }

        /// Whether the element's text matters.
        var hasText: Bool {
            switch self {
            case .baseURL, .location, .patchLocation, .contentSteering, .title: true
            default: false
            }
        }

        /// The attributes that contain addresses.
        var addresses: [String] {
            switch self {
            case .segmentTemplate: ["media", "initialization", "index", "bitstreamSwitching"]
            case .segmentURL: ["media", "index"]
            case .initialization, .representationIndex, .bitstreamSwitching: ["sourceURL"]
            case .utcTiming: ["value"]
            default: []
            }
        }
    }

    /// The attributes that are kept.
    private static let known: Set<String> = [
        "availabilityStartTime", "bandwidth", "bitstreamSwitching", "codecs", "contentType", "d", "duration",
        "endNumber",
        "frameRate", "height", "id", "index", "indexRange", "initialization", "lang", "maxSegmentDuration", "media",
        "mediaPresentationDuration", "mediaRange", "mimeType", "minimumUpdatePeriod", "n", "presentationTimeOffset",
        "publishTime", "r", "range", "schemeIdUri", "sourceURL", "start", "startNumber", "suggestedPresentationDelay",
        "t",
        "timeShiftBufferDepth", "timescale", "type", "value", "width", "xlink:href",
    ]

    /// Text with entities replaced, and its range.
    struct Text: Sendable {
        var value: String
        /// As written, without quotes or tags.
        let range: Range<Int>
    }

    let name: Name
    /// Few, so that they are found by going through them; names are not copied for each element.
    private let attributes: [Attribute]
    /// The attributes that contain addresses; `xlink:href` is allowed in any element.
    let addresses: [String: Text]
    /// From the start of its first tag to the end of its last one.
    var whole: Range<Int>
    /// The range of its first tag.
    let tag: Range<Int>
    /// The text between its tags; nil until it has ended, and for an empty-element tag.
    var content: Text?
    var children: [MPDElement] = []
    /// The entries of a `SegmentTimeline`.
    var timeline: [TimelineEntry] = []
    /// The entries of a `SegmentList`.
    var segmentURLs: [SegmentURLEntry] = []

    /// - Parameters:
    ///   - tag: the range of its first tag.
    ///   - bytes: the text.
    init(_ name: Name, _ attributes: [Attribute], tag: Range<Int>, in bytes: [UInt8]) {
        (self.name, self.attributes, self.tag, whole) = (name, attributes, tag, tag)
        let wanted = attributes.filter { name.addresses.contains($0.name) || $0.name == "xlink:href" }
        let ranges = wanted.isEmpty ? [:] : StartTag.values(of: wanted.map(\.name), in: bytes, tag)
        addresses = wanted.reduce(into: [:]) { all, one in
            all[one.name] = ranges[one.name].map { Text(value: one.value, range: $0) }
        }
    }

    func children(_ name: Name, _ budget: WorkBudget) throws(PlaylistError) -> [MPDElement] {
        try budget.take(children.count)
        return children.filter { $0.name == name }
    }

    func child(_ name: Name, _ budget: WorkBudget) throws(PlaylistError) -> MPDElement? {
        try budget.take(children.count)
        return children.first { $0.name == name }
    }

    /// Roughly the memory that it takes with all that is in it, besides the text itself.
    var weight: Int {
        let maps =
            attributes.count * MemoryLayout<Attribute>.stride + (addresses.isEmpty ? 0 : 64 + addresses.count * 96)
        return children.reduce(MemoryLayout<MPDElement>.stride + maps + 32) { $0 + $1.weight } + timeline.count * 128
            + segmentURLs.capacity * MemoryLayout<SegmentURLEntry>.stride // no trap: what is in memory
    }

    subscript(_ attribute: String) -> String? { attributes.first { $0.name == attribute }?.value }

    struct Attribute: Sendable {
        let name: String
        let value: String

        /// - Returns: nil for one that is not kept.
        init?(_ name: String, _ value: @autoclosure () -> String) {
            guard let known = MPDElement.known.firstIndex(of: name) else { return nil }
            (self.name, self.value) = (MPDElement.known[known], value())
        }
    }
}

/// An `S` of a timeline: consecutive segments of one duration (ISO/IEC 23009-1 §5.3.9.6). In ticks.
struct TimelineEntry: Sendable, Equatable {
    /// Nil if it follows the previous entry.
    let time: Int64?
    let duration: Int64
    /// How many more segments follow the first; negative: up to the next entry, or to the end of the period.
    let repeats: Int64
    /// The number of the first segment; nil if it follows the previous entry.
    let number: Int64?
}

/// A `SegmentURL` of a list (ISO/IEC 23009-1 §5.3.9.3).
struct SegmentURLEntry: Sendable {
    /// Nil: a part of the file that the `BaseURL` names.
    let media: MPDElement.Text?
    let mediaRange: Range<Int64>?
    let index: MPDElement.Text?
}
