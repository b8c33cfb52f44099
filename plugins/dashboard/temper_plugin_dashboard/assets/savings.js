// What could be saved on this node, and what was: two numbers that are never added up.

import { html } from "./vendor/htm-preact.js";
import { bytes, cpus, duration } from "./format.js";
import { Fact, Panel } from "./parts.js";

const HOURS_OF_MONTH = 730;
const GIB = 1024 ** 3;

// What the containers with a request and with advice request now, less the advice.
function surplus(containers, key) {
  const known = containers.filter((row) => row.current[key] && row.recommended[key] !== null && row.recommended[key] !== undefined);
  return known.reduce((total, row) => total + row.current[key] - row.recommended[key], 0);
}

// The sum of a figure that only agents measure. Null if no container has it.
function measured(containers, key) {
  const known = containers.filter((row) => typeof row.used?.[key] === "number");
  return known.length ? known.reduce((total, row) => total + row.used[key], 0) / 3600 : null;
}

const coreHours = (value) => (value === null ? "–" : `${value.toFixed(2)} core-hours`);

export function Savings({ report, path, hours }) {
  const { containers, price_settings: prices } = report;
  const cores = surplus(containers, "cpu_request_millis") / 1000;
  const memory = surplus(containers, "memory_request_bytes");
  const amount = (cores * (prices?.core_hour ?? 0) + (memory / GIB) * (prices?.gib_hour ?? 0)) * HOURS_OF_MONTH;
  const command = `temper rightsize --hours ${hours}`;
  return html`
    <${Panel} title="Identified savings: an estimate" path=${path} command=${command}>
      <dl class="facts">
        <${Fact} name="CPU requests above the advice" value=${`${cpus(cores)} cores`} note="negative if more is advised" />
        <${Fact} name="Memory requests above the advice" value=${bytes(memory)} />
        <${Fact} name="A month of 730 h" value=${amount.toFixed(2)} note=${`${prices?.core_hour} a core-hour, ${prices?.gib_hour} a GiB-hour, by [plugins.rightsizer.prices]`} />
      </dl>
      <p class="dim">A smaller request costs less only once there are fewer or smaller nodes. Only containers with a request and with advice count.</p>
    <//>
    <${Panel} title="Realized savings: as measured" path=${path} command=${command}>
      <dl class="facts">
        <${Fact} name="Reclaimed" value=${coreHours(measured(containers, "reclaimed_core_s"))} note=${`background work on CPUs that others requested, in the last ${duration(report.window_s)}`} />
        <${Fact} name="Freed" value=${coreHours(measured(containers, "freed_core_s"))} note="requests that the overcommit webhook lowered" />
      </dl>
      <p class="dim">The two may overlap and are never added up, and neither is part of the estimate.</p>
    <//>
  `;
}
