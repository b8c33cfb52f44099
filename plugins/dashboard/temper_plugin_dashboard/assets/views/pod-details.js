// What the API server knows of a pod: events, manifest, revisions and logs. Only the page of a cluster can read it, and of
// that only the parts that its operator chose. For the others there are commands, which act with the reader's own rights.

import { html, useState } from "../vendor/htm-preact.js";
import { count, moment, text } from "../format.js";
import { Loaded, Panel, Table, useDocument } from "../parts.js";

const ON_THE_AGENT = "An agent has no rights to read them: the page of a cluster may show them.";
const SWITCHED_OFF = "The operator of this page has not switched them on (dashboard.podDetails of the chart, --pod-details).";

const PARTS = [
  ["events", "Kubernetes events", Events],
  ["logs", "Logs", Logs],
  ["revisions", "What changed between revisions", Revisions],
  ["manifest", "Manifest", Manifest],
];

const commandsOf = (namespace, name) => ({
  logs: `kubectl -n ${namespace} logs ${name} --all-containers`,
  manifest: `kubectl -n ${namespace} get pod ${name} -o yaml`,
  events: `kubectl -n ${namespace} events --for pod/${name}`,
  revisions: `kubectl -n ${namespace} rollout history`,
});

export function PodDetails({ namespace, name, containers, settings }) {
  const shown = settings?.pod_details ?? [];
  const commands = commandsOf(namespace, name);
  const query = `namespace=${encodeURIComponent(namespace)}&pod=${encodeURIComponent(name)}`;
  const pathOf = (part) => `${settings.fleet}fleet/pod/${part}?${query}`;
  const missing = PARTS.filter(([part]) => !shown.includes(part));
  return html`
    ${PARTS.filter(([part]) => shown.includes(part)).map(
      ([part, title, Part]) => html`<${Part} key=${part} title=${title} path=${pathOf(part)} command=${commands[part]} containers=${containers} />`,
    )}
    ${missing.length > 0 && html`<${NotHere} missing=${missing} commands=${commands} why=${settings?.fleet ? SWITCHED_OFF : ON_THE_AGENT} />`}
  `;
}

function NotHere({ missing, commands, why }) {
  return html`
    <${Panel} title="Not shown here">
      <p class="dim">${why} With your own rights:</p>
      <dl class="commands">
        ${missing.map(([part, title]) => html`<div key=${part}><dt>${title}</dt><dd><code>${commands[part]}</code>${part === "revisions" && " with the kind and name of its controller"}</dd></div>`)}
      </dl>
    <//>
  `;
}

// A panel whose document is read when it is wanted, and again on request: each read costs the API server something.
function Asked({ title, path, command, isOpen = false, aside, children }) {
  const [asked, setAsked] = useState(isOpen ? 1 : 0);
  const found = useDocument(asked ? path : null, asked);
  return html`
    <${Panel}
      title=${title}
      path=${path}
      command=${command}
      aside=${html`<span class="aside">${aside}<button type="button" onClick=${() => setAsked(asked + 1)}>${asked ? "Read again" : "Show"}</button></span>`}
    >
      ${asked > 0 && html`<${Loaded} from=${found}>${children}<//>`}
    <//>
  `;
}

function Events({ title, path, command }) {
  return html`
    <${Asked} title=${title} path=${path} command=${command} isOpen>
      ${({ events, total }) => html`
        <${Table}
          caption=${title}
          rows=${events.map((row, place) => ({ ...row, place }))}
          keyOf=${(row) => row.place}
          sort=${[0, true]}
          empty="The API server has no event of this pod. It keeps events for an hour by default."
          columns=${[
            { name: "Last (UTC)", value: (row) => row.last, show: (row) => moment(row.last) },
            { name: "Type", value: (row) => row.type, show: (row) => html`<span class=${row.type === "Warning" ? "bad" : ""}>${text(row.type)}</span>` },
            { name: "Reason", value: (row) => row.reason },
            { name: "Times", value: (row) => row.count, show: (row) => count(row.count), isNumber: true },
            { name: "Message", value: (row) => row.message, isLong: true },
            { name: "From", value: (row) => row.from, show: (row) => text(row.from) },
          ]}
        />
        ${total > events.length && html`<p class="dim">The newest ${events.length} of ${total}.</p>`}
      `}
    <//>
  `;
}

function Manifest({ title, path, command }) {
  return html`
    <${Asked} title=${title} path=${path} command=${command}>
      ${({ manifest }) => html`
        <p class="dim">Values of the environment, and others that may be secrets, are hidden by the server.</p>
        <pre tabindex="0" aria-label=${title}>${JSON.stringify(manifest, null, 2)}</pre>
      `}
    <//>
  `;
}

function Revisions({ title, path, command }) {
  return html`
    <${Asked} title=${title} path=${path} command=${command}>
      ${({ owner, note, revisions }) => html`
        ${owner && html`<p>Controller: ${owner.kind} <strong>${owner.name}</strong></p>`}
        ${note && html`<p class="empty">${note}</p>`}
        ${revisions.map((revision) => html`<${Revision} key=${revision.name} ...${revision} />`)}
      `}
    <//>
  `;
}

function Revision({ number, name, created, is_own, is_large, changes }) {
  const caption = `Revision ${number}`;
  return html`
    <h3>${caption} <span class="dim">${name}, ${moment(created)}${is_own ? ", of this pod" : ""}</span></h3>
    ${is_large && html`<p class="empty">Too large to compare: a template has more than 5,000 values.</p>`}
    ${!is_large && changes === null && html`<p class="empty">The oldest that the cluster keeps.</p>`}
    ${changes &&
    html`<${Table}
      caption=${`Changes of revision ${number}`}
      rows=${changes}
      keyOf=${(row) => row.path}
      hasFilter=${false}
      empty="Its template is that of the one before."
      columns=${[
        { name: "What", value: (row) => row.path, show: (row) => html`<code>${row.path}</code>`, isLong: true },
        { name: "Before", value: (row) => row.before, show: (row) => row.before ?? html`<span class="dim">not there</span>` },
        { name: "After", value: (row) => row.after, show: (row) => row.after ?? html`<span class="dim">removed</span>` },
      ]}
    />`}
  `;
}

function Logs({ title, path, command, containers }) {
  const [container, setContainer] = useState(containers[0] ?? "");
  const [isPrevious, setIsPrevious] = useState(false);
  const asked = `${path}${container && `&container=${encodeURIComponent(container)}`}${isPrevious ? "&previous=true" : ""}`;
  const choice = html`
    ${containers.length > 0 &&
    html`<label>Container <select value=${container} onChange=${(event) => setContainer(event.target.value)}>${containers.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>`}
    <label><input type="checkbox" checked=${isPrevious} onChange=${(event) => setIsPrevious(event.target.checked)} /> Before its last restart</label>
  `;
  return html`
    <${Asked} title=${title} path=${asked} command=${command} aside=${choice}>
      ${({ lines, most, is_cut }) => html`
        <p class="dim">The last ${most} lines at most, as the container wrote them.${is_cut ? " The answer was cut at 1 MiB, so that the newest lines are missing." : ""}</p>
        ${lines.length ? html`<pre tabindex="0" aria-label=${title}>${lines.join("\n")}</pre>` : html`<p class="empty">The container has written nothing.</p>`}
      `}
    <//>
  `;
}
