// The login of the fleet server. It is shown at the address of every page, which follows after a reload without the query.

import { enter, isOpen, keepKey } from "./session.js";

window.history.replaceState(null, "", window.location.pathname + window.location.hash);

const problem = document.getElementById("problem");

async function refusal(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text.slice(0, 300) || `status ${response.status}`;
  }
}

async function begin(token) {
  const response = await enter(token).catch(() => null);
  if (!response) return "The server does not answer.";
  if (!response.ok) return refusal(response);
  const { key } = await response.json();
  try {
    keepKey(key);
  } catch {
    return "The browser keeps nothing for this page. Allow it to store data of this address.";
  }
  if (await isOpen(key).catch(() => true)) return "";
  return "The browser keeps no cookie of this page, or sends one of another server. Allow cookies of this address, and delete the old ones.";
}

document.getElementById("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  problem.textContent = await begin(String(new FormData(event.target).get("token")).trim());
  if (!problem.textContent) window.location.reload();
});
