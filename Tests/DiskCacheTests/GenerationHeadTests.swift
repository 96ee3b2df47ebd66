import CachePolicy
import DiskCache
import HTTPModel
import Testing

@Suite struct GenerationHeadTests {
    /// An origin must not choose how much memory its fields take, nor how long the head of a hit is.
    @Test func confirmationsAddNoMoreThanIsKeptOfAnAnswer() {
        var head = OpenStore.head()
        for round in 0..<20 {
            var fields = HeaderFields()
            fields.append("Cache-Control", "max-age=\(round)")
            for number in 0..<20 {
                fields.append("A\(round)x\(number)-Cache-Control", String(repeating: "a", count: 200))
            }
            let times = ResponseTimes(fields, requestedAt: Int64(round), receivedAt: Int64(round))
            head = head.freshened(by: fields, isPublic: true, CacheTerms(.private), times: times, instant: 0)
            #expect(head.fields.canBeKept && head.times == times, "\(round)")
        }
        #expect(head.fields["Cache-Control"] == "max-age=0")
    }
}
