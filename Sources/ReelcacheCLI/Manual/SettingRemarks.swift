import Configuration

/// Describes how to set a setting outside of the file, and when a change takes effect.
enum SettingRemarks {
    static func text(_ setting: Setting) -> String {
        let standard = setting.defaultValue.map { "`\($0)`" } ?? setting.standard
        var remarks = ["Default: \(standard)."]
        if setting.isFileOnly {
            remarks.append("There is no flag and no variable for this.")
        } else {
            remarks.append(flags(setting) + (setting.isList ? ", which may be repeated." : "."))
            remarks.append("Variable: `\(setting.variable)`.")
        }
        remarks.append("A change takes effect \(effect(setting)).")
        return remarks.joined(separator: " ")
    }

    private static func flags(_ setting: Setting) -> String {
        if let command = setting.command { return "Flag: \(setting.flag) of `reelcache \(command)`" }
        guard setting.isSwitch else { return "Flag: \(setting.flag)" }
        return "Flags: \(setting.flag), --no-\(setting.flag.dropFirst(2))"
    }

    /// When a change takes effect.
    private static func effect(_ setting: Setting) -> String {
        if let command = setting.command { return "with the next `reelcache \(command)`" }
        return setting.needsRestart ? "after a restart" : "on SIGHUP"
    }
}
