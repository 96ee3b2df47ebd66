import CachePolicy

extension SettingReader<[String: String]> {
    private static let form = "mounts: {/tv/: https://origin.example/vod/}"

    /// A mapping in the file; texts such as `/tv/=https://origin.example/vod/` elsewhere.
    static var mounts: Self {
        SettingReader(placeholder: "/path/=url", isList: true, flagName: "mount") { value throws(SettingProblems) in
            var mounts: [String: String] = [:]
            for mount in try Self.mounts(value) {
                // A repeated key of a mapping was reported already.
                guard mounts.updateValue(mount.origin.absolute, forKey: mount.path) == nil else {
                    throw value.problem("'\(mount.path)' is mounted twice; remove one of them")
                }
            }
            return mounts
        } texts: {
            $0.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        }
    }

    private static func mounts(_ value: SettingValue) throws(SettingProblems) -> [Mount] {
        if case .list(let texts) = value.content, !value.origin.isFile {
            return try SettingProblems.collect(texts) { text throws(SettingProblems) in
                let words = try text.element()
                do throws(OriginURLError) { return try Mount(parsing: words) } catch {
                    throw text.problem(error.reason)
                }
            }
        }
        return try SettingProblems.collect(value.members(form: form)) { member throws(SettingProblems) in
            let url = try member.value.text(form: "\(member.name): https://origin.example/vod/")
            do throws(OriginURLError) { return try Mount(path: member.name, url: url) } catch {
                throw SettingProblems(SettingProblem(origin: member.origin, key: value.key, message: error.reason))
            }
        }
    }
}
