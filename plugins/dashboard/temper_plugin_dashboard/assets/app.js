// The frame of the page: the head, the list of views, and the view that the address names.

import { html, render, useEffect, useState } from "./vendor/htm-preact.js";
import { follow } from "./agent.js";
import { moment } from "./format.js";
import { Guarded, useDocument } from "./parts.js";
import { SafeModeSwitch } from "./safe-mode.js";
import { TokenEntry } from "./token-entry.js";
import { Events } from "./views/events.js";
import { Layers } from "./views/layers.js";
import { Lint } from "./views/lint.js";
import { Node } from "./views/node.js";
import { Plugins } from "./views/plugins.js";
import { Pod } from "./views/pod.js";
import { Pods } from "./views/pods.js";
import { Power } from "./views/power.js";
import { Profiles } from "./views/profiles.js";
import { Rightsizing } from "./views/rightsizing.js";
import { Threads } from "./views/threads.js";
import { Traces } from "./views/traces.js";
import { Training } from "./views/training.js";

const VIEWS = [
  ["", "Node", Node],
  ["layers", "Tiers and layers", Layers],
  ["pods", "Pods", Pods],
  ["threads", "Threads", Threads],
  ["lint", "Lint", Lint],
  ["events", "Events", Events],
  ["traces", "Traces", Traces],
  ["rightsizing", "Rightsizing", Rightsizing],
  ["power", "Power", Power],
  ["profiles", "Profiles", Profiles],
  ["training", "Training", Training],
  ["plugins", "Plugins", Plugins],
];
const MODES = {
  __proto__: null, // an agent may answer with the name of a method of every object
  enforcing: ["Enforcing", "good"],
  reloading: ["Changing the engine", "warning"],
  safe_mode: ["Safe mode: the stock scheduler runs", "bad"],
  observe_only: ["Only observing", "warning"],
};

function place() {
  const [view = "", ...rest] = window.location.hash.replace(/^#\/?/, "").split("/");
  const decoded = rest.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { view, rest: decoded };
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

function silence(away) {
  if (!away) return "The agent does not answer. What is shown is old.";
  return `The agent is away${away.since ? ` since ${moment(away.since)}` : ""}: ${away.why}. What is shown is old.`;
}

function Head({ observation, answers, away, settings, onSession }) {
  const actions = settings?.actions ?? false;
  const [words, level] = MODES[observation?.mode] ?? ["Waiting for the first observation", "warning"];
  return html`
    <header class="head">
      <h1>Temper <span class="node">${observation?.node ?? settings?.node}</span></h1>
      <p class=${`mode ${answers ? level : "bad"}`} role="status">
        ${answers ? words : silence(away)}
        ${answers && observation?.detail && html` <span class="detail">${observation.detail}</span>`}
      </p>
      ${settings?.fleet && html`<div class="session"><a href=${settings.fleet}>All nodes</a></div>`}
      ${actions && html`<div class="session"><${SafeModeSwitch} mode=${observation?.mode} /><${TokenEntry} acting="acting" onChange=${onSession} /></div>`}
    </header>
  `;
}

function App() {
  const { view, rest } = usePlace();
  const [look, setLook] = useState(0);
  const [answers, setAnswers] = useState(true);
  const [away, setAway] = useState(null);
  const [, setSession] = useState(0);
  useEffect(() => {
    const heard = () => setLook((number) => number + 1);
    return follow(heard, (isThere, why) => {
      setAnswers(isThere);
      setAway(why);
    });
  }, []);
  const observation = useDocument("observe", look);
  const settings = useDocument("dashboard/settings", 0);
  const actions = settings.data?.actions ?? false;
  const isPod = view === "pod" && rest.length > 1;
  const [, title, View] = VIEWS.find(([name]) => name === (isPod ? "pods" : view)) ?? VIEWS[0];
  const heading = isPod ? rest.filter(Boolean).join("/") : title;
  useEffect(() => {
    document.title = `${heading} – ${observation.data?.node ?? "Temper"}`;
  }, [heading, observation.data?.node]);
  const Shown = isPod ? Pod : View;
  const shared = { look, observation, actions, rest, settings: settings.data };
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <${Head} observation=${observation.data} answers=${answers} away=${away} settings=${settings.data} onSession=${() => setSession(Date.now())} />
    <nav aria-label="Views">
      <ul>
        ${VIEWS.map(([name, words]) => {
          const isHere = words === title;
          const broken = name === "lint" ? observation.data?.violations?.length : 0;
          return html`<li><a href=${`#/${name}`} aria-current=${isHere ? "page" : undefined}>${words}${broken ? html` <span class="badge">${broken}</span>` : ""}</a></li>`;
        })}
      </ul>
    </nav>
    <main id="main" tabindex="-1" aria-label=${heading}><${Guarded} key=${heading} of=${look}><${Shown} ...${shared} /><//></main>
  `;
}

render(html`<${App} />`, document.getElementById("app"));
