import Testing

@testable import Configuration

/// What people read about settings and keys of rules.
@Suite struct SettingTextTests {
    /// `--help` shows a summary as it is.
    @Test(arguments: Setting.all.map { ($0.summary, $0.example) } + RuleKey.all.map { ($0.summary, $0.example) })
    func summaryIsPlainSentences(summary: String, example: String) {
        #expect(!summary.contains("`") && !summary.contains("\n"))
        #expect(summary.hasSuffix(".") || summary.hasSuffix(example))
        #expect(summary.count <= 180, "\(summary)")
        // What is the default, the program adds itself.
        #expect(!summary.contains("efault"))
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
