import Foundation
import TestSupport
import Testing

/// What people need who use the dashboard without a mouse, without seeing it, on a phone, or with other colours. The list
/// is that of docs/guide/dashboard.md.
@Suite(.serialized, Player.areExpected(.chromium))
struct DashboardAccessibilityTests {
    /// A name that can only be broken anywhere.
    private static let longName = String(repeating: "nosferatu", count: 13) + ".mp4"

    /// A dashboard with something in each of its lists, and everything unfolded.
    private func fullStage() throws -> DashboardStage {
        let stage = try DashboardStage()
        let film = "/" + Self.longName, other = "/other/" + Self.longName
        stage.origin.serve(film, Media(seed: 5, size: 3_000_000))
        stage.origin.script(film) { $0.stallAfter = 1_000_000 }
        stage.origin.serve(other, Media(seed: 6, size: 10_000))
        try stage.signIn()
        _ = try stage.proxy.get(stage.origin.url(other))
        try stage.tab.wait(for: "document.querySelector('#plays .card')")
        try stage.tab.paste(stage.origin.url("/missing/" + Self.longName), into: "#order-url")
        try stage.tab.press("Enter")
        try stage.tab.wait(for: "document.querySelector('#failed-list .card')")
        try stage.tab.paste(stage.origin.url(film), into: "#order-url")
        try stage.tab.press("Enter")
        try stage.tab.wait(for: "document.querySelector('#downloads-list .badge')?.textContent == 'downloading'")
        try stage.tab.wait(for: "document.querySelector('#cache-list tr') && document.querySelector('.plot')")
        try stage.tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        try stage.tab.paste(stage.origin.url("/film.mp4"), into: "#try-url")
        try stage.tab.press("Enter")
        try stage.tab.wait(for: "document.querySelector('#space-next li')")
        try stage.tab.wait(for: "document.querySelector('#try-address').checkVisibility()")
        return stage
    }

    @Test func eachControlAndPictureHasAName() throws {
        let stage = try fullStage()
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
        let stage = try fullStage()
        let levels = try stage.tab.text(
            "[...document.querySelectorAll('h1,h2,h3,h4')].filter(one => one.checkVisibility()).map(one => one.tagName[1]).join('')"
        )
        #expect(levels.hasPrefix("12"))
        for (level, next) in zip(levels, levels.dropFirst()) {
            #expect(next.wholeNumberValue ?? 9 <= (level.wholeNumberValue ?? 0) + 1, "\(levels)")
        }
    }

    /// WCAG 2.2, 1.4.11: what a strip and a plot show is told from what is beside it.
    @Test(arguments: ["light", "dark"]) func graphicsAreToldApart(in scheme: String) throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        try stage.tab.prefer(scheme)
        try stage.tab.wait(
            for: "matchMedia('(prefers-color-scheme: \(scheme))').matches && document.querySelector('.line-2')")
        let faults = try stage.tab.text(
            """
            (() => {
                const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).match(/[0-9a-f]{2}/g).map(one => parseInt(one, 16));
                const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
                const light = name => { const [r, g, b] = color(name); return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) };
                const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05) };
                // Marks have an outline in the colour of the panel.
                const pairs = [["--accent", "--track"], ["--accent", "--panel"], ["--coming", "--panel"], ["--ink", "--panel"],
                    ["--accent", "--paper"], ["--coming", "--paper"], ["--second", "--paper"]];
                const faults = pairs.filter(([a, b]) => ratio(a, b) < 3).map(pair => pair.join(" on "));
                const dashes = [0, 1, 2].map(index => getComputedStyle(document.querySelector(`.line-${index}`)).strokeDasharray);
                if (new Set(dashes).size < 3) faults.push("lines differ in colour alone: " + dashes.join("; "));
                return faults.join("\\n");
            })()
            """)
        #expect(faults.isEmpty, "\(faults)")
    }

    /// WCAG 2.2, 1.4.3 and 1.4.11.
    @Test(arguments: ["light", "dark"]) func contrastSuffices(in scheme: String) throws {
        let stage = try fullStage()
        try stage.tab.prefer(scheme)
        try stage.tab.wait(for: "matchMedia('(prefers-color-scheme: \(scheme))').matches")
        let faults = try stage.tab.text(
            """
            (() => {
                const numbers = color => color.match(/[\\d.]+/g).map(Number);
                const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
                const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
                const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05) };
                const ground = element => { for (; element; element = element.parentElement) {
                    const color = numbers(getComputedStyle(element).backgroundColor); if (color.length < 4 || color[3] == 1) return color }
                    return [255, 255, 255] };
                const faults = []; let looked = 0;
                for (const element of document.body.querySelectorAll("*")) {
                    if (!element.checkVisibility() || element.disabled) continue;
                    const style = getComputedStyle(element);
                    const isControl = element.matches("input:not([type=radio]), select");
                    if (isControl || [...element.childNodes].some(node => node.nodeType == 3 && node.textContent.trim())) {
                        const color = element instanceof SVGElement ? style.fill : style.color;
                        const found = ratio(numbers(color), ground(element)); looked++;
                        if (found < 4.5) faults.push(element.tagName + " " + element.className + " " + element.textContent.slice(0, 30) + " " + found.toFixed(2));
                    }
                    if (isControl && ratio(numbers(style.borderTopColor), ground(element.parentElement)) < 3) faults.push("edge of " + element.id);
                }
                return looked < 50 ? "only " + looked + " texts" : faults.join("\\n");
            })()
            """)
        #expect(faults.isEmpty, "\(faults)")
    }

    @Test func nothingMovesWhereThatIsNotWanted() throws {
        let stage = try DashboardStage()
        try stage.waitUntilLive()
        try stage.tab.ask(
            "Emulation.setEmulatedMedia", ["features": [["name": "prefers-reduced-motion", "value": "reduce"]]])
        #expect(try stage.tab.text("getComputedStyle(document.documentElement).scrollBehavior") == "auto")
        #expect(try stage.tab.text("getComputedStyle(document.querySelector('.fill')).transitionDuration") == "0s")
    }

    @Test(arguments: [320, 400, 1280]) func pageIsNoWiderThanItsWindow(_ width: Int) throws {
        let stage = try fullStage()
        try stage.tab.resize(width: width, height: 800)
        try stage.tab.wait(for: "innerWidth == \(width)")
        let wider = try stage.tab.text(
            """
            document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("*")]
                .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
                .map(one => `${one.tagName}.${one.getAttribute("class")}#${one.id}`).slice(0, 10).join(" ")
            """)
        #expect(wider.isEmpty, "\(wider)")
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
