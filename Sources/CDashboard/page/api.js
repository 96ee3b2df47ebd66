// All requests to the proxy: no other part of the page knows a path of its interface.

const root = "/api/v1/";
const keyName = "reelcache-dashboard-key";

/** The proxy refused a request; its message is one line that names the remedy. */
export class Refusal extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

/**
 * The key of the session: scripts of this origin alone can read it, and the cookie without it is worthless. It is read each time, as
 * another tab may have signed in. A browser that stores nothing for this page throws.
 */
const key = {
	get() {
		try {
			return localStorage.getItem(keyName);
		} catch {
			return null;
		}
	},
	set(text) {
		try {
			if (text) localStorage.setItem(keyName, text);
			else localStorage.removeItem(keyName);
		} catch {
			throw new Refusal(0, "this browser stores nothing for this page, which signing in needs: allow it, or use the command line");
		}
	},
};

/** Calls when another tab has signed in or out. */
export const whenKeyChanges = (act) => addEventListener("storage", (event) => event.key === keyName && act());

function target(path, parameters = {}) {
	const query = Object.entries(parameters)
		.filter(([, value]) => (value ?? "") !== "")
		.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
	return root + path + (query.length ? `?${query.join("&")}` : "");
}

async function send(path, { method = "GET", parameters, body, signal } = {}) {
	// The access log leaves out what the page asks.
	const headers = { Accept: "application/json", "Reelcache-Page": "1" };
	if (key.get()) headers["Reelcache-Dashboard"] = key.get();
	let response;
	try {
		response = await fetch(target(path, parameters), {
			method, headers, signal, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body),
		});
	} catch (error) {
		if (signal?.aborted) throw error;
		throw new Refusal(0, "the proxy does not answer: start it with reelcache serve");
	}
	if (response.ok) return response;
	const told = await response.json().catch(() => ({}));
	// The proxy explains a header, which is for programs.
	if (response.status === 401) told.error = "sign in to see or do this";
	throw new Refusal(response.status, told.error ?? `the proxy answers ${response.status}`);
}

async function ask(path, options) {
	const response = await send(path, options);
	return response.status === 204 ? null : response.json();
}

const patch = (path, parameters, body) => ask(path, { method: "PATCH", parameters, body });

// The session

export const session = {
	report: () => ask("dashboard/session"),
	/** @param credential `{ link }` or `{ token }`. */
	async begin(credential) {
		key.set((await ask("dashboard/session", { method: "POST", body: credential })).key);
	},
	async end() {
		await ask("dashboard/session", { method: "DELETE" });
		key.set(null);
	},
};

// The cache

/** @param query with `urls`, each resource has its URL as it is as `whole`: it is never shown. */
export const resources = (query) => listed("resources", { brief: true, ...query });
/** @param url without hidden parts. */
export const coverage = (url, window = {}) => ask("resources/coverage", { parameters: { url, ...window } });
export const pin = async (url, pinned) => patch("resources", { url: await whole(url) }, { pinned });
export const remove = async (url, isDryRun) =>
	ask("resources", { method: "DELETE", parameters: { url: await whole(url), dry_run: isDryRun } });
export const history = (span) => ask("history", { parameters: { span } });

/** The path at which a player opens a media URL. */
export const playerPath = async (url) => (await ask("url", { parameters: { url: await whole(url) } })).path;

/** The same, if something comes from there: a browser would save a refusal as a broken file. */
export async function savePath(url) {
	const path = await playerPath(url);
	const response = await fetch(path, { headers: { Range: "bytes=0-0" } });
	if (!response.ok) throw new Refusal(response.status, `${(await response.text()).trim()}; reelcache export saves what is cached`);
	response.body.cancel();
	return path;
}

const mask = "***";

/** Whether a list hides a part of this URL: only who is signed in can ask for it. */
export const isHidden = (url) => url.includes(mask);

async function listed(path, parameters) {
	const list = await ask(path, { parameters });
	list[path].forEach((one, index) => (one.whole = list.urls?.[index] ?? one.url));
	return list;
}

/** A URL without *** in place of its secrets, for who is signed in. */
export async function whole(url, candidates = cached) {
	if (!isHidden(url)) return url;
	const pieces = url.split(/\*{3,}/);
	const found = (await candidates(url)).filter((text) => isMadeOf(pieces, text));
	if (!found.length) throw new Refusal(404, "this is no longer in the cache");
	if (found.length > 1) throw new Refusal(409, `${found.length} addresses differ only in what is hidden: choose one in the list`);
	return found[0];
}

/** Whether a text is these pieces with anything between them. A regular expression could take for ever. */
function isMadeOf([first, ...middle], text) {
	const last = middle.pop();
	if (!text.startsWith(first)) return false;
	let end = first.length;
	for (const piece of middle) {
		const place = text.indexOf(piece, end);
		if (place < 0) return false;
		end = place + piece.length;
	}
	return text.length - last.length >= end && text.endsWith(last);
}

const cached = async (url) => (await resources({ filter: url.split(mask, 1)[0], urls: true, limit: 1000 })).urls;
const subscribed = async () => (await ask("feeds", { parameters: { urls: true } })).urls;

// Downloads

export const downloads = (query) => ask("downloads", { parameters: query });
export const order = (downloads) => ask("downloads", { method: "POST", body: { downloads } });
export const changeDownload = (number, change) => patch("downloads", { id: number }, change);
export const forgetDownloads = () => ask("downloads/history", { method: "DELETE" });

// Feeds

export const feeds = (query) => listed("feeds", query);
export const subscribe = (url) => ask("feeds", { method: "POST", body: { url } });
export const checkFeed = async (url) => ask("feeds/check", { method: "POST", parameters: { url: await whole(url, subscribed) } });
export const removeFeed = async (url) => ask("feeds", { method: "DELETE", parameters: { url: await whole(url, subscribed) } });

// What happens now

/** For how many milliseconds a connection may be silent: the proxy sends something every 15 seconds. */
const silence = () => 1000 * document.body.dataset.silence;
const waits = [500, 1000, 2000, 5000];

/**
 * Follows what happens, until the page is left: while it is hidden, nothing is asked.
 * @param isHere called with each report.
 * @param isGone called with the reason when the connection is lost; it is tried again, again and again.
 * @returns `{ resume, stop }`
 */
export function follow(isHere, isGone) {
	let attempts = 0;
	let running = null;
	let isStopped = false;

	async function run() {
		const control = new AbortController();
		running = control;
		let heard = Date.now();
		const watch = () => (heard = Date.now());
		const timer = setInterval(() => Date.now() - heard > silence() && control.abort("silence"), 1000);
		try {
			const response = await send("now/events", { signal: control.signal });
			for await (const data of events(response.body, watch)) {
				attempts = 0;
				isHere(JSON.parse(data));
			}
			isGone(new Refusal(0, "the proxy has ended: start it with reelcache serve"));
		} catch (error) {
			if (control.signal.reason === "unwanted") return;
			const reason = control.signal.reason === "silence" ? "the proxy is silent" : "the connection to the proxy was lost";
			isGone(error instanceof Refusal ? error : new Refusal(0, reason));
		} finally {
			clearInterval(timer);
			// Otherwise a connection stays open that nobody reads: a browser has six.
			control.abort("over");
			if (running === control) running = null;
		}
		// Where nobody is signed in, the page stops it.
		setTimeout(() => isStopped || resume(), waits[Math.min(attempts++, waits.length - 1)]);
	}

	function resume() {
		isStopped = false;
		if (!running && !document.hidden) run();
	}

	function stop() {
		isStopped = true;
		running?.abort("unwanted");
		running = null;
	}

	document.addEventListener("visibilitychange", () => {
		document.hidden ? stop() : resume();
	});
	addEventListener("online", resume);
	resume();
	return { resume, stop };
}

/** The data of server-sent events. Not `EventSource`, which cannot send the session's key. */
async function* events(body, watch) {
	const reader = body.pipeThrough(new TextDecoderStream()).getReader();
	let text = "";
	let data = [];
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		watch();
		const lines = (text + value).split("\n");
		text = lines.pop();
		for (const line of lines) {
			if (line.startsWith("data:")) data.push(line.slice(5));
			if (line === "" && data.length) {
				yield data.join("\n");
				data = [];
			}
		}
	}
}
