// The dashboard: begins its parts, and keeps them up to date.

import * as api from "./api.js";
import * as cache from "./cache.js";
import * as coverage from "./coverage.js";
import { dismiss, id, on, say, tell } from "./dom.js";
import * as downloads from "./downloads.js";
import * as feeds from "./feeds.js";
import * as health from "./health.js";
import * as now from "./now.js";
import * as session from "./session.js";
import * as attempts from "./try.js";

/** How often lists are asked for that no event tells of, in milliseconds. */
const listInterval = 10_000;

let follows = null;
/** What the page waits for, for a second at most, to appear at once and not bit by bit. */
const awaited = new Set(["report", "lists"]);

function came(...all) {
	if (!awaited.size) return;
	for (const one of all) awaited.delete(one);
	if (awaited.size) return;
	document.body.classList.remove("waiting");
	beginHistory();
}

/** The parts that ask the proxy for what no event tells of. */
const parts = [cache, downloads, feeds, health];

/** Begins what is over time once it is near the window, at the end of the page. */
function beginHistory() {
	const watcher = new IntersectionObserver(async (seen) => {
		if (!seen.some((one) => one.isIntersecting)) return;
		watcher.disconnect();
		try {
			const history = await import("./history.js");
			history.begin();
			parts.push(history);
			await refreshOne(history);
		} catch {
			// The header says that the proxy is gone.
			setTimeout(() => watcher.observe(id("history")), listInterval);
		}
	}, { rootMargin: "50%" });
	watcher.observe(id("history"));
}

let isLost = false;

function isHere(report) {
	const wasLost = isLost;
	isLost = false;
	document.body.classList.remove("lost");
	say("state", "Live");
	now.show(report);
	health.show(report);
	downloads.show(report);
	cache.show(report);
	came("report");
	// Another proxy may have answered, which knows no session of the former.
	if (wasLost) session.look();
}

function isGone(error) {
	isLost = true;
	document.body.classList.add("lost");
	came("report", "lists");
	say("state", error.status === 401 ? "Sign in to see what happens." : `${capitalized(error.message)}. Trying again.`);
	if (error.status === 401) session.look();
	else health.isGone(capitalized(error.message));
}

const capitalized = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

function refresh(isNews = false) {
	if (document.hidden || isLost || !session.mayRead()) return;
	Promise.all(parts.map((part) => refreshOne(part, isNews))).then(() => {
		came("lists");
		health.judge();
	});
}

/** What each part could not be asked for, which is told once. */
const told = new Map();

/** The parts that are being asked for, and whether to ask once more. */
const asking = new Map();

async function refreshOne(part, isNews) {
	if (asking.has(part)) return isNews && asking.set(part, true);
	asking.set(part, false);
	try {
		await part.refresh();
		told.delete(part);
	} catch (error) {
		if (error.status === 401) return session.look();
		if (error.status !== 0 && told.get(part) !== error.message) tell(error.message, true);
		told.set(part, error.message);
	} finally {
		const isStale = asking.get(part);
		asking.delete(part);
		if (isStale) refresh();
	}
}

/** Somebody has signed in or out. */
function changed() {
	if (!session.mayRead()) {
		follows?.stop();
		return say("state", "Sign in to see what happens.");
	}
	if (follows) follows.resume();
	else follows = api.follow(isHere, isGone);
	refresh(true);
}

for (const part of [coverage, cache, downloads, feeds, attempts]) part.begin();
on("news-dismiss", "click", dismiss);
new ResizeObserver(([{ target: { offsetHeight: height } }]) => {
	document.documentElement.style.setProperty("--news", `${height}px`);
	// It covers no control that somebody uses.
	const { top } = document.activeElement.getBoundingClientRect();
	if (Math.abs(top) < height) scrollBy(0, top - height);
}).observe(id("news"));
session.begin(changed);
setInterval(refresh, listInterval);
setTimeout(() => came("report", "lists"), 1000);
document.addEventListener("visibilitychange", () => refresh());
// A drop beside a field would replace the page.
for (const type of ["dragover", "drop"]) addEventListener(type, (event) => event.target.closest?.("input") || event.preventDefault());
