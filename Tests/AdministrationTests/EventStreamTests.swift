import Testing

@testable import Administration

/// How server-sent events are read (WHATWG HTML §9.2.6).
@Suite struct EventStreamTests {
    private func events(_ text: String) -> [EventStream.Event] {
        var stream = EventStream()
        return stream.append(Array(text.utf8))
    }

    private func event(_ name: String, _ data: String, id: String = "") -> EventStream.Event {
        EventStream.Event(name: name, data: Array(data.utf8), id: id)
    }

    /// Text, and the events in it.
    private static let samples: [(text: String, events: [(name: String, data: String, id: String)])] = [
        ("event: download\ndata: {\"id\":1}\n\n", [("download", "{\"id\":1}", "")]),
        ("data: a\n\ndata: b\n\n", [("message", "a", ""), ("message", "b", "")]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", [("message", "a", ""), ("message", "b", "")]),
        ("data: a\r\rdata: b\r\r", [("message", "a", ""), ("message", "b", "")]),
        ("data: a\r\n\ndata: b\n\r\n", [("message", "a", ""), ("message", "b", "")]),
        ("event: x\r\ndata: one\r\ndata: two\r\n\r\n", [("x", "one\ntwo", "")]),
        ("data: one\ndata:two\ndata:  three\n\n", [("message", "one\ntwo\n three", "")]),
        ("data\ndata\n\n", [("message", "\n", "")]),
        ("data: \n\n", [("message", "", "")]),
        (": nobody reads this\n\n:\n\ndata: a\n: nor this\n\n", [("message", "a", "")]),
        (
            "id: s-1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
            [("message", "a", "s-1"), ("message", "b", "s-1"), ("message", "c", "")]
        ),
        ("id: 7\nid: 8\u{0}\ndata: a\n\n", [("message", "a", "7")]),
        ("event: a\n\ndata: b\n\n", [("message", "b", "")]),
        ("id: 3\n\ndata: b\n\n", [("message", "b", "3")]),
        ("event: a\nevent: b\nretry: 10\nunknown: c\ndata: d: e\n\n", [("b", "d: e", "")]),
        ("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", [("message", "a", "")]),
        ("data: not whole\n", []),
        ("data: not whole", []),
        ("\n\n\r\n", []),
        ("data: ü€𝄞\n\n", [("message", "ü€𝄞", "")]),
    ]

    @Test(arguments: samples.indices) func eventsAreTheSameHoweverTheyAreCut(index: Int) {
        let (text, expected) = Self.samples[index]
        let bytes = Array(text.utf8), whole = expected.map { event($0.name, $0.data, id: $0.id) }
        #expect(events(text) == whole)
        for size in 1...3 {
            var stream = EventStream()
            let pieces = stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
            #expect(pieces.flatMap { stream.append($0) } == whole, "in pieces of \(size)")
        }
        for cut in bytes.indices {
            var stream = EventStream()
            #expect(stream.append(bytes[..<cut]) + stream.append(bytes[cut...]) == whole, "cut at \(cut)")
        }
    }

    @Test func whatIsNotUTF8IsDataAllTheSame() {
        var stream = EventStream()
        #expect(
            stream.append(Array("data: ".utf8) + [0xFF, 0xFE, 0x0A, 0x0A]) == [
                EventStream.Event(name: "message", data: [0xFF, 0xFE], id: "")
            ])
    }
}
