/// One request of the control interface, as the server and its clients read it: how it is sent, and what is in its body
/// and in the answer.
///
/// - Parameters:
///   - Body: what the request's body holds: a value as JSON (`RequestBody`), bytes, or nothing (`Void`).
///   - Answer: what the answer holds, or each line of it, likewise; `Void` also for events.
package struct Endpoint<Body, Answer>: Sendable {
    package let traits: EndpointTraits

    /// - Parameters:
    ///   - path: below `/api/v1`.
    ///   - query: the parameters that it accepts.
    ///   - key: the one that distinguishes it from another endpoint with the same method and path.
    ///   - access: who may send it; nil for whoever may read if it is a GET, otherwise for the token.
    init(
        _ method: EndpointTraits.Method, _ path: String, _ query: EndpointTraits.Parameter...,
        key: EndpointTraits.Parameter? = nil,
        access: EndpointTraits.Access? = nil
    ) {
        traits = EndpointTraits(
            method: method, path: EndpointTraits.root + path, query: query, key: key,
            access: access ?? (method == .get ? .reading : .token))
    }
}

/// How a request of the control interface is sent.
package struct EndpointTraits: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
    }

    /// Who may send a request.
    package enum Access: Sendable {
        /// Anybody: whether a request is signed in is what it asks, or its body has the token or a link.
        case open
        /// Whoever may read.
        case reading
        /// Whoever shows the token: it changes something, tells secrets or where files are, or keeps the disk busy.
        case token
    }

    /// HEAD works wherever GET does.
    package let method: Method
    /// The whole path.
    package let path: String
    /// The parameters that it accepts, besides `secrets`, which each accepts: whether to show secrets in URLs.
    package let query: [Parameter]
    /// The one that distinguishes it from another endpoint with the same method and path.
    package let key: Parameter?
    package let access: Access

    /// What all paths begin with.
    package static let root = "/api/v1"

    /// The name of a parameter of the control interface.
    package enum Parameter: String, Sendable {
        case after, all, brief, buckets, cap, category, ended, every, filter, from, growing, id, keep, latest, limit,
            offset
        case repair, replace, secrets, segments, sort, span, state, title, to, url, urls
        case played
        case dryRun = "dry_run"
        case includePinned = "include_pinned"
        case olderThan = "older_than"
    }
}
