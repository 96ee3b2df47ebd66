import Activity
import Testing

/// Which form a scraper gets.
@Suite struct ExpositionFormatTests {
    @Test(arguments: [
        nil, "", "text/plain", "*/*", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "text/*;q=0.1",
        "application/openmetrics-text;q=0", "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;q=0.4,text/plain;q=0.5", "application/openmetrics-text;q=0.4,*/*",
        "application/openmetrics-text;q=high", "application/openmetrics-text;q=1.5",
        // Nonsense
        ",;,=;q=,\"", ";;;q=1", "application/openmetrics-text-not", String(repeating: ";", count: 5000),
    ]) func textFormatIsForAllThatPreferNothingElse(accept: String?) {
        #expect(ExpositionFormat(accept: accept) == .prometheus)
    }

    @Test(arguments: [
        "application/openmetrics-text", "application/openmetrics-text; version=1.0.0", "Application/OpenMetrics-Text",
        "application/openmetrics-text;version=\"1.0.0\"", "application/openmetrics-text;q=0.5,text/plain;q=0.5",
        "application/openmetrics-text;q=0.5 , text/plain ; q=0.4, */*",
        "text/*;q=0.2,application/openmetrics-text;q=0.3",
        // As Prometheus 2.42 sends it, and as 2.55 does.
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    ]) func openMetricsIsForThoseThatNameIt(accept: String) {
        #expect(ExpositionFormat(accept: accept) == .openMetrics)
    }

    @Test func contentTypesNameTheVersion() {
        #expect(
            ExpositionFormat.allCases.map(\.contentType) == [
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                "text/plain; version=0.0.4; charset=utf-8",
            ])
    }
}
