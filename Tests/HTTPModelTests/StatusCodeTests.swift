import HTTPModel
import Testing

@Suite struct StatusCodeTests {
    @Test(arguments: [
        (100, "Continue"), (200, "OK"), (401, "Unauthorized"), (408, "Request Timeout"), (409, "Conflict"),
        (411, "Length Required"),
        (413, "Content Too Large"), (417, "Expectation Failed"), (422, "Unprocessable Content"),
        (501, "Not Implemented"), (507, "Insufficient Storage"),
        (206, "Partial Content"), (304, "Not Modified"), (416, "Range Not Satisfiable"),
        (431, "Request Header Fields Too Large"), (299, "Unknown"), (-1, "Unknown"),
    ])
    func statusHasItsName(status: Int, reason: String) {
        #expect(StatusCode.reason(status) == reason)
    }
}
