import Downloads

/// `{"action": "pause"}`, `{"priority": "high", "position": 0}`
extension DownloadChange: RequestBody {
    package static let example = "{\"action\": \"pause\"}"

    private static let members: [BodyMember<DownloadChange>] = [
        .init("action", \.action, .init("one of \(Action.allCases.map(\.rawValue).joined(separator: ", "))")),
        .init("priority", \.priority, .priority),
        .init("position", \.position, .number),
        .init("limitRate", \.limitRate, .size),
    ]

    package init(from decoder: any Decoder) throws {
        self.init()
        let members = try decoder.members(Self.members.map(\.name))
        for member in Self.members { try member.read(members, &self) }
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: BodyKey.self)
        for member in Self.members { try member.write(self, &members) }
    }
}

/// `{"max_active": 5, "limit_rate": "2MB"}`; either may be missing, and 0 is no limit.
package struct DownloadSettingsChange: RequestBody {
    package static let example = "{\"max_active\": 5}"

    package let maxActive: Int?
    package let limitRate: Int64?

    /// The change to these settings.
    package init(to settings: DownloadSettings) {
        (maxActive, limitRate) = (settings.maxActive, settings.limitRate ?? 0)
    }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxActive, limitRate
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        let range = DownloadSettings.maxActiveRange
        maxActive = try members.decodeIfThere(
            Int.self, forKey: .maxActive, form: "\(range.lowerBound) to \(range.upperBound)", range.contains
        )
        limitRate = try members.decodeIfThere(ReceivedSize.self, forKey: .limitRate)?.bytes
        guard maxActive != nil || limitRate != nil else {
            throw ControlError(422, "nothing to change: give max_active, limit_rate or both")
        }
    }
}
