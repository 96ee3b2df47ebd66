import TestSupport
import Testing

/// What parts of the dashboard make of reports that no proxy can be brought to send in a test's time.
@Suite(.serialized, Player.areExpected(.chromium))
struct DashboardPartsTests {
    private let stage: DashboardStage

    init() throws {
        stage = try DashboardStage()
        try stage.waitUntilLive()
        // The page's own stream ends, so that only the test reports.
        try stage.tab.evaluate(
            """
            Object.defineProperty(document, "hidden", {value: true});
            document.dispatchEvent(new Event("visibilitychange"));
            globalThis.report = (time, change = {}) => ({
                time, served: {failures: 0}, downloads: [], plays: [], transfers: [],
                cache: {size: 0, limit: 1e9, pinned: 0}, ...change});
            globalThis.play = (id, url, title) => ({id, url, title, segments: [], state: "active", player: "mpv",
                client: "127.0.0.1", from_cache: 0, from_origin: 0, since: 0});
            """)
    }

    /// Failures count for five minutes, though no report comes before or after them.
    @Test func failuresOfFiveMinutesAreCounted() throws {
        let tab = stage.tab
        try tab.evaluate(
            """
            import("/api/dashboard/health.js").then(({show, judge}) => {
                const verdict = () => document.querySelector("#verdict").textContent.slice(0, 11), now = Date.now();
                show(report(now / 1000)); show(report(now / 1000 + 700, {served: {failures: 3}}));
                const verdicts = [verdict()];
                Date.now = () => now + 299_000; judge(); verdicts.push(verdict());
                Date.now = () => now + 301_000; judge(); verdicts.push(verdict());
                globalThis.verdicts = verdicts.join("|");
            })
            """)
        try tab.wait(for: "globalThis.verdicts")
        #expect(try tab.text("verdicts") == "3 responses|3 responses|All is well")
    }

    @Test func failedDownloadsBeyondThePageAreSaid() throws {
        let tab = stage.tab
        try tab.evaluate(
            """
            const finished = Date.now() / 1000 - 60, url = "https://a.example/b", ask = fetch;
            const downloads = Array.from({length: 100}, (_, id) => ({id, url, finished}));
            globalThis.fetch = async (url, options) => String(url).includes("state=failed")
                ? Response.json({total: 300, downloads}) : ask(url, options);
            const parts = ["downloads", "health"].map(one => import(`/api/dashboard/${one}.js`));
            Promise.all(parts).then(async ([downloads, health]) => {
                await downloads.refresh(); health.show(report(Date.now() / 1000));
            })
            """)
        try tab.wait(for: "/^At least 100 downloads .*Seen since/.test(document.querySelector('#verdict').textContent)")
    }

    /// What a transfer brings is drawn from reports, and where players read: a map is requested again soon if something
    /// else comes, and rarely if nothing does.
    @Test func mapIsRequestedAgainForWhatNoReportShows() throws {
        let tab = stage.tab
        try tab.evaluate(
            """
            const ask = fetch, begin = Date.now(), times = [], url = "http://a.example/b.m3u8", later = setTimeout;
            const whole = {unit: "segments", from: 0, to: 100, length: 100, cells: [50]};
            const strips = ["low", "sound"].map(name => ({name, ...whole, arriving: [], readers: []}));
            const transfer = {id: "a", url, purposes: ["play"], from: 0, received: 1};
            let time = 0;
            Date.now = () => begin + time * 1000;
            // For this long, an answer is shared.
            globalThis.setTimeout = (act, milliseconds) => milliseconds === 500 ? act() : later(act, milliseconds);
            globalThis.fetch = async (path, options) => String(path).includes("buckets=400")
                ? (times.push(time), {ok: true, json: async () => ({strips})}) : ask(path, options);
            import("/api/dashboard/now.js").then(async ({show}) => {
                const at = async (seconds, from_origin, ...transfers) => {
                    time = seconds;
                    const segments = [{rendition: "low", number: seconds + 1, count: 100}];
                    show(report(0, {transfers, plays: [{...play(1, url, "b"), from_origin, segments}]}));
                    // The answer comes at once, so that it is taken before another task runs.
                    await ask("/healthz");
                };
                await at(0, 0); await at(3, 0); await at(6, 7); await at(7, 9); await at(9, 9); await at(12, 9);
                await at(15, 9, transfer); await at(18, 12, transfer); await at(21, 15, transfer); await at(24, 18);
                await at(33, 18); await at(34, 18);
                const card = document.querySelector("#plays .card"), isWhole = card.scrollHeight <= card.clientHeight;
                globalThis.asked = `${times} ${card.querySelector(".readers").getAttribute("d")} ${isWhole}`;
            })
            """)
        try tab.wait(for: "globalThis.asked")
        #expect(try tab.text("asked") == "0,6,9,15,24,34 M340.0 -2V12 true")
    }

    /// Another process numbers its plays anew, names come with heads, and not all are listed.
    @Test func cardsAreThoseOfTheirPlays() throws {
        let tab = stage.tab
        try tab.evaluate(
            """
            import("/api/dashboard/now.js").then(({show}) => {
                const shown = () => [...document.querySelectorAll("#plays .card")]
                    .map(one => `${one.dataset.url} ${one.querySelector("h4").textContent}`).join();
                const hidden = {plays: 5, transfers: 0};
                const one = (...values) => (show(report(0, {plays: [play(...values)], hidden})), shown());
                globalThis.cards = [one(1, "https://a.example/a", "a"), one(1, "https://a.example/b", "b"),
                    one(1, "https://a.example/b", "Film"), document.querySelector("#sum-playing").textContent].join("|");
            })
            """)
        try tab.wait(for: "globalThis.cards")
        #expect(
            try tab.text("cards") == "https://a.example/a a|https://a.example/b b|https://a.example/b Film|6")
    }

    @Test func whyTheQueueWaitsIsSaid() throws {
        let tab = stage.tab
        let note = try tab.text(
            """
            import("/api/dashboard/downloads.js").then(({show}) => {
                show(report(0, {queue: {hold: "the schedule lets no download run"}, hidden: {downloads: 209}}));
                return document.querySelector("#downloads-note").textContent;
            })
            """)
        #expect(note == "Downloads wait: the schedule lets no download run. 209 more are not shown.")
    }

    /// On a phone, too, a card shows all that it says.
    @Test func textOfACardIsNotCut() throws {
        let tab = stage.tab
        try tab.resize(width: 320, height: 568)
        try tab.wait(for: "innerWidth == 320")
        let cut = try tab.text(
            """
            import("/api/dashboard/now.js").then(({show}) => {
                const url = "http://127.0.0.1:18801/big/films/season-2/film.mp4";
                const transfer = {id: "a", url, purposes: ["play", "fill"], reason: "uri-miss", phase: "receiving",
                    from: 0, to: 2e7, received: 2e6, rate: 1e5};
                const more = {player: "mpv 0.35.1", rate: 1e5, position: 2e6, length: 2e7,
                    from_origin: 2e6, positions: []};
                show(report(24, {plays: [{...play(1, url, "film.mp4"), ...more}], transfers: [transfer]}));
                return [...document.querySelectorAll("#plays .facts")]
                    .filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.textContent).join();
            })
            """)
        #expect(cut.isEmpty, "\(cut)")
    }

    /// The answer to a former question, which comes after that to the last one, is shown by nothing.
    @Test func lateAnswersAreNotShown() throws {
        let tab = stage.tab
        try tab.evaluate(
            """
            let count = 0, release;
            globalThis.fetch = async url => {
                const number = ++count;
                if (number === 1) await new Promise(done => release = done);
                return Response.json(String(url).includes("/url") ? {path: `/https/${number}`}
                    : {total: 1, resources: [{url: `https://a.example/${number}`, cached: 1, hits: 0}]});
            };
            const twice = async act => {
                count = 0;
                const first = act();
                await act(); release(); await first;
            };
            Promise.all(["cache", "try"].map(one => import(`/api/dashboard/${one}.js`))).then(async ([{refresh}]) => {
                await twice(refresh);
                document.querySelector("#try-url").value = "https://a.example/film.mp4";
                const form = document.querySelector("#try-form");
                form.requestSubmit(); form.requestSubmit();
                globalThis.listed = document.querySelector("#cache-list tr").dataset.url;
            })
            """)
        try tab.wait(for: "globalThis.listed")
        #expect(try tab.text("listed") == "https://a.example/2")
    }

    /// A film of the hour before midnight was not saved today, where midnight is no even hour of UTC. Reports come
    /// between the answers.
    @Test(arguments: ["Etc/GMT-1", "Etc/GMT-2"]) func todayBeginsAtMidnight(zone: String) throws {
        let tab = stage.tab
        try tab.ask("Emulation.setTimezoneOverride", ["timezoneId": zone])
        try tab.evaluate(
            """
            const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
            globalThis.fetch = async url => {
                const seconds = String(url).includes("month") ? 7200 : 300;
                health.show(report(now / 1000));
                const first = Math.floor((midnight - 3600) / seconds) * seconds;
                const periods = Array.from({length: 2 * 7200 / seconds}, (_, place) => ({start: first + place * seconds,
                    bytes: {from_cache: first + place * seconds < midnight ? 1e9 : 0}}));
                return Response.json({period_seconds: seconds, periods, from: first, to: first + 14400});
            };
            const now = Date.now();
            // Another one than the page's, which knows nothing yet.
            import("/api/dashboard/health.js?new").then(async part => {
                await (globalThis.health = part).refresh();
                health.show(report(now / 1000));
                globalThis.saved = document.querySelector("#sum-saved").textContent;
            })
            """)
        try tab.wait(for: "globalThis.saved")
        #expect(try tab.text("saved") == "0 bytes")
    }
}
