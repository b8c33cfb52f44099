// Requests to the agent that serves this page. All paths are relative, so that the page works behind a proxy's prefix.

const IDLE_MS = 15 * 60 * 1000;
const LONGEST_READ_MS = 60 * 1000;
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
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new AgentError(0, "the agent does not answer");
  }
  if (response.ok) return response;
  // The session with the server of the fleet has ended. It shows the login at this address.
  if (response.headers.get("temper-session") === "ended") window.location.reload();
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

// Calls onLook for each new event of a stream, and onState with whether the agent answers and, if the stream tells it,
// why not and since when. Without the stream it reads the path check every 5 s. Returns a function that ends it.
// A hidden tab holds no stream: a browser has six connections to one agent for all of its tabs.
export function follow(onLook, onState, { stream = "dashboard/snapshots", event = "snapshot", check = "dashboard/settings" } = {}) {
  let source;
  let timer;
  const ask = () => read(check).then(() => (onState(true), onLook()), () => onState(false));
  const open = () => {
    source = new EventSource(stream);
    source.addEventListener(event, () => {
      onState(true);
      onLook();
    });
    source.addEventListener("away", ({ data }) => onState(false, JSON.parse(data)));
    source.addEventListener("open", () => onState(true));
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) {
        onState(false);
        return;
      }
      // The agent refuses a client's streams above its limit, and answers all else.
      ask();
      timer = setTimeout(open, 5000);
    });
  };
  const end = () => {
    clearTimeout(timer);
    source?.close();
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
