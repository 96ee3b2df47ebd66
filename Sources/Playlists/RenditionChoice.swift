import HTTPModel

/// The renditions of a presentation that a user selects.
package struct RenditionChoice: Sendable, Hashable {
    /// The quality of the picture, or of the sound if there is no picture.
    package enum Quality: Sendable, Hashable {
        case best, worst
        /// This many lines, or the next lower number; if all have more, the fewest. 1080 for `1080p`.
        case lines(Int)
        /// At most this many bits per second; if all have more, the lowest.
        case bandwidth(Int64)

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
                self = .bandwidth(bandwidth)
            }
        }

        /// The form that `init` reads.
        package var text: String {
            switch self {
            case .best: "best"
            case .worst: "worst"
            case .lines(let lines): "\(lines)p"
            case .bandwidth(let bandwidth): "\(bandwidth)"
            }
        }
    }

    /// A selection of the offered languages.
    package enum Languages: Sendable, Hashable {
        /// The default, as a player selects it without any preference.
        case standard
        case none
        case all
        /// BCP 47, the preferred first; all of these that are offered. `de` includes `de-AT`.
        case only([String])
    }

    package var quality: Quality
    package var audio: Languages
    package var subtitles: Languages
    /// Selects everything, regardless of the other properties.
    package var isEverything: Bool

    package init(
        quality: Quality = .best, audio: Languages = .standard, subtitles: Languages = .none, isEverything: Bool = false
    ) {
        self.quality = quality
        self.audio = audio
        self.subtitles = subtitles
        self.isEverything = isEverything
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
        case .bandwidth(let most):
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
