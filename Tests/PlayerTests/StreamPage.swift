import Foundation
import TestSupport

/// A page with hls.js on a server of its own, so that to the browser a stream comes from another origin.
final class StreamPage {
    private let server: ScriptedOrigin

    init() throws {
        server = try ScriptedOrigin()
        let library = try Data(contentsOf: URL(fileURLWithPath: try Player.hlsJS.location()))
        server.serve("/hls.js", bytes: [UInt8](library), contentType: "text/javascript")
        server.serve("/", bytes: [UInt8](Self.text.utf8), contentType: "text/html; charset=utf-8")
    }

    /// Lets the page play a stream.
    /// - Parameter body: one of the page's functions: `film` or `live`.
    /// - Returns: what it has seen, a line for each step.
    func play(_ stream: String, _ body: String) throws -> [String] {
        try Browser.open(server.url("/?stream=\(stream)"), evaluating: "watch(\(body))")
            .split(separator: "\n").map(String.init)
    }

    private static let text = #"""
        <!doctype html><title>film</title><video muted></video><script src="hls.js"></script><script>
        const video = document.querySelector("video")
        let failure = null
        const hls = new Hls({maxBufferLength: 60, liveSyncDurationCount: 2})
        hls.on(Hls.Events.ERROR, (event, data) => { if (data.fatal) failure = data.details })
        // The rendition to load, without what setting the current one does: it throws away what is there.
        hls.on(Hls.Events.MANIFEST_PARSED, () => { hls.loadLevel = hls.levels.length - 1 })
        hls.loadSource(new URLSearchParams(location.search).get("stream"))
        hls.attachMedia(video)
        const at = () => "at " + Math.round(video.currentTime) + " " + video.videoWidth + "x" + video.videoHeight
        const until = (what, holds) => new Promise((done, fail) => {
            const end = Date.now() + 120000
            const look = () => {
                if (holds()) done()
                else if (failure || Date.now() > end) fail("no " + what + ", " + at() + ", ready " + video.readyState + ": " + (failure || "waited in vain"))
                else setTimeout(look, 20)
            }
            look()
        })
        async function film() {
            const seen = []
            await until("levels", () => hls.levels && hls.levels.length)
            video.play()
            await until("playing", () => video.currentTime > 0.5)
            seen.push("plays " + video.videoWidth + "x" + video.videoHeight)
            video.pause()
            for (const seconds of [11, 17, 3]) {
                video.currentTime = seconds
                await until("seek", () => !video.seeking && video.readyState >= 3)
                seen.push(at())
            }
            video.play()
            for (const level of hls.levels.map((_, index) => index)) {
                hls.currentLevel = level
                await until("level " + level, () => hls.currentLevel == level && video.videoHeight == (hls.levels[level].height || video.videoHeight))
                seen.push("level " + level + " " + video.videoWidth + "x" + video.videoHeight)
            }
            video.playbackRate = 4
            await until("end", () => video.ended)
            return seen.concat("ended").join("\n")
        }
        async function live() {
            const news = new Set()
            hls.on(Hls.Events.LEVEL_LOADED, (event, data) => { news.add(data.details.endSN) })
            await until("playing", () => video.play() && video.currentTime > 0)
            const begin = video.currentTime
            await until("news", () => news.size >= 4 && video.currentTime > begin + 6)
            return "live"
        }
        const watch = body => body().catch(error => "failed: " + error)
        </script>
        """#
}
