import HTTPModel
import Testing

@Suite struct CacheControlTests {
    @Test func absentFieldSaysNothing() {
        let none = CacheControl(parsing: nil)
        #expect(none == CacheControl(parsing: ""))
        #expect(
            !none.noStore && !none.noCache && !none.mustRevalidate && !none.isPrivate && !none.immutable
                && !none.onlyIfCached)
        #expect(!none.isPublic && !none.mustUnderstand)
        #expect(
            none.maxAge == nil && none.sMaxAge == nil && none.staleIfError == nil && none.staleWhileRevalidate == nil)
        #expect(none.maxStale == nil && none.minFresh == nil)
    }

    @Test(
        arguments: [
            ("no-store", \.noStore), ("no-cache", \.noCache), ("must-revalidate", \.mustRevalidate),
            ("private", \.isPrivate), ("proxy-revalidate", \.proxyRevalidate),
            ("immutable", \.immutable), ("only-if-cached", \.onlyIfCached), ("public", \.isPublic),
            ("must-understand", \.mustUnderstand),
        ] as [(String, WritableKeyPath<CacheControl, Bool> & Sendable)])
    func directiveSetsItsFlagAndNoOther(name: String, flag: WritableKeyPath<CacheControl, Bool> & Sendable) {
        var expected = CacheControl(parsing: nil)
        expected[keyPath: flag] = true
        for text in [name, name.uppercased(), " foo=1 ,,\(name) , bar", "x=\"no-store, private\", \(name)"] {
            #expect(CacheControl(parsing: text) == expected, "\(text)")
        }
    }

    @Test(
        arguments: [
            ("max-age", \.maxAge), ("s-maxage", \.sMaxAge), ("stale-if-error", \.staleIfError),
            ("stale-while-revalidate", \.staleWhileRevalidate),
        ] as [(String, WritableKeyPath<CacheControl, Int64?> & Sendable)])
    func directiveSetsItsSeconds(name: String, seconds: WritableKeyPath<CacheControl, Int64?> & Sendable) {
        let arguments = [
            ("=60", 60), ("=\"60\"", 60), ("=0", 0), ("=99999999999999999999", Int64.max), ("=-5", 0), ("=a", 0),
            ("", 0), ("=1.5", 0),
        ]
        for (argument, value) in arguments {
            var expected = CacheControl(parsing: nil)
            expected[keyPath: seconds] = value
            #expect(CacheControl(parsing: name + argument) == expected, "\(name)\(argument)")
        }
    }

    @Test func strictestOfRepeatedDirectivesCounts() {
        #expect(CacheControl(parsing: "max-age=60, max-age=30, max-age=90").maxAge == 30)
        #expect(CacheControl(parsing: "max-stale, max-stale=30, max-stale=90").maxStale == 30)
        #expect(CacheControl(parsing: "min-fresh=60, min-fresh=x, min-fresh=90, min-fresh=30").minFresh == 90)
    }

    // RFC 9111 §5.2.1.2: without a number, any staleness. What is no number is not that.
    @Test(
        arguments: [
            ("max-stale", .max), ("max-stale ,x", .max), ("max-stale=5", 5), ("max-stale=\"5\"", 5),
            ("max-stale=99999999999999999999", .max), ("max-stale=0", 0),
            ("max-stale=", 0), ("max-stale=x", 0), ("max-stale=-1", 0), ("max-stale = 5", 0), ("max-stale;5", 0),
            ("x, max-stale=5 , y", 5),
        ] as [(String, Int64)])
    func stalenessIsWhatTheClientNames(field: String, seconds: Int64) {
        var expected = CacheControl(parsing: nil)
        expected.maxStale = seconds
        #expect(CacheControl(parsing: field) == expected)
    }

    // §5.2.1.3: what is no number asks for nothing.
    @Test(
        arguments: [
            ("min-fresh=5", 5), ("min-fresh=\"5\"", 5), ("min-fresh=99999999999999999999", .max), ("min-fresh=0", 0),
            ("min-fresh", nil), ("min-fresh=x", nil),
            ("min-fresh=-1", nil), ("min-fresh = 5", nil),
        ] as [(String, Int64?)])
    func lifetimeToComeIsWhatTheClientNames(field: String, seconds: Int64?) {
        var expected = CacheControl(parsing: nil)
        expected.minFresh = seconds
        #expect(CacheControl(parsing: field) == expected)
    }

    @Test func spaceBeforeTheArgumentMakesItNone() {
        #expect(CacheControl(parsing: "max-age = 60").maxAge == 0)
        #expect(CacheControl(parsing: "no-store = x, public\t").noStore)
    }

    @Test func quotedArgumentHidesItsCommasAndEscapes() {
        let control = CacheControl(parsing: #"no-cache="a, no-store \", private", max-age=5"#)
        #expect(control.noCache && !control.noStore && !control.isPrivate)
        #expect(control.maxAge == 5)
    }

    @Test func unfinishedQuoteDoesNotTrap() {
        #expect(CacheControl(parsing: #"no-store, x="abc\"#).noStore)
    }

    /// Each of these quotes would be looked for to the end of the field.
    @Test(.timeLimit(.minutes(5))) func quotesThatNothingClosesAreReadOnce() {
        let field = String(repeating: #"a="\","#, count: 100_000) + "no-store, max-age=5"
        #expect(CacheControl(parsing: field).noStore)
        #expect(CacheControl(parsing: field).maxAge == 5)
    }

    // RFC 9111 §5.2.2.7: for the named fields alone. What names none is for the whole.
    @Test(
        arguments: [
            ("private=\"X-A\"", ["x-a"]), ("private=X-A", ["x-a"]), ("private=\" X-A ,x-B\", public", ["x-a", "x-b"]),
            ("private=\"a\", private=\"b\"", ["a", "b"]),
            ("private", nil), ("private=", nil), ("private=\"\"", nil), ("private=\"a b\"", nil),
            ("private=\"a", nil), ("private = a", nil), ("private=\",\"", nil), ("private=\"a, \u{E9}\"", nil),
        ] as [(String, [String]?)])
    func fieldsForOneUserAreNamed(field: String, names: [String]?) {
        let control = CacheControl(parsing: field)
        #expect(control.isPrivate == (names == nil))
        #expect(control.privateFields == names ?? [])
    }

    // RFC 9213 §2.1
    @Test(
        arguments: [
            ("max-age=60", "max-age=60"), ("max-age=60;x=1, must-revalidate", "max-age=60, must-revalidate"),
            ("no-store", "no-store"), ("no-store=?0, public", "public"), ("private=\"x-a\"", "private=\"x-a\""),
            ("unknown=(1 2), immutable", "immutable"), ("unknown=:YWJj:, unknown2=1.5, public", "public"),
            // The last of several counts, here.
            ("max-age=60, max-age=30", "max-age=30"), ("max-age=30, max-age=60", "max-age=60"),
            // What is no integer is no number of seconds.
            ("max-age=\"60\"", "max-age=x"), ("max-age=1.5", "max-age=x"), ("max-age=-1", "max-age=x"),
            ("max-age=(60)", "max-age=x"), ("max-age", "max-age=x"), ("no-store=(1)", "no-store"),
            ("max-age=999999999999999", "max-age=999999999999999"),
        ] as [(String, String)])
    func targetedFieldIsADictionary(field: String, same: String) {
        #expect(CacheControl(targeted: field) == CacheControl(parsing: same))
    }

    @Test(arguments: [
        "", " ", "Max-Age=60", "max-age=60,", "max-age =60", "max-age=60;", "max-age=", "max-age=9999999999999999",
        "no-store max-age=60", ",", "private=\"a", "\u{E9}", "max-age=60 \u{0}",
        "a=\"\(String(repeating: "a", count: 1024))\"",
    ])
    func targetedFieldThatIsNoneIsIgnored(field: String) {
        #expect(CacheControl(targeted: field) == nil)
    }
}
