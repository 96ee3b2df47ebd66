// Subscriptions and their state.

import * as api from "./api.js";
import { button, confirm, foreign, id, list, make, onSubmit, say, tell, turns } from "./dom.js";
import { isSignedIn, withSession } from "./session.js";
import { ago, duration, name, plural, printable, quoted } from "./text.js";

export function begin() {
	onSubmit("subscribe", subscribe);
}

const turn = turns();

/** Asks the proxy again. */
export async function refresh() {
	const isLast = turn();
	const { feeds } = await api.feeds({ urls: isSignedIn() });
	if (!isLast()) return;
	say("feeds-none", feeds.length ? "" : "No feed is subscribed.");
	list("feeds-list", feeds, (feed) => `${feed.whole} ${title(feed)}`, card);
}

async function subscribe() {
	const url = id("subscribe-url").value.trim();
	say("subscribe-error", url ? "" : "Paste the URL of a feed.");
	if (!url) return;
	await withSession(async () => {
		try {
			const feed = await api.subscribe(url);
			tell(`Subscribed to ${quoted(title(feed))}.`);
			if (id("subscribe-url").value.trim() === url) id("subscribe").reset();
			await refresh();
		} catch (error) {
			if (error.status === 401) throw error;
			if (id("subscribe-url").value.trim() !== url) tell(error.message, true);
			else say("subscribe-error", error.message);
		}
	});
}

const title = (feed) => printable(feed.title || name(feed.url));

function card(first) {
	const heading = make("h3", {}, foreign(title(first)));
	const state = make("span.badge");
	const facts = make("p.facts");
	const check = button("Check now", () => withSession(async () => {
		const { checks } = await api.checkFeed(first.whole);
		const [result] = checks;
		tell(result?.message ? printable(result.message) : `${quoted(title(first))}: ${plural(result?.new ?? 0, "new episode")}.`, Boolean(result?.message));
		await refresh();
	}), { "aria-label": `Check ${title(first)} now` });
	const remove = button("Unsubscribe", async () => {
		if (!(await confirm(`Unsubscribe from ${quoted(title(first))}? Its downloads end; what is in the cache stays.`, "Unsubscribe"))) return;
		await withSession(async () => {
			await api.removeFeed(first.whole);
			await refresh();
		});
	}, { "aria-label": `Unsubscribe from ${title(first)}` });
	return {
		element: make("li.card", { "data-url": first.url }, make("div.row", {}, heading, state), facts, make("div.tools", {}, check, remove)),
		update(feed) {
			say(state, feed.message ? "failing" : feed.checked ? "fine" : "new");
			state.parentNode.parentNode.dataset.state = feed.message ? "failed" : "fine";
			say(facts, texts(feed).join(" · "));
		},
	};
}

function texts(feed) {
	return [
		feed.message ? quoted(feed.message) : null,
		`the latest ${feed.latest}`,
		plural(feed.episodes, "episode"),
		feed.unfinished ? `${feed.unfinished} to be downloaded` : null,
		feed.failed ? `${feed.failed} failed` : null,
		feed.checked ? `checked ${ago(feed.checked)}` : null,
		`every ${duration(feed.every)}`,
		feed.category ? quoted(feed.category) : null,
	].filter(Boolean);
}
