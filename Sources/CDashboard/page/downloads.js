// Downloads: what is fetched to be played later, and the form that orders it.

import * as api from "./api.js";
import { attempt, bar, button, confirm, foreign, hide, id, list, make, on, onSubmit, say, set, tell, turns } from "./dom.js";
import { withSession } from "./session.js";
import { ago, clock, duration, name, percent, place, printable, quoted, rate, size } from "./text.js";

const mostFailed = 20;
/** When the last downloads that failed ended, in milliseconds, and how many have. */
export let failures = { ends: [], total: 0 };
/** Of how many downloads the proxy is asked at once. */
const mostAsked = 200;

/** Downloads whose end is to be reported, by number: whether reports listed them. */
const watched = new Map();

/** Shows those that have not ended. */
export function show({ downloads, queue, hidden: { downloads: hidden = 0 } = {} }) {
	const listed = new Set(downloads.map((one) => one.id));
	const gone = [...watched].filter(([number, wasListed]) => !listed.has(number) && (wasListed || !hidden)).map(([number]) => number);
	for (const number of gone) watched.delete(number);
	for (const number of listed) watched.set(number, true);
	if (gone.length) attempt(() => tellEnd(gone));
	say("downloads-none", downloads.length ? "" : "Nothing is being downloaded.");
	list("downloads-list", downloads, keyOf, card);
	const texts = [queue?.is_offline && "The proxy is offline: nothing starts.", queue?.hold && `Downloads wait: ${printable(queue.hold)}.`, hidden && `${hidden} more are not shown.`];
	say("downloads-note", texts.filter(Boolean).join(" "));
}

/** Tells how downloads ended that are no longer shown. */
async function tellEnd(numbers) {
	const downloads = [];
	for (let place = 0; place < numbers.length; place += mostAsked) {
		downloads.push(...(await api.downloads({ id: numbers.slice(place, place + mostAsked).join(",") })).downloads);
	}
	// It is new, or beyond what is listed.
	for (const one of downloads) if (!one.finished && !watched.has(one.id)) watched.set(one.id, false);
	const [failed, completed] = ["failed", "completed"].map((state) => downloads.filter((one) => one.state === state && (state === "failed" || !one.feed)));
	if (failed.length) {
		tell(failed.length > 1 ? `${failed.length} downloads failed.` : `${quoted(title(failed[0]))} could not be downloaded: ${printable(failed[0].message)}`, true);
	} else if (completed.length && !id("news").classList.contains("error")) {
		tell(completed.length > 1 ? `${completed.length} downloads are in the cache.` : `${quoted(title(completed[0]))} is in the cache.`);
	}
	await refresh();
}

const turn = turns();

/** Asks the proxy for those that have failed. */
export async function refresh() {
	const isLast = turn();
	const { downloads, total } = await api.downloads({ state: "failed", sort: "ended", limit: 100 });
	if (!isLast()) return;
	failures = { ends: downloads.map((one) => one.finished * 1000), total };
	hide("failed", !total);
	list("failed-list", downloads.slice(0, mostFailed), keyOf, failedCard);
	say("failed-more", total > mostFailed ? `${total - mostFailed} more` : "");
}

function failedCard(first) {
	const facts = make("p.facts");
	const message = make("p.error");
	const retry = button("Retry", () => withSession(async () => {
		await api.changeDownload(first.id, { action: "retry" });
		await refresh();
	}), { "aria-label": `Retry ${title(first)}` });
	return {
		element: make("li.card", { "data-id": first.id },
			make("div.row", {}, make("h4", {}, foreign(title(first))), retry), message, facts),
		update(download) {
			say(message, printable(download.message ?? "failed"));
			say(facts, [quoted(place(download.url)), download.finished ? ago(download.finished) : null].filter(Boolean).join(" · "));
		},
	};
}

async function forget() {
	if (!(await confirm("Forget all downloads that have ended? What failed ones fetched is removed; the rest stays in the cache.", "Forget them"))) return;
	await withSession(async () => {
		await api.forgetDownloads();
		await refresh();
	});
}

const title = (download) => printable(download.title || download.file_name || name(download.url));

/** Its name comes with its head, and another cache counts anew. */
const keyOf = (download) => `${download.id} ${download.url} ${title(download)}`;

function card(first) {
	const heading = make("h3", {}, foreign(title(first)));
	const state = make("span.badge");
	const facts = make("p.facts");
	const progress = bar("downloaded");
	const change = (what) => () => withSession(() => api.changeDownload(first.id, what));
	// One button for both, which keeps the focus.
	const toggle = button("", () => change({ action: element.dataset.state === "paused" ? "resume" : "pause" })());
	let latest = first;
	const priority = make("select", {
		"aria-label": `Priority of ${title(first)}`,
		async change() {
			if (!(await change({ priority: priority.value })())) priority.value = latest.priority;
		},
	},
		["high", "normal", "low"].map((value) => make("option", { value }, value)));
	const cancel = button("Cancel", async () => {
		if (await confirm(`Cancel the download of ${quoted(title(first))}? What it alone has fetched is removed.`, "Cancel it")) await change({ action: "cancel" })();
	}, { "aria-label": `Cancel ${title(first)}` });
	const retry = button("Retry now", change({ action: "retry" }), { "aria-label": `Retry ${title(first)} now` });
	const element = make("li.card", { "data-id": first.id },
		make("div.row", {}, heading, state), progress.element, facts,
		make("div.tools", {}, toggle, retry, priority, cancel));
	return {
		element,
		update(download) {
			latest = download;
			element.dataset.state = download.state;
			say(state, download.state);
			const verb = download.state === "paused" ? "Resume" : "Pause";
			say(toggle, verb);
			set(toggle, "aria-label", `${verb} ${title(first)}`);
			if (!download.retry_at && document.activeElement === retry) toggle.focus();
			retry.hidden = !download.retry_at;
			if (document.activeElement !== priority) priority.value = download.priority;
			const share = download.total ? download.bytes / download.total : null;
			progress.update(share, share === null ? "size unknown" : percent(share));
			say(facts, texts(download).join(" · "));
		},
	};
}

function texts(download) {
	return [
		download.total ? `${size(download.bytes)} of ${size(download.total)}` : size(download.bytes),
		download.rate ? rate(download.rate) : null,
		download.eta ? `${duration(download.eta)} left` : null,
		download.segments !== undefined && download.total_segments ? `${download.segments} of ${download.total_segments} segments` : null,
		download.first && !download.last ? `the first ${size(download.first)} only` : null,
		download.category ? quoted(download.category) : null,
		download.message ? quoted(download.message) : null,
		download.retry_at ? `next attempt at ${clock(download.retry_at * 1000)}` : null,
		quoted(place(download.url)),
	].filter(Boolean);
}

// The form

export function begin() {
	const form = id("order");
	onSubmit("order", order);
	for (const type of ["dragover", "drop"]) {
		form.addEventListener(type, (event) => {
			event.preventDefault();
			form.classList.toggle("over", type === "dragover");
			if (type === "dragover") return;
			const dropped = event.dataTransfer.getData("text/uri-list") || event.dataTransfer.getData("text/plain");
			fill(dropped, "What was dropped is not a URL: drop a link, or paste its address.");
		});
	}
	on("order-url", "paste", (event) => {
		const pasted = event.clipboardData?.getData("text/plain") ?? "";
		// The field would join the lines.
		if (!pasted.trim().includes("\n")) return;
		event.preventDefault();
		fill(pasted);
	});
	on("failed-forget", "click", forget);
	form.addEventListener("dragleave", () => form.classList.remove("over"));
}

/** Puts the URLs of a text into the form. Lines with # are comments (RFC 2483 §5). */
function fill(text, complaint = "") {
	const urls = text.split(/[\r\n]+/).map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
	say("order-error", urls.length ? "" : complaint);
	if (urls.length) id("order-url").value = urls.join(" ");
	id("order-url").focus();
}

async function order() {
	const field = (name) => id(`order-${name}`).value.trim();
	const text = field("url"), urls = text.split(/\s+(?=https?:)/i).filter(Boolean);
	say("order-error", "");
	if (!urls.length) return say("order-error", "Paste the URL of a film, an episode or a playlist.");
	const order = { priority: field("priority") };
	for (const name of ["first", "quality", "category"]) if (field(name)) order[name] = field(name);
	await withSession(async () => {
		try {
			const { downloads } = await api.order(urls.map((url) => ({ url, ...order })));
			const [download] = downloads;
			const what = downloads.length > 1 ? `${downloads.length} downloads` : quoted(title(download));
			tell(downloads.length === 1 && download.state === "completed" ? `${what} is in the cache already.` : `Ordered: ${what}.`);
			for (const one of downloads) if (one.state !== "completed") watched.set(one.id, false);
			if (field("url") === text) id("order").reset();
		} catch (error) {
			if (error.status === 401) throw error;
			if (field("url") !== text) return tell(error.message, true);
			say("order-error", error.message);
			id("order-url").focus();
		}
	});
}
