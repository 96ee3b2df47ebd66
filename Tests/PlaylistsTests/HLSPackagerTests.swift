import CachePolicy
import Testing

@testable import Playlists

/// Playlists as ffmpeg 5.1 writes them.
@Suite struct HLSPackagerTests {
    static let variants = """
        #EXTM3U
        #EXT-X-VERSION:3
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="group_a",NAME="audio_2",DEFAULT=YES,LANGUAGE="en",URI="v2.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=237600,RESOLUTION=64x48,CODECS="avc1.f40009,mp4a.40.2",AUDIO="group_a"
        v0.m3u8

        #EXT-X-STREAM-INF:BANDWIDTH=127600,RESOLUTION=32x24,CODECS="avc1.f4000a,mp4a.40.2",AUDIO="group_a"
        v1.m3u8


        """
    static let singleFile = """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:2
        #EXT-X-MEDIA-SEQUENCE:0
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-MAP:URI="f.m4s",BYTERANGE="1339@0"
        #EXTINF:2.000000,
        #EXT-X-BYTERANGE:17572@1339
        f.m4s
        #EXTINF:2.000000,
        #EXT-X-BYTERANGE:17370@18911
        f.m4s
        #EXTINF:2.000000,
        #EXT-X-BYTERANGE:17164@36281
        f.m4s
        #EXT-X-ENDLIST

        """
    static let encrypted = """
        #EXTM3U
        #EXT-X-VERSION:3
        #EXT-X-TARGETDURATION:2
        #EXT-X-MEDIA-SEQUENCE:0
        #EXT-X-PLAYLIST-TYPE:VOD
        #EXT-X-KEY:METHOD=AES-128,URI="https://keys.example/k.key",IV=0x00000000000000000000000000000000
        #EXTINF:2.000000,
        i0.ts
        #EXTINF:2.000000,
        i1.ts
        #EXT-X-ENDLIST

        """
    /// The beginning of a live stream (`-hls_flags append_list+omit_endlist`).
    static let live = """
        #EXTM3U
        #EXT-X-VERSION:7
        #EXT-X-TARGETDURATION:2
        #EXT-X-MEDIA-SEQUENCE:17
        #EXT-X-MAP:URI="init.mp4"
        #EXTINF:2.000000,
        i17.m4s
        #EXTINF:1.960000,
        i18.m4s

        """

    private static func segments(_ text: String) throws -> MediaPlaylistSegments {
        try #require(try HLSPlaylist(text).segments)
    }

    @Test(arguments: [variants, singleFile, live]) func relativeAddressesStay(text: String) throws {
        let playlist = try HLSPlaylist(text)
        #expect(try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)) == [])
    }

    @Test func variantsHaveTheirSound() throws {
        let playlist = try #require(try HLSPlaylist(Self.variants).multivariant)
        let chosen = playlist.choose(RenditionChoice(quality: .worst))
        #expect(chosen.playlists.map(\.pathAndQuery) == ["/v/v1.m3u8", "/v/v2.m3u8"])
        let left = try #require(try playlist.edits(keeping: Set(chosen.playlists))).applied(to: bytes(Self.variants))
        #expect(try HLSPlaylist(left.text).multivariant?.playlists == chosen.playlists)
    }

    @Test func singleFileHasItsRanges() throws {
        let segments = try Self.segments(Self.singleFile)
        #expect(segments.all.map(\.range) == [1339..<18911, 18911..<36281, 36281..<53445])
        #expect(segments.initializations.map(\.range) == [0..<1339])
    }

    @Test func keyOfAnotherHostIsRewritten() throws {
        let playlist = try HLSPlaylist(Self.encrypted)
        let edits = try playlist.edits(for: .local, at: ProxyForm.local(playlist.base))
        #expect(edits.map(\.replacement) == ["http://player.lan:7335/https/keys.example/k.key"])
        #expect(try Self.segments(Self.encrypted).keys.map(\.url?.absolute) == ["https://keys.example/k.key"])
        #expect(playlist.addresses.map(\.role) == [.key, .segment, .segment])
    }

    @Test func liveStreamHasNoEnd() throws {
        let playlist = try HLSPlaylist(Self.live)
        #expect(playlist.media?.hasEnd == false)
        let rule = playlist.media?.refreshRule
        #expect(rule?.freshFor == .seconds(1) && rule?.silentAfter == .seconds(3))
        #expect(try HLSPlaylist(Self.singleFile).media?.hasEnd == true)
    }
}
