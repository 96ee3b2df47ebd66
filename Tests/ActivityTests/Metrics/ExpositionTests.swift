import Testing

@testable import Activity

/// The text of metrics, in both forms.
@Suite struct ExpositionTests {
    private func text(_ families: MetricFamily..., as format: ExpositionFormat) -> String {
        String(decoding: Exposition.bytes(families, format), as: UTF8.self)
    }

    @Test func nothingIsTheEnd() {
        #expect(text(as: .openMetrics) == "# EOF\n")
        #expect(text(as: .prometheus) == "")
    }

    @Test func counterEndsWithTotal() {
        let bytes = MetricFamily.each(
            .counter, "sent_bytes", in: .bytes, by: "source", [("cache", .count(.max)), ("origin", .count(0))], "Sent.")
        #expect(
            text(bytes, as: .openMetrics) == """
                # HELP sent_bytes Sent.
                # TYPE sent_bytes counter
                # UNIT sent_bytes bytes
                sent_bytes_total{source="cache"} 18446744073709551615
                sent_bytes_total{source="origin"} 0
                # EOF

                """)
        #expect(
            text(bytes, as: .prometheus) == """
                # HELP sent_bytes_total Sent.
                # TYPE sent_bytes_total counter
                sent_bytes_total{source="cache"} 18446744073709551615
                sent_bytes_total{source="origin"} 0

                """)
    }

    @Test func informationIsAGaugeInTheOlderFormat() {
        let build = MetricFamily(
            name: "build", kind: .info, unit: nil, help: "It.",
            samples: [
                .init(
                    labels: [.init(name: "version", value: "1"), .init(name: "commit", value: "a")], value: .count(1))
            ])
        #expect(
            text(build, as: .openMetrics)
                == "# HELP build It.\n# TYPE build info\nbuild_info{version=\"1\",commit=\"a\"} 1\n# EOF\n")
        #expect(
            text(build, as: .prometheus)
                == "# HELP build_info It.\n# TYPE build_info gauge\nbuild_info{version=\"1\",commit=\"a\"} 1\n")
    }

    @Test func levelsMayBeNegativeAndNumbersHaveFractions() {
        let text = text(
            .one(.gauge, "a", .level(-3), "A."), .one(.gauge, "b", .number(0.25), "B."),
            .one(.gauge, "c", .number(7), "C."),
            as: .prometheus)
        for line in ["a -3", "b 0.25", "c 7"] { #expect(text.split(separator: "\n").contains { $0 == line }) }
    }

    /// Names that an origin or a client chose.
    @Test func labelsAreEscapedAndMayBeAnyText() {
        let hosts = MetricFamily.each(
            .gauge, "h", by: "host",
            [("a\"b\\c\nd\re\u{0}{},=", .level(1)), ("bücher.example", .level(2)), ("\u{202E}", .level(3))],
            "Quotes \" and \\ in help.")
        #expect(
            text(hosts, as: .openMetrics) == """
                # HELP h Quotes \\" and \\\\ in help.
                # TYPE h gauge
                h{host="a\\"b\\\\c\\nd\re\u{0}{},="} 1
                h{host="bücher.example"} 2
                h{host="\u{202E}"} 3
                # EOF

                """)
        #expect(text(hosts, as: .prometheus).hasPrefix("# HELP h Quotes \" and \\\\ in help.\n"))
    }

    @Test func durationsAreCumulativeInSeconds() {
        let histogram = LatencyHistogram()
        // Below the first bound, on bounds, and beyond the last.
        for value: UInt64 in [1, (1 << 15) - 1, 1 << 15, 1 << 35, 60_000_000_000] {
            histogram.record(nanoseconds: value)
        }
        let lines = text(
            .each(
                .histogram, "t_seconds", in: .seconds, by: "cache",
                [("hit", .durations(DurationBuckets(histogram.counts)))], "T."),
            as: .openMetrics
        ).split(separator: "\n")
        #expect(lines[1] == "# TYPE t_seconds histogram" && lines[2] == "# UNIT t_seconds seconds")
        #expect(lines[3] == "t_seconds_bucket{cache=\"hit\",le=\"0.000032767\"} 2")
        #expect(lines[4] == "t_seconds_bucket{cache=\"hit\",le=\"0.000065535\"} 3")
        #expect(lines[23] == "t_seconds_bucket{cache=\"hit\",le=\"34.359738367\"} 3")
        #expect(lines[24] == "t_seconds_bucket{cache=\"hit\",le=\"+Inf\"} 5")
        #expect(lines[25] == "t_seconds_sum{cache=\"hit\"} 94.359803904")
        #expect(lines[26] == "t_seconds_count{cache=\"hit\"} 5")
        #expect(lines[27] == "# EOF" && lines.count == 28)
    }

    @Test(arguments: [
        (0, "0"), (1, "0.000000001"), (999_999_999, "0.999999999"), (1_000_000_000, "1"), (1_500_000_000, "1.5"),
        (UInt64.max, "18446744073.709551615"),
    ]) func secondsAreExact(nanoseconds: UInt64, text: String) {
        #expect(Exposition.seconds(nanoseconds: nanoseconds) == text)
    }
}
