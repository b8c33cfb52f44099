// Opens a trace in a Perfetto UI, as Perfetto documents it in "Deep linking to the Perfetto UI": open a tab, send PING
// until it answers PONG, then send the trace. Nothing is opened or sent without a click.

import { fetchBytes } from "./agent.js";

const PING_EVERY_MS = 100;
const LONGEST_WAIT_MS = 60 * 1000;

// Resolves once the tab has answered. A message before its page listens is lost, hence the repetition.
function answeredPing(tab, origin) {
  return new Promise((resolve, reject) => {
    const began = Date.now();
    const end = (settle, value) => {
      clearInterval(timer);
      window.removeEventListener("message", heard);
      settle(value);
    };
    const heard = (event) => {
      if (event.source === tab && event.origin === origin && event.data === "PONG") end(resolve);
    };
    const ping = () => {
      if (tab.closed) end(reject, new Error("The tab of Perfetto was closed before it had the trace."));
      else if (Date.now() - began > LONGEST_WAIT_MS) end(reject, new Error(`Perfetto at ${origin} does not answer. Is it one?`));
      else tab.postMessage("PING", "*"); // until the page is there, the tab has no origin that could be named
    };
    const timer = setInterval(ping, PING_EVERY_MS);
    window.addEventListener("message", heard);
  });
}

// Must be called in the handler of a click, or the browser opens no tab.
export async function openInPerfetto(address, path, name, title) {
  const tab = window.open(address, "_blank");
  if (!tab) throw new Error("The browser opened no tab. Allow this page to open tabs, and try again.");
  const { origin } = new URL(address);
  try {
    const [buffer] = await Promise.all([fetchBytes(path), answeredPing(tab, origin)]);
    tab.postMessage({ perfetto: { buffer, title, fileName: name } }, origin, [buffer]);
  } catch (error) {
    tab.close();
    throw error;
  }
}
