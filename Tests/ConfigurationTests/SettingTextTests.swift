import Testing

@testable import Configuration

/// What people read about settings and keys of rules.
@Suite struct SettingTextTests {
    @Test func everyKeyHasWordsAndNothingElseHas() {
        #expect(Set(SettingText.settings.keys) == Set(Setting.all.map(\.key)))
        #expect(Set(SettingText.ruleKeys.keys) == Set(RuleKey.all.map(\.name)))
    }

    /// `--help` shows a summary as it is.
    @Test(arguments: Array(SettingText.settings.values) + SettingText.ruleKeys.values)
    func summaryIsPlainSentences(text: SettingText) {
        #expect(!text.summary.contains("`") && !text.summary.contains("\n"))
        #expect(text.summary.hasSuffix(".") || text.summary.hasSuffix(text.example))
        #expect(text.summary.count <= 180, "\(text.summary)")
        // What is the default, the program adds itself.
        #expect(!text.summary.contains("efault"))
    }

    @Test(arguments: Setting.all.map(\.key)) func exampleIsAValueOtherThanTheDefault(key: String) throws {
        let setting = try #require(Setting[key])
        let read = try settings(
            setting.example.contains("\n") ? "\(key):\n\(setting.example)" : "\(key): \(setting.example)")

        #expect(!setting.isEqual(read, Settings()), "\(key)")
        #expect(read.origin(of: setting) != .standard)
    }

    @Test(arguments: RuleKey.all.map(\.name)) func exampleOfARuleKeyIsAValue(name: String) throws {
        let key = try #require(RuleKey.all.first { $0.name == name })
        let rest = key.isEffect ? "host: example.org" : "bypass: true"

        let rules = try settings("rules:\n- \(rest)\n  \(name): \(key.example)").proxy.rules

        #expect(rules.count == 1 && RuleKey.text(rules[0]).contains("\(name): "))
    }

    @Test(arguments: Setting.all.map(\.key)) func defaultIsReadAsTheDefault(key: String) throws {
        let setting = try #require(Setting[key])
        guard let value = setting.defaultValue else { return }
        #expect(setting.isEqual(try settings("\(key): \(value)"), Settings()), "\(value)")
    }
}
