// A table of threads.

import { html } from "./vendor/htm-preact.js";
import { count, cpus, duration, percent, podName, text } from "./format.js";
import { Bar, PodLink, Table } from "./parts.js";

const belongs = (row) => (row.pod ? podName(row) : row.process);

export function ThreadTable({ threads, hasPod, hasPlan }) {
  const whose = {
    name: "Pod or process",
    value: belongs,
    show: (row) => (row.pod ? html`<${PodLink} ...${row} />` : row.process),
  };
  const layer = { name: "Layer", value: (row) => row.layer, show: (row) => html`<${Placement} thread=${row} />` };
  return html`
    <${Table}
      caption="Threads, busiest first"
      rows=${threads}
      keyOf=${(row) => row.tid ?? `rest/${belongs(row)}/${row.container}`}
      sort=${[hasPod ? 4 : 3, true]}
      empty="No thread ran in the window."
      columns=${[
        { name: "Thread", value: (row) => row.comm, show: (row) => (row.tid === null ? html`<em>${row.threads} others</em>` : row.comm) },
        { name: "Id", value: (row) => row.tid, isNumber: true },
        ...(hasPod ? [whose] : []),
        { name: "Container", value: (row) => row.container, show: (row) => text(row.container) },
        { name: "CPU time", value: (row) => row.cpu_used, show: (row) => html`<${Bar} ratio=${row.cpu_used}>${cpus(row.cpu_used)}<//>`, isNumber: true, help: "In CPUs" },
        { name: "Waited", value: (row) => row.run_delay_ratio, show: (row) => percent(row.run_delay_ratio), isNumber: true, help: "Share of the window in which it was runnable and waited for a CPU" },
        { name: "Longest wait", value: (row) => row.waiting_s, show: (row) => (row.waiting_s ? duration(row.waiting_s) : "–"), isNumber: true, help: "How long it had been waiting when it was sampled" },
        ...(hasPlan ? [layer] : []),
        { name: "CPU", value: (row) => row.cpu, show: (row) => text(row.cpu), isNumber: true },
        { name: "Switches", value: (row) => row.runs, show: (row) => count(row.runs), isNumber: true, help: "How often it was given a CPU in the window" },
        { name: "Policy", value: (row) => `${row.policy} ${row.nice ?? ""}`, show: (row) => (row.nice ? `${row.policy}, nice ${row.nice}` : row.policy) },
      ]}
    />
  `;
}

function Placement({ thread }) {
  const { layer, expected_layer: expected } = thread;
  if (!layer) return html`<span class="dim">${expected ? `planned: ${expected}` : "–"}</span>`;
  if (expected && layer !== expected) return html`<span class="bad">${layer}, planned: ${expected}</span>`;
  return layer;
}
