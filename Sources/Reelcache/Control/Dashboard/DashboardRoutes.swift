import CachePolicy
import ControlAPI
import Foundation
import HTTPModel
import HTTPTransport

/// Who is signed in to the dashboard.
struct DashboardRoutes: Sendable {
    let access: ControlAccess

    var routes: [ControlRoute] {
        [
            ControlRoute(\.dashboardLink, makeLink),
            ControlRoute(\.dashboardSession) { [access] request in
                let report = DashboardSession.Report(
                    isSignedIn: access.isSignedIn(request.exchange.request),
                    readsFreely: access.readsFreely(request.exchange.request))
                request.answer { _ in report }
            },
            ControlRoute(\.beginDashboardSession, begin),
            ControlRoute(\.endDashboardSession) { [access] request in Self.end(request.exchange, access) },
        ]
    }

    /// Makes a link that signs in one browser.
    private func makeLink(_ request: ControlRequest<Void, DashboardSession.Link>) throws(ControlError) {
        try checkDashboard()
        var generator = SystemRandomNumberGenerator()
        let link = access.sessions.update { $0.makeLink(at: ControlAccess.now, using: &generator) }
        request.answer { _ in DashboardSession.Link(path: "/api/#link=\(link)", seconds: DashboardSessions.linkSeconds)
        }
    }

    /// Exchanges a link or the token for a session.
    private func begin(_ request: ControlRequest<DashboardSession.Credential, DashboardSession.Key>)
        throws(ControlError)
    {
        try checkDashboard()
        let exchange = request.exchange
        // Another site must not sign a browser in, not even if it knows how.
        guard Requester(exchange.request) == .own else {
            throw ControlError(403, "sign in from the dashboard itself")
        }
        request.receive { credential in
            do throws(ControlError) {
                let secrets = try begin(credential, for: exchange.request)
                try? respond(exchange, with: secrets)
            } catch {
                exchange.respond(error)
            }
        }
    }

    private func begin(
        _ credential: DashboardSession.Credential, for request: RequestHead
    ) throws(ControlError) -> DashboardSessions.Secrets {
        var generator = SystemRandomNumberGenerator()
        switch credential {
        case .link(let text):
            let secrets = access.sessions.update { $0.begin(link: text, at: ControlAccess.now, using: &generator) }
            if let secrets { return secrets }
            throw ControlError(
                403, "this link was used, or is more than a minute old: run reelcache dashboard for another")
        case .token(let text):
            guard access.token.isShown(as: text) else {
                throw ControlError(
                    403, "this is not the token: it is the text in \(access.place(of: access.token, for: request))")
            }
            return access.sessions.update { $0.begin(at: ControlAccess.now, using: &generator) }
        }
    }

    /// `Path` keeps the cookie from every other path, and so from all origins behind the proxy.
    private static let cookieAttributes = "; Path=/api/v1; HttpOnly; SameSite=Strict"

    private func respond(_ exchange: Exchange, with secrets: DashboardSessions.Secrets) throws {
        let name = ControlAccess.cookieName(for: exchange.request)
        exchange.respond(201, json: try ControlJSON.line(DashboardSession.Key(key: secrets.key))) {
            $0.field("Set-Cookie", "\(name)=\(secrets.cookie)\(Self.cookieAttributes)")
        }
    }

    /// Signs the browser out.
    private static func end(_ exchange: Exchange, _ access: ControlAccess) {
        let secrets = ControlAccess.secrets(of: exchange.request)
        access.sessions.update { sessions in
            for secrets in secrets { sessions.end(secrets) }
        }
        let name = ControlAccess.cookieName(for: exchange.request)
        exchange.respond(204, text: "") { $0.field("Set-Cookie", "\(name)=\(cookieAttributes); Max-Age=0") }
    }

    private func checkDashboard() throws(ControlError) {
        guard !access.hasDashboard else { return }
        throw ControlError(409, "there is no dashboard: \(ControlPages.withoutDashboard)")
    }
}
