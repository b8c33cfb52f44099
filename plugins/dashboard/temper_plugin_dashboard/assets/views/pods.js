// All pods of the node.

import { html } from "../vendor/htm-preact.js";
import { bytes, count, cpus, percent, podName, text } from "../format.js";
import { Bar, Loaded, Panel, PodLink, Table, TierName } from "../parts.js";

const ORDER = ["critical", "high", "normal", "low", "background"];

export function Pods({ observation }) {
  return html`
    <${Panel} title="Pods" path="observe" command="temper top">
      <${Loaded} from=${observation}>
        ${(seen) => html`
          <${Table}
            caption="Pods of this node"
            rows=${seen.pods}
            keyOf=${(row) => row.uid || `${row.namespace}/${row.pod}`}
            sort=${[4, true]}
            empty="The agent knows no pods here. The setting [pods] source says where they come from."
            columns=${[
              { name: "Pod", value: (row) => podName(row), show: (row) => html`<${PodLink} ...${row} />` },
              { name: "Tier", value: (row) => ORDER.indexOf(row.tier), show: (row) => html`<${TierName} tier=${row.tier} />` },
              { name: "Profile", value: (row) => row.profile, show: (row) => html`<span title=${row.profile_reason}>${text(row.profile)}</span>` },
              { name: "Threads", value: (row) => row.threads, show: (row) => count(row.threads), isNumber: true },
              { name: "CPU time", value: (row) => row.cpu_used, show: (row) => html`<${Bar} ratio=${row.cpu_used / seen.machine.cpus}>${cpus(row.cpu_used)}<//>`, isNumber: true, help: "In CPUs" },
              { name: "Waiting", value: (row) => row.run_delay, show: (row) => cpus(row.run_delay), isNumber: true, help: "Threads that waited for a CPU, on average" },
              { name: "Throttled", value: (row) => row.throttled_ratio, show: (row) => percent(row.throttled_ratio), isNumber: true, help: "Share of the quota's periods" },
              { name: "Limit", value: (row) => row.quota_cores, show: (row) => cpus(row.quota_cores), isNumber: true, help: "CFS quota in CPUs" },
              { name: "Memory", value: (row) => row.memory_bytes, show: (row) => bytes(row.memory_bytes), isNumber: true },
            ]}
          />
        `}
      <//>
    <//>
  `;
}
