/// How much of a film is cached before a story begins.
enum CacheState: String, CaseIterable, Sendable {
    case uncached, partlyCached, cached

    func prepare(_ stage: Stage, _ path: String = "/film.mp4") throws {
        switch self {
        case .uncached: break
        // The third chunk.
        case .partlyCached: _ = try stage.get(path, range: "bytes=131072-196607")
        case .cached: _ = try stage.get(path)
        }
    }
}
