import CachePolicy

/// `schedule` and `download_cap`. Values are kept as they are written in flags: one text for each entry.
extension SettingReader<[String]> {
    private static let scheduleForm = "schedule: {\"01:00-06:30\": unlimited, else: 500kB}"
    private static let capForm = "download_cap: 2GB/day, or download_cap: [2GB/day, 40GB/month]"

    /// A mapping in the file; texts such as `01:00-06:30=unlimited` elsewhere.
    static var schedule: Self {
        SettingReader(placeholder: "window=rate", isList: true) { value throws(SettingProblems) in
            let entries = try entries(value)
            do throws(RuleError) { _ = try DownloadSchedule(entries) } catch { throw value.problem(error.reason) }
            return entries.map(\.text)
        } texts: {
            $0
        }
    }

    private static func entries(_ value: SettingValue) throws(SettingProblems) -> [DownloadSchedule.Entry] {
        if case .list(let texts) = value.content, !value.origin.isFile {
            return try joined(texts).map { text throws(SettingProblems) in
                do throws(RuleError) { return try DownloadSchedule.Entry(parsing: text) } catch {
                    throw value.problem(error.reason)
                }
            }
        }
        return try SettingProblems.collect(value.members(form: scheduleForm)) { member throws(SettingProblems) in
            let rate = try member.value.text(form: "\(member.name): 500kB")
            do throws(RuleError) { return try DownloadSchedule.Entry(when: member.name, rate: rate) } catch {
                throw SettingProblems(SettingProblem(origin: member.origin, key: value.key, message: error.reason))
            }
        }
    }

    /// A variable is split at its commas, also at those between days: what has no rate belongs to the next entry.
    private static func joined(_ texts: [SettingValue]) throws(SettingProblems) -> [String] {
        var (entries, start): ([String], String) = ([], "")
        for text in texts {
            let words = start + (try text.element())
            if words.contains("=") { entries.append(words) }
            start = words.contains("=") ? "" : words + ","
        }
        return start.isEmpty ? entries : entries + [String(start.dropLast())]
    }

    /// One cap, or a list of them.
    static var caps: Self {
        SettingReader(placeholder: "size/day|month", isList: true) { value throws(SettingProblems) in
            let texts: [String]
            if case .list(let values) = value.content {
                texts = try SettingProblems.collect(values) { text throws(SettingProblems) in try text.element() }
            } else {
                texts = [try value.text(form: capForm)]
            }
            do throws(RuleError) { return try DownloadCap.parse(texts).map(\.text) } catch {
                throw value.problem(error.reason)
            }
        } texts: {
            $0
        }
    }
}
