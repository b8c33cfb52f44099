// Power of the node, where it can be read.

import { html } from "../vendor/htm-preact.js";
import { text, watts } from "../format.js";
import { Fact, Loaded, Panel, Table, TierName } from "../parts.js";

export function Power({ observation }) {
  return html`
    <${Panel} title="Power" path="observe" command="temper observe --output json">
      <${Loaded} from=${observation}>
        ${(seen) => {
          const power = seen.sections.power;
          if (!power) return html`<p class="empty">The plugin temper-plugin-power is not installed.</p>`;
          return html`<${Readings} power=${power} />`;
        }}
      <//>
    <//>
  `;
}

function Readings({ power }) {
  return html`
    <dl class="facts">
      <${Fact} name="Packages" value=${watts(power.package_watts)} note="all processor packages" />
      <${Fact} name="Memory" value=${watts(power.dram_watts)} />
      <${Fact} name="Sources" value=${power.backends.join(", ")} />
      <${Fact} name="Caps" value=${Object.keys(power.caps.watts).length} note=${power.caps.message} />
    </dl>
    ${Object.entries(power.not_here).map(([source, why]) => html`<p class="dim" key=${source}>${source} is not read: ${why}</p>`)}
    ${power.packages.length > 0 &&
    html`<h3>Packages</h3><${Table}
      caption="Packages"
      rows=${power.packages}
      keyOf=${(row) => row.name}
      columns=${[
        { name: "Package", value: (row) => row.name },
        { name: "Power", value: (row) => row.watts, show: (row) => watts(row.watts), isNumber: true },
        { name: "Memory", value: (row) => row.dram_watts, show: (row) => watts(row.dram_watts), isNumber: true },
        { name: "Limit", value: (row) => row.limit_watts, show: (row) => watts(row.limit_watts), isNumber: true },
        { name: "Maximum", value: (row) => row.max_watts, show: (row) => watts(row.max_watts), isNumber: true },
        { name: "Problem", value: (row) => row.problem, show: (row) => text(row.problem) },
      ]}
    />`}
    ${Object.keys(power.tier_watts).length > 0 &&
    html`<h3>By tier, as ${power.tier_watts_by}</h3><ul>${Object.entries(power.tier_watts).map(
      ([tier, value]) => html`<li key=${tier}><${TierName} tier=${tier} /> ${watts(value)}</li>`,
    )}</ul>`}
  `;
}
