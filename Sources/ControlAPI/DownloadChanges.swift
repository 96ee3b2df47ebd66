import Downloads

/// `{"action": "pause"}`, `{"priority": "high", "position": 0}`
extension DownloadChange: RequestBody {
    package static let example = "{\"action\": \"pause\"}"

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case action, priority, position, limitRate
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        let actions = Action.allCases.map(\.rawValue).joined(separator: ", ")
        self.init(
            action: try members.decodeIfThere(Action.self, forKey: .action, form: "one of \(actions)"),
            priority: try members.decodeIfThere(
                Download.Priority.self, forKey: .priority, form: Download.Priority.form),
            position: try members.decodeIfThere(Int.self, forKey: .position, form: "a whole number"),
            limitRate: try members.decodeIfThere(ReceivedSize.self, forKey: .limitRate)?.bytes)
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encodeIfPresent(action, forKey: .action)
        try members.encodeIfPresent(priority, forKey: .priority)
        try members.encodeIfPresent(position, forKey: .position)
        try members.encodeIfPresent(limitRate, forKey: .limitRate)
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

extension Download.Priority {
    static let form = allCases.map(\.rawValue).joined(separator: ", ")
}
