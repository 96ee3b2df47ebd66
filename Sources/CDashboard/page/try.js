// The address of something through the proxy: to copy, to photograph, or to play here.

import * as api from "./api.js";
import { id, make, on, onSubmit, say, turns } from "./dom.js";

export function begin() {
	onSubmit("try-form", show);
	on("try-url", "paste", () => setTimeout(show));
	on("try-copy", "click", copy);
	on("try-play", "click", play);
	on("try-player", "error", () => {
		say("try-note", "This browser cannot play it: copy the address into a player such as mpv or VLC.");
	});
}

const turn = turns();

async function show() {
	const isLast = turn();
	const url = id("try-url").value.trim();
	stop();
	id("try-result").hidden = true;
	say("try-error", url ? "" : "Paste the URL of a film, an episode or a playlist.");
	if (!url) return;
	try {
		const address = location.origin + (await api.playerPath(url));
		const picture = isOfThisMachine(location.hostname) ? hint() : await code(address);
		if (!isLast()) return;
		say("try-address", address);
		id("try-qr").replaceChildren(picture);
		id("try-result").hidden = false;
	} catch (error) {
		if (isLast()) say("try-error", error.message);
	}
}

const isOfThisMachine = (host) => /^(127\.[\d.]+|\[::1\]|(.+\.)?localhost)$/.test(host);

const hint = () => make("p.faint", {},
	"Only this machine reaches this address. For a QR code for a phone, set ", make("code", {}, "listen"), " to an address of your network and open the dashboard there.");

/** The QR code of a text, or nothing if it is too long for one. */
async function code(text) {
	const { matrix } = await import("./qr.js");
	const modules = matrix(text);
	if (!modules) return make("p.faint", {}, "The address is too long for a QR code.");
	const quiet = 4;
	const extent = modules.length + 2 * quiet;
	const path = modules.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + quiet} ${y + quiet}h1v1h-1z` : ""))).join("");
	return make("svg.qr", { role: "img", "aria-label": "QR code of this address", viewBox: `0 0 ${extent} ${extent}` },
		make("rect", { width: extent, height: extent, class: "paper" }), make("path", { d: path, class: "ink" }));
}

async function copy() {
	const address = id("try-address").textContent;
	try {
		await navigator.clipboard.writeText(address);
		say("try-note", "Copied.");
	} catch {
		// Without https, only this machine's browsers have a clipboard: the address is selected instead.
		getSelection().selectAllChildren(id("try-address"));
		say("try-note", "Selected: copy it with Ctrl+C.");
	}
}

function play() {
	const player = id("try-player");
	say("try-note", "");
	player.src = id("try-address").textContent;
	player.hidden = false;
	player.play().catch(() => {});
}

function stop() {
	const player = id("try-player");
	player.hidden = true;
	player.removeAttribute("src");
	player.load();
	say("try-note", "");
}
