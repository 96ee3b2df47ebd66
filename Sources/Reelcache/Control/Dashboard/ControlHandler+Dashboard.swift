import CachePolicy
import ControlAPI
import Foundation
import HTTPModel
import HTTPTransport

extension ControlHandler {
    /// Answers a request for the dashboard: its page, to browsers, or one of its files.
    /// - Returns: false if the request is for something else.
    func respondWithDashboard(_ exchange: Exchange, _ path: Substring) -> Bool {
        guard access.hasDashboard else { return false }
        let name: Substring
        if ControlPages.isHome(path) {
            // Others get the text.
            guard ControlPages.acceptsHTML(exchange.request.combined("Accept")) else { return false }
            name = Substring(DashboardFile.pageName)
        } else if path.hasPrefix(DashboardFile.prefix) {
            name = path.dropFirst(DashboardFile.prefix.count)
        } else {
            return false
        }
        guard let file = DashboardFile.named(name) else { return false }
        if isReading(exchange) { file.respond(to: exchange) }
        return true
    }

    /// Makes a link that signs in one browser.
    func makeDashboardLink(_ exchange: Exchange) throws(ControlError) {
        try checkDashboard()
        var generator = SystemRandomNumberGenerator()
        let link = access.sessions.update { $0.makeLink(at: ControlAccess.now, using: &generator) }
        answer(exchange) { _ in DashboardLink(path: "/api/#link=\(link)", seconds: DashboardSessions.linkSeconds) }
    }

    /// Tells the page whether its browser is signed in, and whether it has to be for reading.
    func reportDashboardSession(_ exchange: Exchange) {
        let report = DashboardSessionReport(
            isSignedIn: access.isSignedIn(exchange.request), readsFreely: access.readsFreely(exchange.request))
        answer(exchange) { _ in report }
    }

    /// Exchanges a link or the token for a session.
    func beginDashboardSession(_ exchange: Exchange) throws(ControlError) {
        try checkDashboard()
        // Another site must not sign a browser in, not even if it knows how.
        guard Requester(exchange.request) == .own else {
            throw ControlError(403, "sign in from the dashboard itself")
        }
        receiveJSON(DashboardCredential.self, exchange) { [self] credential in
            do throws(ControlError) {
                let secrets = try begin(credential, for: exchange.request)
                try? respond(exchange, with: secrets)
            } catch {
                exchange.respond(error)
            }
        }
    }

    private func begin(
        _ credential: DashboardCredential, for request: RequestHead
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
        exchange.respond(201, json: try ControlJSON.line(DashboardKey(key: secrets.key))) {
            $0.field("Set-Cookie", "\(name)=\(secrets.cookie)\(Self.cookieAttributes)")
        }
    }

    /// Signs the browser out.
    func endDashboardSession(_ exchange: Exchange) {
        let secrets = ControlAccess.secrets(of: exchange.request)
        access.sessions.update { sessions in
            for secrets in secrets { sessions.end(secrets) }
        }
        let name = ControlAccess.cookieName(for: exchange.request)
        exchange.respond(204, text: "") { $0.field("Set-Cookie", "\(name)=\(Self.cookieAttributes); Max-Age=0") }
    }

    private func checkDashboard() throws(ControlError) {
        guard !access.hasDashboard else { return }
        throw ControlError(409, "there is no dashboard: \(ControlPages.withoutDashboard)")
    }
}
