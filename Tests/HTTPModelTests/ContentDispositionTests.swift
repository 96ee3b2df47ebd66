import HTTPModel
import Testing

@Suite struct ContentDispositionTests {
    @Test(arguments: [
        ("attachment", "attachment", nil), ("inline", "inline", nil), ("ATTACHMENT", "attachment", nil),
        ("x-own ; a=b", "x-own", nil),
        ("attachment; filename=film.mp4", "attachment", "film.mp4"),
        ("attachment; filename=\"film.mp4\"", "attachment", "film.mp4"),
        ("attachment;filename=\"film.mp4\";", "attachment", "film.mp4"),
        ("attachment ; FileName = \"film.mp4\" ; size=3", "attachment", "film.mp4"),
        ("inline; filename=\"a; b.mp4\"", "inline", "a; b.mp4"),
        ("attachment; filename=\"a \\\"b\\\" \\\\.mp4\"", "attachment", ".mp4"),
        ("attachment; filename=\"a \\\"b\\\".mp4\"", "attachment", "a \"b\".mp4"),
        ("attachment; filename=my film.mp4; x=y", "attachment", "my film.mp4"),
        ("attachment; filename=\"caf\u{E9}.mp4\"", "attachment", "caf\u{E9}.mp4"),
        ("attachment; filename=\"a%20b.mp4\"", "attachment", "a%20b.mp4"),
        ("attachment; filename=first.mp4; filename=second.mp4", "attachment", "first.mp4"),
    ])
    func aFieldIsRead(field: String, type: String, name: String?) throws {
        let disposition = try #require(ContentDisposition(parsing: field))
        #expect(disposition.type == type && disposition.fileName == name, "\(disposition)")
    }

    @Test(arguments: [
        ("filename*=UTF-8''na%C3%AFve.mp4", "na\u{EF}ve.mp4"),
        ("filename*=utf-8'en'%e2%82%ac%20rates.mp4", "\u{20AC} rates.mp4"),
        ("filename*=iso-8859-1'en'%A3%20rates.mp4", "\u{A3} rates.mp4"),
        // Preferred wherever it stands.
        ("filename=plain.mp4; filename*=UTF-8''better.mp4", "better.mp4"),
        ("filename*=UTF-8''better.mp4; filename=plain.mp4", "better.mp4"),
        // What cannot be read leaves the other.
        ("filename*=UTF-8''%FF.mp4; filename=plain.mp4", "plain.mp4"),
        ("filename*=UTF-8''%C3%.mp4; filename=plain.mp4", "plain.mp4"),
        ("filename*=koi8-r''%C1.mp4; filename=plain.mp4", "plain.mp4"),
        ("filename*=UTF-8'better.mp4; filename=plain.mp4", "plain.mp4"),
        ("filename*=better.mp4; filename=plain.mp4", "plain.mp4"),
        ("filename*=UTF-8''..; filename=plain.mp4", "plain.mp4"),
        ("filename*=UTF-8''%FF.mp4", nil),
        ("filename*=UTF-8''a%00.mp4; filename=plain.mp4", "plain.mp4"),
        ("filename=\"a\0.mp4\"", nil),
    ])
    func anExtendedNameIsDecoded(parameters: String, name: String?) throws {
        #expect(try #require(ContentDisposition(parsing: "attachment; " + parameters)).fileName == name)
    }

    @Test(arguments: [
        ("/etc/passwd", "passwd"), ("../../up.mp4", "up.mp4"), ("C:\\\\films\\\\a.mp4", "a.mp4"), ("dir/", "dir"),
        ("/", nil), ("..", nil), (".", nil), ("", nil),
        ("a/..", nil),
    ])
    func directoriesAreDropped(text: String, name: String?) throws {
        #expect(try #require(ContentDisposition(parsing: "attachment; filename=\"\(text)\"")).fileName == name)
        #expect(ContentDisposition(parsing: "attachment; filename*=UTF-8''%2e%2e%2Fb.mp4")?.fileName == "b.mp4")
    }

    @Test(arguments: [
        "", " ", "; filename=a.mp4", "filename=a.mp4", "\"attachment\"; filename=a.mp4", "attachment; filename=\"a.mp4",
        "attachment; filename", "attachment; =a.mp4",
        "attachment filename=a.mp4", "attachment, inline", "attachment; filename=\"a.mp4\" b",
        "attachment; filename=\"a.mp4\\",
    ])
    func whatIsNoneIsRefused(field: String) {
        #expect(ContentDisposition(parsing: field) == nil)
    }
}
