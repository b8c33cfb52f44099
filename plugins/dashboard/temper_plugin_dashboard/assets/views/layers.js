// Layers: what the plan wants beside what the engine does.

import { html, useState } from "../vendor/htm-preact.js";
import { readText } from "../agent.js";
import { count, cpuList, cpus, percent } from "../format.js";
import { Bar, Loaded, Panel, Table, TierName, useDocument } from "../parts.js";

export function Layers({ look, observation }) {
  const hasPlan = observation.data?.generation > 0;
  const plan = useDocument(hasPlan ? "plan" : null, look);
  return html`
    <${Panel} title="Layers: planned and real" path=${hasPlan ? "plan" : "observe"} command=${planCommand(plan)}>
      ${hasPlan
        ? html`<${Loaded} from=${plan}>${(document) => html`<${Planned} plan=${document.plan ?? document} seen=${observation.data} />`}<//>`
        : html`<${NoPlan} observation=${observation} />`}
    <//>
    ${plan.data && html`<${Notes} plan=${plan.data.plan ?? plan.data} command=${planCommand(plan)} />`}
    ${hasPlan && html`<${Configuration} look=${look} command=${planCommand(plan)} />`}
  `;
}

// A steered plan has other layers than one without hints.
const planCommand = (plan) => ((plan.data?.plan ?? plan.data)?.steered ? "temper plan --steered" : "temper plan");

function NoPlan({ observation }) {
  const { mode, reason, detail } = observation.data ?? {};
  const why = [mode, reason, detail].filter(Boolean).join(", ");
  return html`<p class="empty">No plan is in force${why && ` (${why})`}. <code>temper plan</code> shows what would be planned for the pods of this node.</p>`;
}

function Planned({ plan, seen }) {
  const real = new Map((seen?.layers ?? []).map((layer) => [layer.name, layer]));
  const rows = plan.layers.map((layer, order) => ({ ...layer, order, real: real.get(layer.name) }));
  return html`
    <${Table}
      caption="Layers in the order in which they match"
      rows=${rows}
      keyOf=${(row) => row.name}
      empty="The plan has no layers."
      columns=${[
        { name: "#", value: (row) => row.order, isNumber: true },
        { name: "Layer", value: (row) => row.name },
        { name: "Tier", value: (row) => row.tier, show: (row) => html`<${TierName} tier=${row.tier} />` },
        { name: "Kind", value: (row) => row.kind },
        { name: "CPUs planned", value: (row) => row.cpus_max ?? 0, show: (row) => (row.cpus_max === null ? "–" : `${row.cpus_min} to ${row.cpus_max}`), isNumber: true },
        { name: "CPUs owned", value: (row) => row.real?.cpus.length ?? -1, show: (row) => (row.real ? cpuList(row.real.cpus) : "–") },
        { name: "CPU time", value: (row) => row.real?.cpus_used ?? -1, show: (row) => cpus(row.real?.cpus_used), isNumber: true, help: "In CPUs" },
        { name: "Use", value: (row) => row.real?.util ?? -1, show: (row) => html`<${Bar} ratio=${row.real?.util}>${percent(row.real?.util)}<//>`, isNumber: true, help: "CPU time divided by the CPUs owned" },
        { name: "Outside", value: (row) => row.real?.outside_ratio ?? -1, show: (row) => percent(row.real?.outside_ratio), isNumber: true, help: "Share of the CPU time on CPUs that the layer did not own" },
        { name: "Threads", value: (row) => row.real?.tasks ?? -1, show: (row) => count(row.real?.tasks), isNumber: true },
        { name: "Pods", value: (row) => row.pods.length, isNumber: true },
        { name: "Why", value: (row) => row.reason, isLong: true },
      ]}
    />
  `;
}

function Notes({ plan, command }) {
  return html`
    <${Panel} title="Where the plan differs from what pods request" path="plan" command=${command}>
      <${Table}
        caption="Notes of the plan"
        rows=${plan.notes}
        keyOf=${(row) => `${row.code}/${row.subject}/${row.message}`}
        empty="It differs nowhere."
        columns=${[
          { name: "Note", value: (row) => row.code },
          { name: "Subject", value: (row) => row.subject },
          { name: "Meaning", value: (row) => row.message, isLong: true },
        ]}
      />
    <//>
  `;
}

function Configuration({ look, command }) {
  const [isOpen, setIsOpen] = useState(false);
  const config = useDocument(isOpen ? "config" : null, look, readText);
  return html`
    <${Panel} title="The engine's configuration" path="config" command=${`${command} --output engine`}>
      <details onToggle=${(event) => setIsOpen(event.target.open)}>
        <summary>The bytes that the engine received</summary>
        ${isOpen && html`<${Loaded} from=${config}>${(text) => html`<pre tabindex="0">${text}</pre>`}<//>`}
      </details>
    <//>
  `;
}
