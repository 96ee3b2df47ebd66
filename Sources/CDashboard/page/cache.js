// What is on the disk: how full it is and with what, and the list of resources.

import * as api from "./api.js";
import { concerns, showMap, strips } from "./coverage.js";
import { attempt, bar, confirm, foreign, hide, id, list, make, on, onSubmit, quiet, say, set, tell, turns } from "./dom.js";
import { isSignedIn, maySee, withSession } from "./session.js";
import { ago, count, host, name, percent, place, plural, printable, quoted, size } from "./text.js";

/** Rows of a page; the proxy has the rest. */
const pageSize = 100;
/** The largest resources, which say what fills the disk; they are asked for once a minute. */
const sampleSize = 1000;
const sampleInterval = 60_000;

let query = { sort: "recent", filter: "", offset: 0 };
let total = 0;

export function begin() {
	id("cache-meter").append(meter.element, used);
	for (const head of heads()) head.addEventListener("click", () => look({ sort: head.dataset.sort, offset: 0 }));
	on("cache-all", "change", (event) => {
		for (const child of children()) child.choose(event.target.checked);
		showChoice();
	});
	on("cache-pin", "click", () => chosen.size && pinChosen(true));
	on("cache-unpin", "click", () => chosen.size && pinChosen(false));
	on("cache-remove", "click", () => chosen.size && removeChosen());
	let typing;
	on("cache-filter", "input", (event) => {
		clearTimeout(typing);
		typing = setTimeout(() => look({ filter: event.target.value.trim(), offset: 0 }), 250);
	});
	onSubmit("cache-search", () => {});
	on("cache-earlier", "click", () => look({ offset: Math.max(0, query.offset - pageSize) }));
	on("cache-later", "click", () => look({ offset: query.offset + pageSize }));
	on("space", "toggle", () => attempt(showSpace));
}

function look(change) {
	query = { ...query, ...change };
	return attempt(refresh);
}

const heads = () => document.querySelectorAll("#cache-table [data-sort]");
const children = () => [...(id("cache-list").known?.values() ?? [])];

// Size

const meter = bar("disk used");
const used = make("span.faint");

/** Shows what happens: how full the cache is, and what moves in the list. */
export function show(now) {
	const { size: bytes, limit } = now.cache;
	const text = `${size(bytes)} of ${size(limit)}`;
	meter.update(bytes / Math.max(1, limit), text);
	say(used, text);
	for (const child of children()) child.move(now);
}

// The list

const turn = turns();

/** Asks the proxy again. */
export async function refresh() {
	const isLast = turn();
	const listing = await api.resources({ ...query, limit: pageSize, urls: isSignedIn() });
	if (!isLast()) return;
	total = listing.total;
	if (!listing.resources.length && query.offset > 0) return look({ offset: Math.max(0, Math.floor((total - 1) / pageSize) * pageSize) });
	const end = query.offset + listing.resources.length;
	say("cache-count", total ? `${count(query.offset + 1)} to ${count(end)} of ${count(total)}` : query.filter ? "Nothing has this in its URL." : "Nothing is cached yet.");
	set(id("cache-earlier"), "aria-disabled", query.offset === 0);
	set(id("cache-later"), "aria-disabled", end >= total);
	hide("cache-table", !listing.resources.length);
	for (const head of heads()) {
		if (head.dataset.sort !== query.sort) head.parentElement.removeAttribute("aria-sort");
		else set(head.parentElement, "aria-sort", query.sort === "name" ? "ascending" : "descending");
	}
	list("cache-list", listing.resources, (resource) => `${resource.whole} ${titleOf(resource)}`, row);
	for (const whole of chosen.keys()) if (!listing.resources.some((resource) => resource.whole === whole)) chosen.delete(whole);
	showChoice();
	if (Date.now() - sampled >= sampleInterval) await showSpace();
}

// What is selected: of this page alone, so that nobody removes what he does not see

/** The resources that are selected, by their URLs. */
const chosen = new Map();

const titleOf = (resource) => printable(resource.title || name(resource.url));

function showChoice() {
	const all = [...chosen.values()];
	say("cache-chosen", all.length ? `${count(all.length)} selected, ${size(sum(all))}` : "Nothing is selected.");
	for (const verb of ["pin", "unpin", "remove"]) set(id(`cache-${verb}`), "aria-disabled", !all.length);
	const box = id("cache-all"), rows = children().length;
	box.checked = rows > 0 && all.length === rows;
	box.indeterminate = all.length > 0 && all.length < rows;
}

const sum = (resources) => resources.reduce((bytes, resource) => bytes + resource.cached, 0);

/** Does something to each that is selected, and goes on after a failure, which is told. */
async function each(resources, done, act) {
	let count = 0, failure = null;
	for (const resource of resources) {
		try {
			await act(resource);
			count++;
			chosen.delete(resource.whole);
			tell(`${done} ${count} of ${plural(resources.length, "resource")}.`);
		} catch (error) {
			failure ??= `${titleOf(resource)}: ${error.message}`;
		}
	}
	if (failure) tell(`${done} ${count} of ${plural(resources.length, "resource")}. ${failure}`, true);
	for (const child of children()) child.choose(chosen.has(child.whole));
	await refresh();
}

const pinChosen = (pinned) => withSession(() =>
	each([...chosen.values()], pinned ? "Pinned" : "Unpinned", (resource) => api.pin(resource.whole, pinned)));

const removeChosen = () => withSession(async () => {
	const all = [...chosen.values()], pinned = all.filter((resource) => resource.is_pinned).length;
	const names = all.slice(0, 3).map((resource) => quoted(titleOf(resource))).join(", ");
	const others = all.length > 3 ? ` and ${count(all.length - 3)} more` : "";
	const question = `Remove ${names}${others}? That frees about ${size(sum(all))}${pinned ? `; ${count(pinned)} of them pinned` : ""}.`;
	if (!(await confirm(question, "Remove them"))) return;
	sampled = 0;
	await each(all, "Removed", (resource) => api.remove(resource.whole, false));
});

/** The maps of the rows are asked for one after the other, of those in sight or near. */
let maps = Promise.resolve();
const sight = new IntersectionObserver((entries) => {
	for (const { target, isIntersecting } of entries) if (isIntersecting) target.seen();
}, { rootMargin: "500px 0px" });

function row(first) {
	const title = titleOf(first);
	const map = strips(first.whole, { most: 1, shown: first.url });
	let isSeen = false;
	let shown = null;
	let latest = null;
	let now = null;
	const ask = () => {
		if (!isSeen) return;
		const { cached } = latest;
		if (latest.is_complete && isFile(latest) && maySee(first.whole)) {
			map.fill(latest.length);
			map.draw(now);
			return (shown = cached);
		}
		maps = maps.then(async () => {
			// Rows come and go while somebody types.
			if (!element.isConnected) return;
			await map.refresh();
			map.draw(now);
			shown = maySee(first.whole) ? cached : null;
		}).catch(() => {});
	};
	const cached = make("td.number");
	const read = make("td.wide.read");
	const hits = make("td.number.wide.hits");
	const box = make("input", { type: "checkbox", "aria-label": `Select ${title}`, change: () => {
		choose(box.checked);
		showChoice();
	} });
	const choose = (isChosen) => {
		box.checked = isChosen;
		if (isChosen) chosen.set(first.whole, latest);
		else chosen.delete(first.whole);
	};
	const pin = quiet("", () => withSession(async () => {
		await api.pin(first.whole, pin.getAttribute("aria-pressed") !== "true");
		await refresh();
	}));
	const save = quiet("Save", () => (save.title ? tell(save.title) : saveFile(first)), `Save ${title} as a file`);
	let removal = null;
	const removing = () => (removal ??= remove(first, title).finally(() => (removal = null)));
	const tools = make("td.tools", {}, pin, save,
		quiet("Map", () => showMap(first.whole, title), `Map of ${title}`),
		quiet("Remove", removing, `Remove ${title}`));
	const what = make("th", { scope: "row", title: printable(first.url) }, foreign(title), " ", make("span.faint", {}, foreign(printable(place(first.url)))));
	const element = make("tr", { "data-url": first.url }, make("td.check", {}, box), what, make("td.map.wide", {}, map.element), cached, hits, read, tools);
	element.seen = () => {
		sight.unobserve(element);
		isSeen = true;
		ask();
	};
	sight.observe(element);
	return {
		element, choose, whole: first.whole,
		update(resource) {
			latest = resource;
			box.checked = chosen.has(first.whole);
			if (box.checked) chosen.set(first.whole, resource);
			const bytes = size(resource.cached);
			const share = resource.length ? resource.cached / resource.length : 0;
			say(cached, resource.parts || resource.is_complete ? bytes : `${bytes}, ${percent(share)}`);
			say(hits, count(resource.hits));
			say(read, ago(resource.last_access));
			const verb = resource.is_pinned ? "Unpin" : "Pin";
			say(pin, verb);
			set(pin, "aria-pressed", resource.is_pinned);
			set(pin, "aria-label", `${verb} ${title}`);
			save.title = whyNotSaved(resource);
			set(save, "aria-disabled", Boolean(save.title));
			if (shown !== resource.cached || now) ask();
		},
		/** Moves the marks of the strip, and asks once more when they go. */
		move(report) {
			const isLive = concerns(report, first.url);
			if (isLive) map.draw((now = report));
			else if (now) (now = null), ask();
		},
	};
}

/** Whether it is media and no playlist, whose parts are elsewhere. */
const isFile = ({ parts, type, url }) =>
	!parts && /^(video|audio|image)\/(?!.*(mpegurl|scpls))/i.test(type) && !/\.(m3u8?|mpd|pls)$/i.test(url.replace(/[?#].*/, ""));

function whyNotSaved(resource) {
	if (resource.parts) return "A stream is many files: save it with reelcache export.";
	return resource.is_complete ? "" : "Only a part is cached.";
}

async function remove(resource, title) {
	await withSession(async () => {
		const { bytes, parts } = await api.remove(resource.whole, true);
		const what = parts ? `${quoted(title)} with its ${plural(parts, "part")}` : quoted(title);
		if (!(await confirm(`Remove ${what}? That frees ${size(bytes)}.`, "Remove it"))) return;
		const removed = await api.remove(resource.whole, false);
		tell(`Removed ${what}: ${size(removed.bytes)} are free.`);
		sampled = 0;
		await refresh();
	});
}

/** Gives the file to the browser, which asks where to put it. */
function saveFile(resource) {
	const save = async () => make("a", { href: await api.savePath(resource.whole), download: name(resource.url) }).click();
	return maySee(resource.whole) ? attempt(save) : withSession(save);
}

// What fills the disk, and what would go next

/** When the sample was asked for, and among how many of the oldest is looked for what goes next. */
let sampled = 0;
const oldestCount = 500;

async function showSpace() {
	if (!id("space").open) return;
	sampled = Date.now();
	const { resources, total: all } = await api.resources({ sort: "size", limit: sampleSize });
	const oldest = await api.resources({ sort: "recent", limit: oldestCount, offset: Math.max(0, all - oldestCount) });
	say("space-note", all > resources.length ? `Sums of the ${count(resources.length)} largest of ${count(all)}.` : "");
	shares("space-hosts", sums(resources, (resource) => host(resource.url)));
	shares("space-kinds", sums(resources, kind));
	const inCategory = resources.filter((resource) => resource.category);
	shares("space-categories", sums(inCategory, (resource) => resource.category));
	id("space-by-category").hidden = !inCategory.length;
	const next = oldest.resources.filter((resource) => !resource.is_pinned).reverse().slice(0, 5);
	say("space-next-none", next.length ? "" : !all ? "Nothing is cached."
		: all > oldestCount ? `The ${oldestCount} that were not read for longest are pinned.` : "Nothing: everything is pinned.");
	list("space-next", next, (resource) => resource.url, (resource) => {
		const facts = make("span");
		return {
			element: make("li", {}, foreign(printable(name(resource.url))), facts),
			update: (latest) => say(facts, ` ${size(latest.cached)}, read ${ago(latest.last_access)}`),
		};
	});
}

function kind(resource) {
	if (resource.parts) return "streams";
	const [type] = (resource.type ?? "").split("/");
	return { video: "films", audio: "sound", image: "pictures", text: "text" }[type] ?? "other";
}

function sums(resources, keyOf) {
	const sums = new Map();
	for (const resource of resources) sums.set(keyOf(resource), (sums.get(keyOf(resource)) ?? 0) + resource.cached);
	return [...sums].map(([key, bytes]) => ({ key, bytes })).sort((a, b) => b.bytes - a.bytes).slice(0, 8);
}

function shares(parent, sums) {
	const most = Math.max(1, ...sums.map((sum) => sum.bytes));
	list(parent, sums, (sum) => sum.key, (first) => {
		const drawn = bar(first.key);
		const number = make("span.number");
		return {
			element: make("li", {}, foreign(printable(first.key)), number, drawn.element),
			update(sum) {
				say(number, size(sum.bytes));
				drawn.update(sum.bytes / most, size(sum.bytes));
			},
		};
	});
}
