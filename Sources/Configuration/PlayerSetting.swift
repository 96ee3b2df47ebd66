extension SettingReader<[String]> {
    private static let form = "player: mpv, or player: [mpv, --fs]"

    /// The name or path of a program; in the file also a list, with the program's arguments.
    static var player: Self {
        SettingReader(placeholder: "program") { value throws(SettingProblems) in
            guard case .list(let words) = value.content else { return [try program(value)] }
            guard let first = words.first else { throw value.problem("is an empty list; write \(form)") }
            let arguments = try SettingProblems.collect(Array(words.dropFirst())) { word throws(SettingProblems) in
                try word.element()
            }
            return [try program(first)] + arguments
        } texts: {
            $0
        } summary: {
            $0.isEmpty ? nil : $0.joined(separator: " ")
        }
    }

    private static func program(_ value: SettingValue) throws(SettingProblems) -> String {
        let text = try value.text(form: form)
        guard !text.isEmpty else { throw value.problem("is empty; write \(form)") }
        guard !text.contains(" -") else {
            throw value.problem(
                "'\(text)' is a program with arguments; write them as a list in the file ([mpv, --fs]), or after -- on the command line"
            )
        }
        // A name is looked for in PATH; the rules for other paths are those of all settings.
        guard text.contains("/") else { return text }
        do throws(InvalidValue) { return try SettingKind<String>.path(.file).read(text, value.origin) } catch {
            throw value.problem(error.reason)
        }
    }
}
