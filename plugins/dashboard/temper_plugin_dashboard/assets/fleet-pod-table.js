// Pods of one node or of all, from fleet/pods.

import { html } from "./vendor/htm-preact.js";
import { bytes, count, cpus, percent, podName, text } from "./format.js";
import { Table, TierName } from "./parts.js";
import { FleetPodLink, NodeLink } from "./fleet-parts.js";

const TIERS = ["critical", "high", "normal", "low", "background"];

export function FleetPodTable({ document, hasNode, empty }) {
  const node = { name: "Node", value: (row) => row.node, show: (row) => html`<${NodeLink} node=${row.node} />` };
  return html`
    <${Table}
      caption="Pods, busiest first"
      rows=${document.pods}
      keyOf=${(row) => `${row.node}/${row.namespace}/${row.pod}`}
      hasFilter=${false}
      sort=${[hasNode ? 4 : 3, true]}
      empty=${empty}
      columns=${[
        { name: "Pod", value: (row) => podName(row), show: (row) => html`<${FleetPodLink} ...${row} />${row.is_old && html` <span class="dim">last known</span>`}` },
        ...(hasNode ? [node] : []),
        { name: "Tier", value: (row) => TIERS.indexOf(row.tier), show: (row) => html`<${TierName} tier=${row.tier} />` },
        { name: "Profile", value: (row) => row.profile, show: (row) => text(row.profile) },
        { name: "CPU time", value: (row) => row.cpu_used, show: (row) => cpus(row.cpu_used), isNumber: true, help: "In CPUs" },
        { name: "Waiting", value: (row) => row.run_delay, show: (row) => cpus(row.run_delay), isNumber: true, help: "Threads that waited for a CPU, on average" },
        { name: "Throttled", value: (row) => row.throttled_ratio, show: (row) => percent(row.throttled_ratio), isNumber: true, help: "Share of the quota's periods" },
        { name: "Memory", value: (row) => row.memory_bytes, show: (row) => bytes(row.memory_bytes), isNumber: true },
        { name: "Threads", value: (row) => row.threads, show: (row) => count(row.threads), isNumber: true },
      ]}
    />
    ${document.total > document.pods.length && html`<p class="dim">The ${document.pods.length} busiest of ${document.total} pods. A search finds the others.</p>`}
  `;
}
