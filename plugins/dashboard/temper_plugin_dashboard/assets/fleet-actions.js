// Actions on chosen nodes. The server passes the request and the token on to their agents.

import { html, useState } from "./vendor/htm-preact.js";
import { act, isSignedIn } from "./agent.js";
import { podName } from "./format.js";
import { nodePage } from "./fleet-parts.js";
import { Confirm, useDocument } from "./parts.js";

// The most that the server takes in one request.
const AT_ONCE = 64;

const KINDS = {
  request: {
    method: "PUT",
    path: "fleet/safe-mode",
    isDanger: true,
    words: (nodes) => `Request safe mode of ${nodes}`,
    question: (count) => `Request safe mode of ${count}?`,
    detail: "Their engines end, and the kernel's stock scheduler runs all of their threads until the request is withdrawn.",
    label: "Request safe mode",
    body: (form) => ({ requested: true, reason: String(form.get("reason")) }),
  },
  withdraw: {
    method: "PUT",
    path: "fleet/safe-mode",
    words: (nodes) => `Withdraw it from ${nodes}`,
    question: (count) => `Withdraw the request for safe mode from ${count}?`,
    detail: "Safe mode of a node ends when no request is left there.",
    label: "Withdraw",
    body: () => ({ requested: false }),
  },
  reload: {
    method: "POST",
    path: "fleet/profiles/reload",
    words: (nodes) => `Reload the profiles of ${nodes}`,
    question: (count) => `Reload the profiles of ${count}?`,
    detail: "Each agent reads all files of its profile directory, and decides anew if one has changed. Threads of pods may get other treatments.",
    label: "Reload",
    body: () => ({}),
  },
  capture: {
    method: "POST",
    path: "fleet/traces",
    words: (nodes) => `Capture a trace of ${nodes}`,
    question: (count) => `Capture a trace of ${count}?`,
    detail: "The agent records the scheduler's events, which takes CPU time there. The trace has the names of threads and pods, and stays on the node.",
    label: "Capture",
    body: (form) => ({ seconds: Number(form.get("seconds")), ...(form.get("pod") && { pod: String(form.get("pod")) }) }),
  },
};

async function ask({ method, path }, nodes, body, onAnswers) {
  for (let at = 0; at < nodes.length; at += AT_ONCE) {
    onAnswers((await act(method, path, { nodes: nodes.slice(at, at + AT_ONCE), ...body })).nodes);
  }
}

const Outcome = ({ node, done, error }) =>
  html`<li>${node}: <span class=${error ? "bad" : ""}>${error ? `failed: ${error}` : done}</span></li>`;

// kinds: which actions are offered.
export function FleetActions({ nodes, kinds }) {
  const [wish, setWish] = useState(null);
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const [{ kind: answered, answers }, setAnswers] = useState({ kind: "", answers: [] });
  const confirmed = async (form) => {
    const { kind, names } = wish;
    setWish(null);
    setIsBusy(true);
    setAnswers({ kind, answers: [] });
    setProblem("");
    try {
      await ask(KINDS[kind], names, KINDS[kind].body(form), (more) => setAnswers((known) => ({ kind, answers: [...known.answers, ...more] })));
    } catch (error) {
      setProblem(error.message);
    }
    setIsBusy(false);
  };
  const words = nodes.length === 1 ? nodes[0] : `${nodes.length} nodes`;
  const isOff = isBusy || !nodes.length || !isSignedIn();
  return html`
    <div class="aside">
      ${kinds.map(
        (kind) => html`<button key=${kind} type="button" class=${KINDS[kind].isDanger ? "danger" : ""} disabled=${isOff} onClick=${() => setWish({ kind, names: [...nodes] })}>${KINDS[kind].words(words)}</button>`,
      )}
      <span role="status">${isBusy ? "Asking the agents …" : ""}</span>
    </div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${answers.length > 0 && html`<ul aria-label="What the agents answered">${answers.map((each) => html`<${Outcome} key=${each.node} ...${each} />`)}</ul>`}
    ${answered === "capture" && answers.map(({ node, done }) => done && html`<p key=${node}><a href=${`${nodePage(node)}#/traces`}>The traces of ${node}</a></p>`)}
    ${wish && html`<${Question} ...${wish} onYes=${confirmed} onNo=${() => setWish(null)} />`}
  `;
}

function Question({ kind, names, onYes, onNo }) {
  const count = names.length === 1 ? "one node" : `${names.length} nodes`;
  const { question, detail, label } = KINDS[kind];
  return html`
    <${Confirm} question=${question(count)} detail=${detail} label=${label} onYes=${onYes} onNo=${onNo}>
      <p class="names">${names.join(", ")}</p>
      ${kind === "request" && html`<label>Reason <input name="reason" required maxlength="500" /></label>`}
      ${kind === "capture" && html`<${CaptureFields} node=${names[0]} />`}
    <//>
  `;
}

function CaptureFields({ node }) {
  const pods = useDocument(`fleet/pods?node=${encodeURIComponent(node)}`, 0);
  return html`
    <label>Seconds <input name="seconds" type="number" min="0.1" max="30" step="0.1" value="5" required /></label>
    <label>Pod <select name="pod"><option value="">the whole node</option>${(pods.data?.pods ?? []).map((pod) => html`<option key=${podName(pod)} value=${podName(pod)}>${podName(pod)}</option>`)}</select></label>
  `;
}
