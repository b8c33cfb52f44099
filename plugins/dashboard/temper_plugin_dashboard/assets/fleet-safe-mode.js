// Safe mode of chosen nodes. The server passes the request and the token on to their agents.

import { html, useState } from "./vendor/htm-preact.js";
import { act, isSignedIn } from "./agent.js";
import { Confirm } from "./parts.js";

// The most that the server takes in one request.
const AT_ONCE = 64;

async function ask(nodes, requested, reason, onAnswers) {
  for (let at = 0; at < nodes.length; at += AT_ONCE) {
    const body = { nodes: nodes.slice(at, at + AT_ONCE), requested, ...(requested && { reason }) };
    onAnswers((await act("PUT", "fleet/safe-mode", body)).nodes);
  }
}

const Outcome = ({ node, done, error }) =>
  html`<li>${node}: <span class=${error ? "bad" : ""}>${error ? `failed: ${error}` : done}</span></li>`;

export function FleetSafeMode({ nodes }) {
  const [wish, setWish] = useState(null);
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [answers, setAnswers] = useState([]);
  const confirmed = async (form) => {
    const { requested, names } = wish;
    setWish(null);
    setIsBusy(true);
    setAnswers([]);
    setProblem("");
    try {
      await ask(names, requested, String(form.get("reason") ?? ""), (more) => setAnswers((known) => [...known, ...more]));
    } catch (error) {
      setProblem(error.message);
    }
    setIsBusy(false);
  };
  const words = nodes.length === 1 ? nodes[0] : `${nodes.length} nodes`;
  const isOff = isBusy || !nodes.length || !isSignedIn();
  const want = (requested) => setWish({ requested, names: [...nodes] });
  return html`
    <div class="aside">
      <button type="button" class="danger" disabled=${isOff} onClick=${() => want(true)}>Request safe mode of ${words}</button>
      <button type="button" disabled=${isOff} onClick=${() => want(false)}>Withdraw it from ${words}</button>
      <span role="status">${isBusy ? "Asking the agents …" : ""}</span>
    </div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${answers.length > 0 && html`<ul aria-label="What the agents answered">${answers.map((each) => html`<${Outcome} key=${each.node} ...${each} />`)}</ul>`}
    ${wish && html`<${Question} ...${wish} onYes=${confirmed} onNo=${() => setWish(null)} />`}
  `;
}

function Question({ requested, names, onYes, onNo }) {
  const count = names.length === 1 ? "one node" : `${names.length} nodes`;
  return html`
    <${Confirm}
      question=${requested ? `Request safe mode of ${count}?` : `Withdraw the request for safe mode from ${count}?`}
      detail=${requested
        ? "Their engines end, and the kernel's stock scheduler runs all of their threads until the request is withdrawn."
        : "Safe mode of a node ends when no request is left there."}
      label=${requested ? "Request safe mode" : "Withdraw"}
      onYes=${onYes}
      onNo=${onNo}
    >
      <p class="names">${names.join(", ")}</p>
      ${requested && html`<label>Reason <input name="reason" required maxlength="500" /></label>`}
    <//>
  `;
}
