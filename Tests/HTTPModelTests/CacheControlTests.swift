import HTTPModel
import Testing

@Suite struct CacheControlTests {
    @Test func absentFieldSaysNothing() {
        let none = CacheControl(parsing: nil)
        #expect(none == CacheControl(parsing: ""))
        #expect(!none.noStore && !none.noCache && !none.mustRevalidate && !none.isPrivate && !none.immutable && !none.onlyIfCached)
        #expect(none.maxAge == nil && none.sMaxAge == nil && none.staleIfError == nil && none.staleWhileRevalidate == nil)
    }

    @Test(arguments: [
        ("no-store", \.noStore), ("no-cache", \.noCache), ("must-revalidate", \.mustRevalidate), ("private", \.isPrivate),
        ("immutable", \.immutable), ("only-if-cached", \.onlyIfCached),
    ] as [(String, WritableKeyPath<CacheControl, Bool> & Sendable)])
    func directiveSetsItsFlagAndNoOther(name: String, flag: WritableKeyPath<CacheControl, Bool> & Sendable) {
        var expected = CacheControl(parsing: nil)
        expected[keyPath: flag] = true
        for text in [name, name.uppercased(), " foo=1 ,,\(name) , bar", "x=\"no-store, private\", \(name)"] {
            #expect(CacheControl(parsing: text) == expected, "\(text)")
        }
    }

    @Test(arguments: [
        ("max-age", \.maxAge), ("s-maxage", \.sMaxAge), ("stale-if-error", \.staleIfError),
        ("stale-while-revalidate", \.staleWhileRevalidate),
    ] as [(String, WritableKeyPath<CacheControl, Int64?> & Sendable)])
    func directiveSetsItsSeconds(name: String, seconds: WritableKeyPath<CacheControl, Int64?> & Sendable) {
        let arguments = [
            ("=60", 60), ("=\"60\"", 60), ("=0", 0), ("=99999999999999999999", Int64.max), ("=-5", 0), ("=a", 0), ("", 0), ("=1.5", 0),
        ]
        for (argument, value) in arguments {
            var expected = CacheControl(parsing: nil)
            expected[keyPath: seconds] = value
            #expect(CacheControl(parsing: name + argument) == expected, "\(name)\(argument)")
        }
    }

    @Test func strictestOfRepeatedDirectivesCounts() {
        #expect(CacheControl(parsing: "max-age=60, max-age=30, max-age=90").maxAge == 30)
    }

    @Test func quotedArgumentHidesItsCommasAndEscapes() {
        let control = CacheControl(parsing: #"no-cache="a, no-store \", private", max-age=5"#)
        #expect(control.noCache && !control.noStore && !control.isPrivate)
        #expect(control.maxAge == 5)
    }

    @Test func unfinishedQuoteDoesNotTrap() {
        #expect(CacheControl(parsing: #"no-store, x="abc\"#).noStore)
    }
}
