// Signing in: with the link of `reelcache dashboard`, or with the token in a form.

import * as api from "./api.js";
import { attempt, id, on, onSubmit, say, tell } from "./dom.js";

let state = { is_signed_in: false, reads_freely: true };
let isKnown = false;
let whenChanged = () => {};

/** Whether the page may read. */
export const mayRead = () => state.is_signed_in || state.reads_freely;

export const isSignedIn = () => state.is_signed_in;

/** Whether the page may ask about a URL: what is hidden of one is told only to who is signed in. */
export const maySee = (url) => isSignedIn() || !api.isHidden(url);

/** @param changed called whenever somebody has signed in or out. */
export async function begin(changed) {
	whenChanged = changed;
	on("sign", "click", () => (state.is_signed_in ? end() : ask()));
	onSubmit("sign-form", submit);
	on("sign-in-cancel", "click", () => id("sign-in").close());
	api.whenKeyChanges(look);
	// A link that is opened in a tab of this page does not load it again.
	addEventListener("hashchange", useLink);
	if (!(await useLink())) await look();
}

/** Signs in with the link at which the page was opened. @returns whether there was one. */
async function useLink() {
	const link = /^#link=([0-9a-f]+)$/.exec(location.hash)?.[1];
	if (!link) return false;
	// The link is worthless from here on, and has no place in the history.
	history.replaceState(null, "", location.pathname);
	await attempt(() => api.session.begin({ link }));
	await look();
	return true;
}

/** Asks the proxy whether this browser is signed in. */
export async function look() {
	try {
		state = await api.session.report();
	} catch (error) {
		// The header says that the proxy is gone, and it is asked again when it is back.
		if (isKnown) return;
		say("state", `The page cannot begin: ${error.message}. Trying again.`);
		setTimeout(look, 2000);
		return;
	}
	isKnown = true;
	// In another tab, perhaps: what this one waits to do, it does.
	if (state.is_signed_in) id("sign-in").close("in");
	say("sign", state.is_signed_in ? "Sign out" : "Sign in");
	document.body.classList.toggle("signed-in", state.is_signed_in);
	document.body.classList.toggle("locked", !mayRead());
	whenChanged();
}

/**
 * Does what needs a session: asks for the token first, where there is none.
 * @returns whether it was done.
 */
export async function withSession(action) {
	if (!state.is_signed_in && !(await ask())) return false;
	return attempt(async () => {
		try {
			await action();
			return true;
		} catch (error) {
			if (error.status !== 401) throw error;
			await look();
			throw new Error("this browser is no longer signed in: sign in again");
		}
	});
}

/** Shows the form. @returns whether somebody signed in, and did not leave the form before. */
function ask() {
	const dialog = id("sign-in");
	say("sign-in-error", "");
	id("token").value = "";
	dialog.returnValue = "";
	dialog.showModal();
	return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "in"), { once: true }));
}

async function submit() {
	try {
		await api.session.begin({ token: id("token").value.trim() });
		await look();
		if (!state.is_signed_in) throw new Error("this browser keeps no cookies for this page: allow them, or use the command line");
		tell("Signed in.");
	} catch (error) {
		say("sign-in-error", error.message);
		id("token").focus();
	}
}

async function end() {
	await attempt(api.session.end);
	await look();
	// What was shown has no place in a page that shows nothing.
	if (!mayRead()) return location.reload();
	tell("Signed out.");
}
