// Plugins: their state, and what they cost.

import { html } from "../vendor/htm-preact.js";
import { bytes, count, duration, text } from "../format.js";
import { Loaded, Panel, Table, useDocument } from "../parts.js";

const own = (ratios, name) =>
  Object.entries(ratios)
    .filter(([line]) => line.startsWith(`instrument_${name}_`))
    .reduce((total, [, ratio]) => total + ratio, 0);

export function Plugins({ look, observation }) {
  const plugins = useDocument("plugins", look);
  return html`
    <${Panel} title="Plugins" path="plugins" command="temper plugins">
      <${Loaded} from=${plugins}>
        ${(document) => html`
          <${Table}
            caption="Plugins"
            rows=${document.plugins}
            keyOf=${(row) => row.name}
            columns=${[
              { name: "Plugin", value: (row) => row.name },
              { name: "State", value: (row) => row.state, show: (row) => html`<span class=${`state ${row.state}`}>${row.state.replaceAll("_", " ")}</span>` },
              { name: "Version", value: (row) => row.version },
              { name: "Distribution", value: (row) => row.distribution },
              { name: "Calls", value: (row) => row.calls, show: (row) => count(row.calls), isNumber: true },
              { name: "Time in calls", value: (row) => row.time_spent_s, show: (row) => duration(row.time_spent_s), isNumber: true },
              { name: "Failure", value: (row) => row.failure, show: (row) => (row.lost.length > 0 ? html`<span class="problem">set aside: ${row.lost.join("; ")}</span>` : text(row.failure)) },
            ]}
          />
        `}
      <//>
    <//>
    <${Panel} title="Cost of instruments" path="observe" command="temper top">
      <${Loaded} from=${observation}>
        ${(seen) => html`
          <${Table}
            caption="Cost of instruments"
            rows=${Object.entries(seen.overhead.instruments).map(([name, cost]) => ({ name, ...cost }))}
            keyOf=${(row) => row.name}
            empty="No instrument is open."
            columns=${[
              { name: "Instrument", value: (row) => row.name },
              { name: "CPU time in the agent", value: (row) => own(seen.overhead.cpu_ratio, row.name), show: (row) => `${(own(seen.overhead.cpu_ratio, row.name) * 100).toFixed(3)} %`, isNumber: true, help: "Share of one core" },
              { name: "Helpers", value: (row) => row.helpers, isNumber: true },
              { name: "Their CPU time", value: (row) => row.helper_cpu_s, show: (row) => duration(row.helper_cpu_s), isNumber: true, help: "Since the agent's start" },
              { name: "Their memory", value: (row) => row.helper_memory_bytes, show: (row) => bytes(row.helper_memory_bytes), isNumber: true },
              { name: "State", value: (row) => row.state_bytes, show: (row) => `${bytes(row.state_bytes)} of ${bytes(row.state_limit_bytes)}`, isNumber: true },
            ]}
          />
        `}
      <//>
    <//>
  `;
}
