import HTTPModel
import CacheFill
import EventIO
import Upstream

/// How long a player waits for its first byte.
///
/// A fetch tries an origin that is silent several times, each for as long as `stall_timeout` says. Whoever has heard
/// nothing yet hears within one and a half of these what is wrong, or gets what is stored.
enum Patience {
    case fresh
    case running(LoopTimer)
    /// Nobody is waited for a second time.
    case spent
}

extension MediaAnswer {
    /// The first byte depends on an origin from here on.
    /// - Returns: whether it may be waited for.
    func beginWaiting() -> Bool {
        switch patience {
        case .spent: return false
        case .running: return true
        case .fresh:
            let timer = LoopTimer(on: exchange.loop) { [unowned self] in losePatience() }
            timer.schedule(afterSeconds: max(Self.shortest, min(usual, untilSilent ?? usual)))
            patience = .running(timer)
            return true
        }
    }

    private var usual: Double { filler.upstream.settings.stallTimeout * Self.stallsWaited }

    /// Of a live playlist, until players that get the same again would wait in vain.
    private var untilSilent: Double? {
        guard let live = doubted?.generation.head.live else { return nil }
        return Double(live.answeredAt +| live.silentAfter -| filler.filler.instant) / 1e9
    }

    private static let stallsWaited = 1.5
    /// In seconds: less is nothing on a machine that has much to do.
    private static let shortest = 1.0

    func endWaiting() {
        if case .running(let timer) = patience { timer.cancel() }
    }

    private func losePatience() {
        patience = .spent
        guard exchange.isOpen else { return }
        // While it is followed.
        let silence = silence
        if opening != nil {
            leaveOpening()
            doubted == nil ? failSilent(silence) : answerInDoubt(after: silence)
        } else if playlistWaiter != nil {
            leavePlaylist()
            doubted == nil ? failSilent(silence) : answerInDoubt(after: silence)
        } else if let reader, reader.isFollowing {
            reader.finish()
            self.reader = nil
            failSilent(silence)
        }
    }

    /// What nobody is left to wait for.
    func failSilent(_ silence: FillError? = nil) {
        let silence = silence ?? self.silence
        handler.metrics.errors.add(silence.kind.rawValue)
        fail(silence)
    }

    /// What the one that is followed has waited for: often for others of this proxy.
    private var silence: FillError {
        .upstream(.timedOut(host: route.url.host, phase: (opening?.phase ?? reader?.followedPhase) ?? .response))
    }
}
