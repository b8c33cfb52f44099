// The session with the server of a cluster's page: a cookie and a key, which are halves of one secret. A browser sends cookies to
// every port of a host name, where other servers may listen, and keeps storage apart by port. The page of an agent has no session.

const root = window.location.pathname.replace(/\/node\/[^/]+\/$/, "/");
const NAME = `temper-session ${root}`;

export const keepKey = (key) => window.localStorage.setItem(NAME, key);

export function sessionKey() {
  try {
    return window.localStorage.getItem(NAME) ?? "";
  } catch {
    return ""; // the browser keeps nothing for this page
  }
}

export const keyHeader = (key = sessionKey()) => (key ? { "temper-session": key } : {});

export const enter = (token) =>
  fetch(`${root}login`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) });

// Cookies tell nothing of the end of a session: servers at other ports and paths of the host can have set one of the same name.
const showLogin = () => window.location.replace(`?login${window.location.hash}`);

// Whether the server finds the session with that key open, for which the browser must have kept the cookie.
export async function isOpen(key) {
  const response = await fetch(`${root}fleet/nodes`, { cache: "no-store", headers: keyHeader(key) });
  return response.status !== 401;
}

// Ends the session, and shows the login.
export async function leave() {
  try {
    await fetch(`${root}logout`, { method: "POST", headers: keyHeader() });
    window.localStorage.removeItem(NAME);
  } finally {
    showLogin();
  }
}

// Follows the end of the session with that key. Another tab may have begun a new one meanwhile. The cookie is left alone: it may be
// of another cluster's page behind the same proxy.
export function ended(key) {
  if (key === sessionKey()) showLogin();
  else window.location.reload();
}
