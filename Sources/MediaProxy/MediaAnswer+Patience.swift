import HTTPModel
import CacheFill
import EventIO
import Upstream

/// How long a player waits for its first byte.
///
/// A fetch tries a silent origin several times, waiting `stall_timeout` each time. A player that has received
/// nothing gets an error, or the stored bytes, within one and a half of these timeouts.
enum Patience {
    case fresh
    case running(LoopTimer)
    /// The wait is over; there is no second one.
    case spent
}

extension MediaAnswer {
    /// Starts the timer, as the first byte depends on an origin from here on.
    /// - Returns: whether the player may wait for it.
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

    private var usual: Double {
        filler.upstream.settings.stallTimeout * Self.stallsWaited + (resolvedRule.resolver?.timeout ?? 0)
    }

    /// For a live playlist, the time until players that get the same version again would wait in vain.
    private var untilSilent: Double? {
        guard let live = doubted?.generation.head.live else { return nil }
        return Double(live.answeredAt +| live.silentAfter -| filler.filler.instant) / 1e9
    }

    private static let stallsWaited = 1.5
    /// In seconds: anything shorter would expire too easily on a busy machine.
    private static let shortest = 1.0

    func endWaiting() {
        if case .running(let timer) = patience { timer.cancel() }
    }

    private func losePatience() {
        patience = .spent
        guard exchange.isOpen else { return }
        // Read while the fetch is still followed.
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

    /// Answers that the origin is silent.
    func failSilent(_ silence: FillError? = nil) {
        let silence = silence ?? self.silence
        handler.metrics.errors.add(silence.kind.rawValue)
        fail(silence)
    }

    /// The timeout of the fetch that this answer follows, which often runs for other requests as well.
    private var silence: FillError {
        .upstream(.timedOut(host: route.url.host, phase: (opening?.phase ?? reader?.followedPhase) ?? .response))
    }
}
