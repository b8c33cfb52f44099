// Recommended requests and limits of containers.

import { html, useState } from "./vendor/htm-preact.js";
import { bytes, duration, millis, podName } from "./format.js";
import { Savings } from "./savings.js";
import { Loaded, Panel, PodLink, Table, useDocument } from "./parts.js";

const HOURS = [1, 6, 24, 72, 168, 336];

const changed = (now, then, write) => {
  const isSame = then === null || then === undefined || now === then;
  return isSame ? html`${write(now)} <span class="dim">keep</span>` : html`${write(now)} → <strong>${write(then)}</strong>`;
};

const resource = (name, key, write) => ({
  name,
  value: (row) => row.recommended[key] ?? row.current[key],
  show: (row) => changed(row.current[key], row.recommended[key], write),
  isNumber: true,
});

export function Advice({ isShown, hasSavings }) {
  const [hours, setHours] = useState(6);
  const path = `rightsize?hours=${hours}`;
  const report = useDocument(path, 0);
  const chosen = html`
    <label>History
      <select value=${hours} onChange=${(event) => setHours(Number(event.target.value))}>
        ${HOURS.map((each) => html`<option value=${each}>${duration(each * 3600)}</option>`)}
      </select>
    </label>`;
  return html`
    ${hasSavings && report.data && html`<${Savings} report=${report.data} path=${path} hours=${hours} />`}
    <${Panel} title="Recommended requests and limits" path=${path} command=${`temper rightsize --hours ${hours}`} aside=${chosen}>
      <${Loaded} from=${report} missing="The plugin temper-plugin-rightsizer is not installed.">
        ${(document) => html`
          <${Table}
            caption="Recommended requests and limits"
            rows=${document.containers.filter(isShown)}
            keyOf=${(row) => `${row.namespace}/${row.pod}/${row.container}`}
            empty="There is no measured time of a container yet."
            columns=${[
              { name: "Pod", value: (row) => podName(row), show: (row) => html`<${PodLink} ...${row} />` },
              { name: "Container", value: (row) => row.container },
              { name: "Threads", value: (row) => row.verdict, show: (row) => html`${row.verdict}${row.hot_threads.length > 0 && html`<br /><span class="dim">${row.hot_threads.join(", ")}</span>`}` },
              resource("CPU request", "cpu_request_millis", millis),
              resource("CPU limit", "cpu_limit_millis", millis),
              resource("Memory request", "memory_request_bytes", bytes),
              resource("Memory limit", "memory_limit_bytes", bytes),
              { name: "Confidence", value: (row) => row.confidence, show: (row) => html`${row.confidence} <span class="dim">${duration(row.learned_s)}</span>` },
              { name: "Why", value: (row) => row.reasons.join(" "), show: (row) => html`<details><summary>${row.reasons[0] ?? ""}</summary>${row.reasons.slice(1).map((reason) => html`<p>${reason}</p>`)}</details>`, isLong: true },
            ]}
          />
          ${document.notes.map((note) => html`<p class="dim" key=${note}>${note}</p>`)}
        `}
      <//>
    <//>
  `;
}
