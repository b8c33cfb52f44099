// All nodes of the cluster.

import { html, useState } from "../vendor/htm-preact.js";
import { count, cpus, duration, moment, percent, text } from "../format.js";
import { Bar, Loaded, Panel, Table } from "../parts.js";
import { MODES, NodeLink, NodeState, ORDER } from "../fleet-parts.js";
import { FleetActions } from "../fleet-actions.js";

const seen = (key) => (row) => row.seen?.[key];

const Choice = ({ node, isChosen, onChange }) =>
  html`<input type="checkbox" aria-label=${`Choose ${node}`} checked=${isChosen} onChange=${(event) => onChange(node, event.target.checked)} />`;

export function FleetNodes({ fleet }) {
  const [chosen, setChosen] = useState(() => new Set());
  const choose = (node, isChosen) => {
    const next = new Set(chosen);
    if (isChosen) next.add(node);
    else next.delete(node);
    setChosen(next);
  };
  const choice = { name: "Chosen", value: (row) => (chosen.has(row.node) ? 1 : 0), show: (row) => html`<${Choice} node=${row.node} isChosen=${chosen.has(row.node)} onChange=${choose} />` };
  return html`
    <${Panel} title="Nodes" path="fleet/nodes" command="kubectl temper status">
      <${Loaded} from=${fleet}>
        ${(document) => html`
          ${document.actions && html`<${FleetActions} nodes=${document.nodes.map((row) => row.node).filter((node) => chosen.has(node))} kinds=${["request", "withdraw", "reload"]} />`}
          ${document.notes.map((note) => html`<p class="dim" key=${note}>${note}</p>`)}
          <${Table}
            caption="Nodes of the cluster"
            rows=${document.nodes}
            keyOf=${(row) => row.node}
            sort=${[1, false]}
            most=${1000}
            empty=${document.problem ? "No node is known." : "The cluster has no node with an agent."}
            columns=${[
              { name: "Node", value: (row) => row.node, show: (row) => html`<${NodeLink} node=${row.node} />` },
              { name: "Agent", value: (row) => `${ORDER.indexOf(row.state)} ${row.state}`, show: (row) => html`<${NodeState} ...${row} />`, isLong: true },
              { name: "Mode", value: seen("mode"), show: (row) => html`${MODES[row.seen?.mode] ?? text(row.seen?.mode)}${row.seen?.detail && html`<br /><span class="dim">${row.seen.detail}</span>`}` },
              { name: "Violations", value: seen("violations"), show: (row) => html`<span class=${row.seen?.violations ? "bad" : ""}>${count(row.seen?.violations)}</span>`, isNumber: true },
              { name: "Pods", value: seen("pods"), show: (row) => count(row.seen?.pods), isNumber: true },
              { name: "CPU time of pods", value: seen("pods_cpu"), show: (row) => html`<${Bar} ratio=${row.seen ? row.seen.pods_cpu / row.seen.cpus : 0}>${cpus(row.seen?.pods_cpu)} of ${count(row.seen?.cpus)}<//>`, isNumber: true, help: "In CPUs" },
              { name: "Background", value: seen("background_cpu"), show: (row) => cpus(row.seen?.background_cpu), isNumber: true, help: "CPU time of pods of the tier background, in CPUs" },
              { name: "CPU pressure", value: seen("cpu_pressure"), show: (row) => percent(row.seen?.cpu_pressure), isNumber: true, help: "Share of the last 10 s in which a task waited for a CPU" },
              { name: "Version", value: (row) => row.version, show: (row) => text(row.version) },
              { name: "Answered (UTC)", value: (row) => row.answered_at, show: (row) => html`${moment(row.answered_at)} <span class="dim">${row.took_s === null ? "" : `in ${duration(row.took_s)}`}</span>` },
              ...(document.actions ? [choice] : []),
            ]}
          />
        `}
      <//>
    <//>
  `;
}
