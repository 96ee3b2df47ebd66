/// One element of an MPD, with the places in the text that edits need.
struct MPDElement: Sendable {
    /// The elements that say something about segments and addresses (ISO/IEC 23009-1 §5.3). Others are passed over
    /// with all they hold.
    enum Name: String, Sendable {
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

        /// Those whose text says something.
        var hasText: Bool {
            switch self {
            case .baseURL, .location, .patchLocation, .contentSteering, .title: true
            default: false
            }
        }

        /// The attributes that hold addresses.
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
    static let attributes: Set<String> = [
        "availabilityStartTime", "bandwidth", "bitstreamSwitching", "codecs", "contentType", "d", "duration",
        "endNumber",
        "frameRate", "height", "id", "index", "indexRange", "initialization", "lang", "maxSegmentDuration", "media",
        "mediaPresentationDuration", "mediaRange", "mimeType", "minimumUpdatePeriod", "n", "presentationTimeOffset",
        "publishTime", "r", "range", "schemeIdUri", "sourceURL", "start", "startNumber", "suggestedPresentationDelay",
        "t",
        "timeShiftBufferDepth", "timescale", "type", "value", "width", "xlink:href",
    ]

    /// What stands in the text, with entities replaced, and where.
    struct Text: Sendable {
        var value: String
        /// As written, without quotes or tags.
        let range: Range<Int>
    }

    let name: Name
    let attributes: [String: String]
    /// The attributes that hold addresses; `xlink:href` is one of any element.
    let addresses: [String: Text]
    /// From the beginning of its first tag to the end of its last one.
    var whole: Range<Int>
    /// Of its first tag.
    let tag: Range<Int>
    /// Between its tags; nil until it has ended, and where one tag is both.
    var content: Text?
    var children: [MPDElement] = []
    /// Of a `SegmentTimeline`.
    var timeline: [TimelineEntry] = []
    /// Of a `SegmentList`.
    var segmentURLs: [SegmentURLEntry] = []

    func children(_ name: Name) -> [MPDElement] { children.filter { $0.name == name } }

    func child(_ name: Name) -> MPDElement? { children.first { $0.name == name } }

    subscript(_ attribute: String) -> String? { attributes[attribute] }
}

/// An `S` of a timeline: segments of one duration, one after the other (ISO/IEC 23009-1 §5.3.9.6). In ticks.
struct TimelineEntry: Sendable, Equatable {
    /// Nil where it follows the one before.
    let time: Int64?
    let duration: Int64
    /// How many more there are; below 0: up to the next entry, or to the end of the period.
    let repeats: Int64
    /// Of the first; nil where it follows the one before.
    let number: Int64?
}

/// A `SegmentURL` of a list (ISO/IEC 23009-1 §5.3.9.3).
struct SegmentURLEntry: Sendable {
    /// Nil: a part of what the `BaseURL` names.
    let media: MPDElement.Text?
    let mediaRange: Range<Int64>?
    let index: MPDElement.Text?
}
