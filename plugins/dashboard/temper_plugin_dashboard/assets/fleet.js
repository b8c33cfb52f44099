// The page of a cluster: all nodes, one node, and the pods of all nodes.

import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { follow } from "./agent.js";
import { Guarded, useDocument } from "./parts.js";
import { leave } from "./session.js";
import { TokenEntry } from "./token-entry.js";
import { FleetNode } from "./views/fleet-node.js";
import { FleetNodes } from "./views/fleet-nodes.js";
import { FleetPods } from "./views/fleet-pods.js";

const VIEWS = [
  ["", "Nodes", FleetNodes],
  ["pods", "Pods of all nodes", FleetPods],
];
const STREAM = { stream: "fleet/rounds", event: "round", check: "fleet/nodes" };

function place() {
  const [view = "", ...rest] = window.location.hash.replace(/^#\/?/, "").split("/");
  try {
    return { view, name: decodeURIComponent(rest.join("/")) };
  } catch {
    return { view, name: rest.join("/") };
  }
}

function usePlace() {
  const [current, setCurrent] = useState(place);
  useEffect(() => {
    const changed = () => setCurrent(place());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return current;
}

function summary(fleet) {
  if (!fleet) return ["Asking the agents", "warning"];
  if (fleet.problem) return [`The agents cannot be listed: ${fleet.problem}`, "bad"];
  const total = fleet.nodes.length;
  const away = fleet.nodes.filter((node) => node.state === "away").length;
  const enforcing = fleet.nodes.filter((node) => node.state !== "away" && node.seen?.mode === "enforcing").length;
  const words = `${total} ${total === 1 ? "node" : "nodes"}, ${enforcing} enforcing${away ? `, ${away} away` : ""}`;
  return [words, away ? "bad" : enforcing === total ? "good" : "warning"];
}

function Head({ fleet, answers, onSession }) {
  const [words, level] = answers ? summary(fleet) : ["The server does not answer. What is shown is old.", "bad"];
  return html`
    <header class="head">
      <h1>Temper <span class="node">${fleet?.cluster}</span></h1>
      <p class=${`mode ${level}`} role="status">${words}</p>
      <div class="session">${fleet?.actions && html`<${TokenEntry} onChange=${onSession} />`}<button type="button" onClick=${leave}>Leave</button></div>
    </header>
  `;
}

function Fleet() {
  const { view, name } = usePlace();
  const [look, setLook] = useState(0);
  const [answers, setAnswers] = useState(true);
  useEffect(() => follow(() => setLook((number) => number + 1), setAnswers, STREAM), []);
  const [, setSession] = useState(0);
  const fleet = useDocument("fleet/nodes", look);
  const isNode = view === "node" && name !== "";
  const [, title, View] = VIEWS.find(([each]) => each === (isNode ? "" : view)) ?? VIEWS[0];
  const heading = isNode ? name : title;
  useEffect(() => {
    document.title = `${heading} – Temper`;
  }, [heading]);
  const Shown = isNode ? FleetNode : View;
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <${Head} fleet=${fleet.data} answers=${answers} onSession=${() => setSession((number) => number + 1)} />
    <nav aria-label="Views">
      <ul>
        ${VIEWS.map(([each, words]) => html`<li><a href=${`#/${each}`} aria-current=${words === title ? "page" : undefined}>${words}</a></li>`)}
      </ul>
    </nav>
    <main id="main" tabindex="-1" aria-label=${heading}><${Guarded} key=${heading} of=${look}><${Shown} fleet=${fleet} look=${look} name=${name} /><//></main>
  `;
}

render(html`<${Fleet} />`, document.getElementById("app"));
