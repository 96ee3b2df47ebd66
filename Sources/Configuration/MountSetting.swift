import CachePolicy
import Reelcache

extension SettingReader<[String: ConfiguredMount]> {
    private static let form = "mounts: {/tv/: https://origin.example/vod/}"

    /// A mapping in the file; texts such as `/tv/=https://origin.example/vod/` elsewhere.
    static var mounts: Self {
        SettingReader(placeholder: "/path/=url", isList: true, flagName: "mount") { value throws(SettingProblems) in
            var mounts: [String: ConfiguredMount] = [:]
            for mount in try Self.mounts(value) {
                let configured = ConfiguredMount(url: mount.origin.absolute, cache: mount.cache)
                // A repeated key of a mapping was reported already.
                guard mounts.updateValue(configured, forKey: mount.path) == nil else {
                    throw value.problem("'\(mount.path)' is mounted twice; remove one of them")
                }
            }
            return mounts
        } texts: {
            $0.sorted { $0.key < $1.key }.map { path, mount in
                "\(path)=\(mount.url)" + (mount.cache.map { " \($0.rawValue)" } ?? "")
            }
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
            let (url, cache) = try place(member)
            do throws(OriginURLError) { return try Mount(path: member.name, url: url, cache: cache) } catch {
                throw SettingProblems(SettingProblem(origin: member.origin, key: value.key, message: error.reason))
            }
        }
    }

    /// A URL, or a mapping of `origin` and `cache`.
    private static func place(_ mount: SettingValue.Member) throws(SettingProblems) -> (url: String, CacheMode?) {
        let url = "https://origin.example/vod/"
        guard case .mapping(let members) = mount.value.content else {
            return (try mount.value.text(form: "\(mount.name): \(url)"), nil)
        }
        var (origin, cache): (String?, CacheMode?)
        for member in members {
            switch member.name {
            case "origin": origin = try member.value.text(form: "origin: \(url)")
            case "cache":
                let kind = SettingKind<CacheMode>.cacheMode, text = try member.value.text(form: "cache: shared")
                do throws(InvalidValue) {
                    cache = try kind.read(text, member.origin)
                } catch {
                    throw member.value.problem(error.reason)
                }
            default: throw member.problem("is not a key of a mount; the keys are origin and cache")
            }
        }
        guard let origin else {
            throw mount.problem(
                "does not name the origin to mount; write \(mount.name): {origin: \(url), cache: shared}")
        }
        return (origin, cache)
    }
}

extension SettingKind<CacheMode> {
    static var cacheMode: Self {
        SettingKind("shared|private", completion: .words(["shared", "private"])) { (text, _) throws(InvalidValue) in
            guard let mode = CacheMode(rawValue: text) else {
                throw InvalidValue(reason: "'\(text)' is neither shared nor private; write one of them")
            }
            return mode
        } write: {
            $0.rawValue
        }
    }
}

extension SettingKind<String> {
    static var targetedField: Self {
        SettingKind("field") { (text, _) throws(InvalidValue) in
            do throws(RuleError) { try TargetedField.check(text) } catch { throw InvalidValue(reason: error.reason) }
            return text
        } write: {
            $0
        }
    }
}
