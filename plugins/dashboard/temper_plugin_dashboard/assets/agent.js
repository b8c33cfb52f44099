// Requests to the agent that serves this page. All paths are relative, so that the page works behind a proxy's prefix.

import { ended, keyHeader, sessionKey } from "./session.js";

const IDLE_MS = 15 * 60 * 1000;
const LONGEST_READ_MS = 60 * 1000;
const REOPEN_MS = 4000;
const session = { token: "", until: 0 };

export class AgentError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const isSignedIn = () => session.token !== "" && Date.now() < session.until;

// The token stays in this page's memory. It is gone with a reload, and after 15 minutes without an action.
export function signIn(token) {
  session.token = token;
  session.until = Date.now() + IDLE_MS;
}

export function signOut() {
  session.token = "";
}

async function answered(path, options) {
  let response;
  const key = sessionKey();
  try {
    response = await fetch(path, { cache: "no-store", ...options, headers: { ...options.headers, ...keyHeader(key) } });
  } catch {
    throw new AgentError(0, "the agent does not answer");
  }
  if (response.ok) return response;
  if (response.headers.get("temper-session") === "ended") ended(key);
  const text = await response.text();
  let message = text.slice(0, 300);
  try {
    message = JSON.parse(text).error ?? message;
  } catch {
    // a proxy's own page
  }
  throw new AgentError(response.status, message || `status ${response.status}`);
}

const patient = () => ({ signal: AbortSignal.timeout(LONGEST_READ_MS) });

export async function read(path) {
  return (await answered(path, patient())).json();
}

export async function readText(path) {
  return (await answered(path, patient())).text();
}

function authorized() {
  if (!isSignedIn()) {
    signOut();
    throw new AgentError(401, "no token is entered, or it has expired");
  }
  session.until = Date.now() + IDLE_MS;
  return { authorization: `Bearer ${session.token}` };
}

export async function act(method, path, body) {
  const headers = { ...authorized(), "content-type": "application/json" };
  const response = await answered(path, { method, headers, body: body && JSON.stringify(body) });
  return response.json();
}

export async function fetchBytes(path) {
  return (await answered(path, { headers: authorized() })).arrayBuffer();
}

export async function download(path, name) {
  const response = await answered(path, { headers: authorized() });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// Shows what is at a path as text. A link to it would send no key of the session.
export async function show(path) {
  const text = await readText(path).catch((error) => error.message);
  window.location.assign(URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" })));
}

const fields = (lines, name) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));

// Calls heard with the kind and the data of each event of a stream until it ends. An EventSource would send no key of the session.
async function listen(path, signal, onOpen, heard) {
  const response = await answered(path, { headers: { accept: "text/event-stream" }, signal });
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const events = (text + piece.value).split("\n\n");
    text = events.pop();
    for (const lines of events.map((event) => event.split("\n"))) heard(fields(lines, "event")[0], fields(lines, "data").join("\n"));
  }
}

// Calls onLook for each new event of a stream, and onState with whether the agent answers and, if the stream tells it,
// why not and since when. Without the stream it reads the path check every 5 s. Returns a function that ends it.
// A hidden tab holds no stream: a browser has six connections to one agent for all of its tabs.
export function follow(onLook, onState, { stream = "dashboard/snapshots", event = "snapshot", check = "dashboard/settings" } = {}) {
  let current;
  let timer;
  const ask = () => read(check).then(() => (onState(true), onLook()), () => onState(false));
  const heard = (kind, data) => {
    if (kind === "away") onState(false, JSON.parse(data));
    if (kind !== event) return;
    onState(true);
    onLook();
  };
  const open = async () => {
    const { signal } = (current = new AbortController());
    const problem = await listen(stream, signal, () => onState(true), heard).catch((error) => error);
    if (signal.aborted) return;
    timer = setTimeout(open, REOPEN_MS);
    // The agent refuses a client's streams above its limit, and answers all else.
    if (problem?.status) ask();
    else onState(false);
  };
  const end = () => {
    clearTimeout(timer);
    current?.abort();
  };
  const turned = () => {
    end();
    if (!document.hidden) open();
  };
  turned();
  document.addEventListener("visibilitychange", turned);
  return () => {
    document.removeEventListener("visibilitychange", turned);
    end();
  };
}
