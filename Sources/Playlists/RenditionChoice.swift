import CachePolicy
import HTTPModel

/// Which renditions of a playlist to download; by default the best picture with its default sound and no subtitles.
public struct RenditionChoice: Sendable, Hashable {
    /// The quality of the picture, or of the sound if there is no picture.
    public enum Quality: Sendable, Hashable {
        /// The largest picture; of equal ones the one with the highest bit rate.
        case best
        /// The smallest picture.
        case worst
        /// At most this many lines, 1080 for 1080p; the fewest if all have more.
        case lines(Int)
        /// At most this many bits per second; the lowest rate if all have more.
        case bitsPerSecond(Int64)

        /// The accepted spellings.
        package static let forms = "best, worst, 1080p or 4M"

        /// Parses `best`, `worst`, `1080p`, or bits per second: `4M`, `2.5M`, `800k`. Nil for anything else.
        package init?(_ text: String) {
            guard text.utf8.count <= 32 else { return nil }
            let name = ASCII.lowercased(text)
            if name == "best" {
                self = .best
            } else if name == "worst" {
                self = .worst
            } else if name.hasSuffix("p"), let lines = Resolution.side(name.utf8.dropLast()) {
                self = .lines(lines)
            } else {
                guard let bandwidth = Self.bandwidth(name) else { return nil }
                self = .bitsPerSecond(bandwidth)
            }
        }

        /// The form that `init` reads.
        package var text: String {
            switch self {
            case .best: "best"
            case .worst: "worst"
            case .lines(let lines): "\(lines)p"
            case .bitsPerSecond(let bandwidth): "\(bandwidth)"
            }
        }
    }

    /// A selection among the available languages.
    public enum Languages: Sendable, Hashable {
        /// The one that a player chooses by default.
        case standard
        /// No language.
        case none
        /// All languages.
        case all
        /// Those of these languages that are available, as BCP 47 tags, the preferred first: `de` also matches `de-AT`.
        case only([String])
    }

    /// The quality of the picture.
    public var quality: Quality
    /// The languages of the sound. If none of them is available, the default is downloaded nevertheless.
    public var audio: Languages
    /// The languages of the subtitles.
    public var subtitles: Languages
    /// All available renditions, regardless of the other options.
    public var isEverything: Bool
    /// The limit of a rule on the best picture; not on one that is chosen otherwise.
    package var limit = ResolvedRule.QualityLimit()

    /// By default the best picture with its default sound. Each argument is the property of the same name.
    public init(
        quality: Quality = .best, audio: Languages = .standard, subtitles: Languages = .none, isEverything: Bool = false
    ) {
        (self.quality, self.audio, self.subtitles, self.isEverything) = (quality, audio, subtitles, isEverything)
    }

    /// The defaults with the changes that `change` makes.
    public init(_ change: (inout RenditionChoice) -> Void) {
        self.init()
        change(&self)
    }

    /// The pictures among which the quality chooses.
    func allowed<Offer: QualityOffer>(_ offers: [Offer]) -> [Offer] {
        quality == .best ? limit.fitting(offers) : offers
    }
}

extension RenditionChoice.Languages {
    /// The accepted spellings.
    package static let forms = "all, none, default, or languages such as en,de"
    /// The limit of languages, and of letters in each: a BCP 47 tag has at most 35 (RFC 5646 §4.4.1).
    private static let (mostNames, longestName) = (64, 35)

    /// Parses `all`, `none`, `default`, or languages separated by commas: `en,de`. Nil for anything else.
    package init?(_ text: String) {
        let names = text.split(separator: ",").map { String(ASCII.trimmed($0)) }.filter { !$0.isEmpty }
        guard !names.isEmpty, names.count <= Self.mostNames, names.allSatisfy(Self.isTag) else { return nil }
        self =
            switch names {
            case ["all"]: .all
            case ["none"]: .none
            case ["default"]: .standard
            default: .only(names)
            }
    }

    /// The form that `init` reads.
    package var text: String {
        switch self {
        case .standard: "default"
        case .none: "none"
        case .all: "all"
        case .only(let names): names.joined(separator: ",")
        }
    }

    private static func isTag(_ name: String) -> Bool {
        name.utf8.count <= longestName
            && name.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "-") }
    }

    /// RFC 4647 §3.3.1: a range matches a tag that equals it, or begins with it and a hyphen.
    static func matches(_ range: String, _ language: String?) -> Bool {
        guard let language else { return false }
        return ASCII.equalIgnoringCase(range, language) || ASCII.begins(language, with: range + "-")
    }

    /// Selects from the offers by language.
    /// - Parameters:
    ///   - offered: in order of preference.
    ///   - standard: the offers that `standard` selects.
    /// - Returns: the selected offers, in their order; and the languages that no offer has.
    func choose<Offer>(of offered: [Offer], language: (Offer) -> String?, standard: ([Offer]) -> [Offer]) -> (
        chosen: [Offer], missing: [String]
    ) {
        switch self {
        case .none: return ([], [])
        case .all: return (offered, [])
        case .standard: return (standard(offered), [])
        case .only(let names):
            let missing = names.filter { name in !offered.contains { Self.matches(name, language($0)) } }
            return (offered.filter { offer in names.contains { Self.matches($0, language(offer)) } }, missing)
        }
    }
}

/// The properties by which a quality is selected.
protocol QualityOffer {
    var bandwidth: Int64? { get }
    var resolution: Resolution? { get }
    var frameRate: Double? { get }
}

extension RenditionChoice.Quality {
    /// The offer that matches the quality; of equal ones, the first. Nil only if there are no offers.
    func choose<Offer: QualityOffer>(of offers: [Offer]) -> Offer? {
        switch self {
        case .best: Self.greatest(offers)
        case .worst: Self.least(offers)
        case .lines(let lines):
            Self.greatest(offers.filter { $0.resolution.map { $0.lines <= lines } ?? false }) ?? Self.least(offers)
        case .bitsPerSecond(let most):
            Self.greatest(offers.filter { $0.bandwidth.map { $0 <= most } ?? false }) ?? Self.least(offers)
        }
    }

    private static func greatest<Offer: QualityOffer>(_ offers: [Offer]) -> Offer? {
        offers.reduce(nil) { best, offer in best.map { rank($0) >= rank(offer) } ?? false ? best : offer }
    }

    private static func least<Offer: QualityOffer>(_ offers: [Offer]) -> Offer? {
        offers.reduce(nil) { least, offer in least.map { rank($0) <= rank(offer) } ?? false ? least : offer }
    }

    /// The picture's size takes precedence over the bit rate, as newer codecs need less for the same quality.
    private static func rank(_ offer: some QualityOffer) -> (Int, Double, Int64) {
        (offer.resolution?.lines ?? 0, offer.frameRate ?? 0, offer.bandwidth ?? 0)
    }

    /// - Parameter text: in lower case.
    private static func bandwidth(_ text: String) -> Int64? {
        let factors: [Character: Double] = ["k": 1e3, "m": 1e6, "g": 1e9]
        let factor = text.last.flatMap { factors[$0] }
        let digits = factor == nil ? text[...] : text.dropLast()
        guard digits.utf8.allSatisfy({ ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }), let number = Double(digits)
        else { return nil }
        return Int64(whole: (number * (factor ?? 1)).rounded()).flatMap {
            $0 > 0 && $0 <= ByteNumber.greatest ? $0 : nil
        }
    }
}
