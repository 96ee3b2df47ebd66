import TestSupport
import Testing

/// Whether a person could see what the dashboard has, and what a click in the middle of a control hits: on wide and narrow
/// windows, in both themes.
@Suite(.serialized, Player.areExpected(.chromium))
struct DashboardVisibilityTests {
    @Test func emptyPageIsSeen() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.waitUntilLive()
        try tab.wait(for: "document.querySelector('#feeds-none').textContent")
        try stage.showHistory()
        try expectVisible(tab, controls: 16)
        try tab.click("#sign")
        try tab.wait(for: "document.querySelector('#sign-in').open")
        try expectVisible(tab, in: "#sign-in", controls: 3)
    }

    @Test func fullPageAndItsDialogsAreSeen() throws {
        let stage = try DashboardStage.full(), tab = stage.tab
        // On narrow windows, that shows its buttons.
        try tab.click("#cache-list [data-url*='/other/'] input")
        try expectVisible(tab, controls: 40)
        for (button, dialog, controls) in [("Map of", "map", 6), ("Remove", "confirm", 2)] {
            try tab.click("#cache-list [data-url*='/other/'] [aria-label^='\(button)']")
            try tab.wait(for: "document.querySelector('#\(dialog)').open")
            try expectVisible(tab, in: "#\(dialog)", controls: controls)
            try tab.press("Escape")
            try tab.wait(for: "!document.querySelector('#\(dialog)').open")
        }
        try tab.click("#try-play")
        try tab.wait(for: "document.querySelector('#try-player').checkVisibility()")
        try expectVisible(tab, in: "#try", controls: 5)
    }

    /// What an action has brought is in the window, wherever that is, and does not cover the control.
    @Test func newsAreSeenWhereSomebodyActs() throws {
        let stage = try DashboardStage(), tab = stage.tab
        let feed = "<rss version=\"2.0\"><channel><title>News</title></channel></rss>"
        stage.origin.serve("/feed.xml", bytes: Array(feed.utf8), contentType: "application/rss+xml")
        try stage.signIn()
        try tab.paste(stage.origin.url("/feed.xml"), into: "#subscribe-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#feeds-list .card')")
        for (width, height) in [(1280, 900), (390, 844), (320, 568)] {
            try tab.resize(width: width, height: height)
            try tab.wait(for: "innerWidth == \(width)")
            try tab.evaluate(
                """
                document.querySelector("#news-dismiss").click();
                document.querySelector("#feeds-list button").scrollIntoView({block: "start", behavior: "instant"});
                document.querySelector("#feeds-list button").focus({preventScroll: true});
                globalThis.isSeen = () => {
                    const news = document.querySelector("#news"), box = news.getBoundingClientRect();
                    const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
                    return !news.hidden && box.top >= 0 && box.bottom <= innerHeight && news.contains(hit)
                        && document.activeElement.getBoundingClientRect().top >= box.bottom - 1;
                }
                """)
            try tab.press("Enter")
            try tab.wait(for: "isSeen() && document.querySelector('#news-text').textContent == 'News: 0 new episodes.'")
        }
        stage.expectNoComplaints()
    }

    @Test func pageBeyondThisMachineShowsHowToSignIn() throws {
        let stage = try DashboardStage(["--listen", "0.0.0.0:0"]), tab = stage.tab
        try tab.wait(for: "document.body.classList.contains('locked')")
        try expectVisible(tab, in: "body > a, header", controls: 8)
        try tab.click("#sign")
        try tab.wait(for: "document.querySelector('#sign-in').open")
        try expectVisible(tab, in: "#sign-in", controls: 3)
    }

    /// - Parameters:
    ///   - place: a selector of what is looked at.
    ///   - controls: how many there are at least.
    private func expectVisible(_ tab: ChromiumTab, in place: String = "body", controls: Int) throws {
        for (width, height) in [(1440, 900), (1024, 768), (390, 844), (320, 568)] {
            try tab.resize(width: width, height: height)
            for scheme in ["light", "dark"] {
                try tab.prefer(scheme)
                try tab.wait(
                    for: "innerWidth == \(width) && matchMedia('(prefers-color-scheme: \(scheme))').matches")
                let faults = try tab.text("{ \(Self.look); look(`\(place)`, \(controls)) }")
                #expect(faults.isEmpty, "\(place) at \(width)x\(height), \(scheme):\n\(faults)")
            }
        }
    }

    /// `look(place, controls)` returns what cannot be seen or clicked, a line each. What is meant to be out of sight is
    /// marked so in the page itself (`hidden`, `.hidden`, closed dialogs and details), and on narrow windows `.wide`,
    /// heads of tables, and the buttons of rows that are not selected.
    private static let look =
        colorFunctions + #"""
            const isFolded = one => one.parentElement?.matches("details:not([open])") && one.tagName != "SUMMARY";
            const isMeant = one => !one.closest("[hidden], .hidden, dialog:not([open]), option, noscript, script")
                && !line(one).some(isFolded)
                && (innerWidth > 640 || !one.closest(".wide, thead, #cache-list tr:not(:has(:checked)) .tools"));
            const area = box => box.width * box.height;
            const fault = (element, isControl) => {
                element.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
                if (isControl) element.focus({preventScroll: true, focusVisible: true});
                const box = [...element.getClientRects()].sort((a, b) => area(b) - area(a))[0];
                if (!box || Math.min(box.width, box.height) < (isControl ? 12 : 4)) return "is too small";
                if (getComputedStyle(element).visibility != "visible") return "is invisible";
                const opacity = line(element).reduce((share, one) => share * getComputedStyle(one).opacity, 1);
                if (opacity < 0.5) return "is transparent";
                const ink = inkOf(element), isFaint = alpha(ink) < 0.5 || contrast(ink, ground(element)) < 2;
                if (isFaint && !element.matches("video, [type=radio]")) return `is ${ink} on ${ground(element)}`;
                const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
                return element.contains(hit) ? null : `is behind ${hit?.tagName} #${hit?.id}`;
            };
            const look = (place, least) => {
                const elements = [...document.querySelectorAll(place)]
                    .flatMap(one => [one, ...one.querySelectorAll("*")]).filter(isMeant);
                const controls = elements.filter(one => one.tabIndex >= 0 && !one.disabled);
                const faults = [...new Set([...controls, ...elements.filter(hasText)])].flatMap(one => {
                    const found = fault(one, controls.includes(one));
                    return found ? `${one.tagName} #${one.id} "${one.textContent.trim().slice(0, 30)}" ${found}` : [];
                });
                if (controls.length < least) faults.push(`only ${controls.length} controls`);
                return faults.join("\n");
            };
            """#
}
