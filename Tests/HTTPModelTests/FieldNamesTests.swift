import HTTPModel
import Testing

@Suite struct FieldNamesTests {
    private let names: FieldNames = ["etag", "Vary", "date", "content-type"]

    @Test(arguments: ["etag", "ETAG", "vary", "DATE", "Content-Type"]) func namesAreFoundWithoutRegardToCase(
        _ name: String
    ) {
        #expect(names.contains(name))
    }

    /// Of the same length, of others, longer than all, with another character whose code differs by the bit of the
    /// case.
    @Test(arguments: ["", "tags", "eta", "etag ", "content-typ", "content-types", "content\rtype", "d\u{201}te"])
    func othersAreNot(_ name: String) {
        #expect(!names.contains(name))
    }

    @Test func noNamesHaveNone() {
        let none: FieldNames = []
        #expect(!none.contains("") && !none.contains("a"))
    }
}

@Suite struct ASCIITests {
    @Test(arguments: [
        ("", "", true), ("a", "A", true), ("Range", "rANGE", true), ("a", "b", false), ("a", "aa", false),
        ("@", "`", false), ("é", "É", false),
    ])
    func textIsComparedWithoutRegardToTheCaseOfASCII(_ a: String, _ b: String, _ isEqual: Bool) {
        #expect(ASCII.equalIgnoringCase(a, b) == isEqual)
        #expect(ASCII.equalIgnoringCase("<\(a)>".dropFirst().dropLast(), b) == isEqual)
    }

    @Test func onlyLettersOfASCIIAreMadeLower() {
        let text = String(String.UnicodeScalarView((0..<0x250).compactMap(Unicode.Scalar.init)))
        let lower = ASCII.lowercased(text)
        for (before, after) in zip(text.unicodeScalars, lower.unicodeScalars) {
            #expect(after == (("A"..."Z").contains(before) ? Unicode.Scalar(before.value + 32)! : before))
        }
        #expect(lower.unicodeScalars.count == text.unicodeScalars.count)
        #expect(ASCII.lowercased("<ABc>".dropFirst().dropLast()) == "abc")
    }

    @Test(arguments: [("", ""), (" \t", ""), ("a", "a"), (" a b\t", "a b"), ("\u{A0}a", "\u{A0}a")])
    func spacesAndTabsAreTrimmed(_ text: String, _ trimmed: String) {
        #expect(ASCII.trimmed(text) == trimmed)
        #expect(ASCII.trimmed(text[...]) == trimmed)
        let bytes = Array(text.utf8)
        #expect(bytes.withUnsafeBytes { Array(ASCII.trimmed($0)) } == Array(trimmed.utf8))
    }

    @Test func beginningsAreComparedWithoutRegardToCase() {
        #expect(ASCII.begins("X-Forwarded-For", with: "x-forwarded-"))
        #expect(!ASCII.begins("X-Forward", with: "x-forwarded-"))
        #expect(ASCII.begins("a", with: ""))
    }
}
