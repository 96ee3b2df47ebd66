import Foundation
import TestSupport
import Testing

/// What people need who use the dashboard without a mouse, without seeing it, on a phone, or with other colours. The list
/// is that of docs/guide/dashboard.md.
@Suite(.serialized, Player.areExpected(.chromium))
struct DashboardAccessibilityTests {
    @Test func eachControlAndPictureHasAName() throws {
        let stage = try DashboardStage.full()
        let tree = try stage.tab.ask("Accessibility.getFullAXTree")
        let nodes = try #require(tree["nodes"] as? [[String: Any]])
        let named: Set = [
            "button", "link", "textbox", "searchbox", "combobox", "radio", "progressbar", "image", "img", "region",
            "dialog",
        ]
        var count = 0
        for node in nodes where node["ignored"] as? Bool != true {
            guard let role = Self.value(node["role"]), named.contains(role) else { continue }
            count += 1
            #expect(Self.value(node["name"])?.isEmpty == false, "\(role) \(node["description"] ?? "")")
        }
        #expect(count > 30)
        for landmark in ["banner", "navigation", "main"] {
            #expect(nodes.contains { Self.value($0["role"]) == landmark }, "\(landmark)")
        }
    }

    private static func value(_ property: Any?) -> String? { (property as? [String: Any])?["value"] as? String }

    @Test func headingsAreInOrder() throws {
        let stage = try DashboardStage.full()
        let levels = try stage.tab.text(
            "[...document.querySelectorAll('h1,h2,h3,h4')].filter(one => one.checkVisibility()).map(one => one.tagName[1]).join('')"
        )
        #expect(levels.hasPrefix("12"))
        for (level, next) in zip(levels, levels.dropFirst()) {
            #expect(next.wholeNumberValue ?? 9 <= (level.wholeNumberValue ?? 0) + 1, "\(levels)")
        }
    }

    /// WCAG 2.2, 1.4.11: what a strip and a plot show is told from what is beside it.
    @Test func graphicsAreToldApart() throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        try stage.showHistory()
        try stage.tab.wait(for: "document.querySelector('.line-2')")
        try expectNoFaults(
            stage.tab,
            #"""
            const color = name => {
                const probe = document.body.appendChild(document.createElement("i"));
                probe.style.color = `var(${name})`;
                return getComputedStyle(probe).color;
            };
            // Marks have an outline in the colour of the panel.
            const pairs = [["--accent", "--track"], ["--accent", "--panel"], ["--coming", "--panel"], ["--ink", "--panel"],
                ["--accent", "--paper"], ["--coming", "--paper"], ["--second", "--paper"]];
            const faults = pairs.filter(pair => contrast(...pair.map(color)) < 3).map(pair => pair.join(" on "));
            const lines = [0, 1, 2].map(index => document.querySelector(`.line-${index}`));
            const dashes = lines.map(one => getComputedStyle(one).strokeDasharray);
            if (new Set(dashes).size < 3) faults.push("lines differ in colour alone: " + dashes.join("; "));
            return faults;
            """#)
    }

    /// WCAG 2.2, 1.4.3 and 1.4.11.
    @Test func contrastSuffices() throws {
        try expectNoFaults(
            try DashboardStage.full().tab,
            #"""
            const faults = [], said = one => `${one.tagName} ${one.className} ${one.textContent.slice(0, 30)} ${one.id}`;
            let looked = 0;
            for (const element of document.body.querySelectorAll("*")) {
                if (!element.checkVisibility() || element.disabled) continue;
                const isControl = element.matches("input:not([type=radio]), select");
                if (isControl || hasText(element)) {
                    const found = contrast(inkOf(element), ground(element));
                    looked++;
                    if (found < 4.5) faults.push(`${said(element)} ${found.toFixed(2)}`);
                }
                const edge = getComputedStyle(element).borderTopColor;
                if (isControl && contrast(edge, ground(element.parentElement)) < 3) faults.push("edge of " + said(element));
            }
            return looked < 50 ? ["only " + looked + " texts"] : faults;
            """#)
    }

    /// - Parameter body: of a function of JavaScript that returns what is wrong, in either theme.
    private func expectNoFaults(_ tab: ChromiumTab, _ body: String) throws {
        for scheme in ["light", "dark"] {
            try tab.prefer(scheme)
            try tab.wait(for: "matchMedia('(prefers-color-scheme: \(scheme))').matches")
            let faults = try tab.text("(() => { \(colorFunctions)\n\(body) })().join('\\n')")
            #expect(faults.isEmpty, "\(scheme): \(faults)")
        }
    }

    @Test func nothingMovesWhereThatIsNotWanted() throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        try stage.tab.ask(
            "Emulation.setEmulatedMedia", ["features": [["name": "prefers-reduced-motion", "value": "reduce"]]])
        #expect(try stage.tab.text("getComputedStyle(document.documentElement).scrollBehavior") == "auto")
        #expect(try stage.tab.text("getComputedStyle(document.querySelector('.fill')).transitionDuration") == "0s")
    }

    @Test func pageIsNoWiderThanItsWindow() throws {
        let stage = try DashboardStage.full()
        // On narrow windows, that shows its buttons.
        try stage.tab.click("#cache-list [data-url*='/other/'] input")
        for width in [320, 400, 1280] {
            try stage.tab.resize(width: width, height: 800)
            try stage.tab.wait(for: "innerWidth == \(width)")
            let wider = try stage.tab.text(
                """
                document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("*")]
                    .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
                    .map(one => `${one.tagName}.${one.getAttribute("class")}#${one.id}`).slice(0, 10).join(" ")
                """)
            #expect(wider.isEmpty, "\(width): \(wider)")
            for (button, dialog) in [("Map of", "map"), ("Remove", "confirm")] {
                // The other film is being downloaded, and cannot be removed.
                try stage.tab.click("#cache-list [data-url*='/other/'] [aria-label^='\(button)']")
                try stage.tab.wait(for: "document.querySelector('#\(dialog)').open")
                let isInside =
                    "(one => one.scrollWidth <= one.clientWidth && one.getBoundingClientRect().right <= innerWidth)"
                #expect(try stage.tab.text("String(\(isInside)(document.querySelector('#\(dialog)')))") == "true")
                try stage.tab.press("Escape")
            }
        }
    }

    /// Whose position in a list changes, keeps the focus; where it goes, the next one has it.
    @Test func focusStaysWhenTheOrderChanges() throws {
        let stage = try DashboardStage(), tab = stage.tab
        try stage.signIn()
        for name in ["a", "b", "c"] {
            stage.origin.serve("/\(name).mp4", Media(seed: 5, size: 3_000_000))
            stage.origin.script("/\(name).mp4") { $0.stallAfter = 1_000_000 }
            try tab.paste(stage.origin.url("/\(name).mp4"), into: "#order-url")
            try tab.press("Enter")
            try tab.wait(for: "document.querySelector(`#downloads-list [aria-label='Pause \(name).mp4']`)")
        }
        func order(_ names: String) -> String {
            "[...document.querySelectorAll('#downloads-list h3')].map(one => one.textContent[0]).join('') == '\(names)'"
        }
        try tab.evaluate("document.querySelector(`#downloads-list [aria-label='Pause a.mp4']`).focus()")
        try tab.press("Enter")
        try tab.wait(for: order("bca"))
        try tab.press("Enter")
        try tab.wait(for: order("abc"))
        #expect(try tab.text("document.activeElement.getAttribute('aria-label')") == "Pause a.mp4")
        try tab.evaluate("document.querySelector(`#downloads-list [aria-label='Cancel b.mp4']`).focus()")
        try tab.press("Enter")
        try tab.click("#confirm-yes")
        try tab.wait(for: order("ac"))
        #expect(try tab.text("document.activeElement.getAttribute('aria-label')") == "Cancel c.mp4")
        stage.expectNoComplaints()
    }

    /// A control that its own action disables or hides keeps the focus, or gives it to what is beside it.
    @Test func focusStaysWhenAControlIsOfNoMoreUse() throws {
        let stage = try DashboardStage(), tab = stage.tab
        for number in 1...101 {
            stage.origin.serve("/\(number).mp4", Media(seed: 5, size: 100))
            _ = try stage.proxy.get(stage.origin.url("/\(number).mp4"))
        }
        try stage.signIn()
        try tab.paste(stage.origin.url("/missing.mp4"), into: "#order-url")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector('#news.error') && !document.querySelector('#failed').hidden")
        let count = "document.querySelector('#cache-count').textContent"
        try tab.wait(for: "\(count) == '1 to 100 of 101'")
        for (control, end, holder) in [
            ("#cache-later", "\(count) == '101 to 101 of 101'", "cache-later"),
            ("#cache-earlier", "\(count) == '1 to 100 of 101'", "cache-earlier"),
            ("#news-dismiss", "document.querySelector('#news').hidden", "main"),
            ("#failed-forget", "document.querySelector('#failed').hidden", "Downloads"),
        ] {
            try tab.evaluate("document.querySelector('\(control)').focus()")
            try tab.press("Enter")
            if control == "#failed-forget" { try tab.click("#confirm-yes") }
            try tab.wait(for: end)
            #expect(try Self.holder(tab) == holder)
        }
        try tab.click("#cache-list [type=checkbox]")
        try tab.evaluate("document.querySelector('#cache-pin').focus()")
        try tab.press("Enter")
        try tab.wait(for: "document.querySelector(`#cache-list [aria-label^='Unpin']`)")
        try tab.wait(for: "document.querySelector('#cache-chosen').textContent == 'Nothing is selected.'")
        #expect(try Self.holder(tab) == "cache-pin")
        // In one turn, as reports of the proxy have no such download.
        let label = try tab.text(
            """
            import("/api/dashboard/downloads.js").then(({ show }) => {
                const one = { id: 1000, url: "https://a.example/1.mp3", state: "waiting", bytes: 0 };
                show({ downloads: [{ ...one, retry_at: 4e9 }] });
                document.querySelector("[aria-label='Retry 1.mp3 now']").focus();
                show({ downloads: [one] });
                return document.activeElement.getAttribute("aria-label");
            })
            """)
        #expect(label == "Pause 1.mp3")
        stage.expectNoComplaints()
    }

    /// What has the focus once the page is drawn: a browser takes it from what is disabled or hidden only then.
    private static func holder(_ tab: ChromiumTab) throws -> String {
        let name = "document.activeElement.id || document.activeElement.textContent.slice(0, 20)"
        return try tab.text(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(\(name)))))")
    }

    /// The first Tab leads to a link that skips the navigation.
    @Test func contentIsReachedAtOnceByKeyboard() throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        try stage.tab.press("Tab")
        #expect(try stage.tab.text("document.activeElement.textContent") == "Skip to the content")
        try stage.tab.press("Enter")
        try stage.tab.wait(for: "document.activeElement.id == 'main'")
    }
}
