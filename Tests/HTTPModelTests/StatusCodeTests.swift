import HTTPModel
import Testing

@Suite struct StatusCodeTests {
    @Test(arguments: [
        (200, "OK"), (206, "Partial Content"), (304, "Not Modified"), (416, "Range Not Satisfiable"),
        (431, "Request Header Fields Too Large"), (299, "Unknown"), (-1, "Unknown"),
    ])
    func statusHasItsName(status: Int, reason: String) {
        #expect(StatusCode.reason(status) == reason)
    }
}
