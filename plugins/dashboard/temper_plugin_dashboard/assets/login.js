// The login of the fleet server. It is shown at the address of every page, which follows after a reload.

const root = window.location.pathname.replace(/\/node\/[^/]+\/$/, "/");
const problem = document.getElementById("problem");

async function enter(token) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) };
  const response = await fetch(`${root}login`, options);
  if (response.ok) return "";
  const text = await response.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text.slice(0, 300) || `status ${response.status}`;
  }
}

document.getElementById("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  try {
    problem.textContent = await enter(String(new FormData(event.target).get("token")).trim());
  } catch {
    problem.textContent = "The server does not answer.";
  }
  if (!problem.textContent) window.location.reload();
});
