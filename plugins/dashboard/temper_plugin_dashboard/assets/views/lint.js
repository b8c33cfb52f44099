// Promises that are broken, and those that are kept.

import { html } from "../vendor/htm-preact.js";
import { duration, moment, text } from "../format.js";
import { Loaded, Panel, Table, useDocument } from "../parts.js";

const evidence = (values) =>
  Object.entries(values)
    .map(([name, value]) => `${name}: ${typeof value === "number" ? Number(value.toPrecision(4)) : text(value)}`)
    .join(", ");

export function Lint({ look }) {
  const lint = useDocument("violations", look);
  const invariants = useDocument("invariants", 0);
  return html`
    <${Loaded} from=${lint} missing="The plugin temper-plugin-linter is not installed.">
      ${(document) => html`
        <${Panel} title="Broken promises" path="violations" command="temper lint">
          <${Table}
            caption="Violations, oldest first"
            rows=${document.violations}
            keyOf=${(row) => row.id}
            empty=${document.at ? "None. All that could be judged in this window is kept." : "Nothing has been judged yet."}
            columns=${[
              { name: "Severity", value: (row) => row.severity, show: (row) => html`<span class=${`state ${row.severity}`}>${row.severity}</span>` },
              { name: "Invariant", value: (row) => row.invariant },
              { name: "Subject", value: (row) => row.subject },
              { name: "What", value: (row) => row.message, show: (row) => html`${row.message}<br /><span class="dim">${evidence(row.evidence)}</span>`, isLong: true },
              { name: "Since", value: (row) => row.since, show: (row) => html`${duration(row.age_s)} <span class="dim">${moment(row.since)}</span>` },
              { name: "What to do", value: (row) => row.fix, isLong: true },
              { name: "Plugin", value: (row) => row.plugin },
            ]}
          />
        <//>
        <${Kept} document=${document} about=${invariants.data?.invariants ?? []} />
      `}
    <//>
  `;
}

function Kept({ document, about }) {
  const why = new Map(about.map((each) => [each.name, each.why]));
  const broken = new Set(document.violations.map((violation) => violation.invariant));
  const kept = document.invariants.filter((name) => !broken.has(name));
  return html`
    <${Panel} title="Invariants without a violation" path="invariants" command="temper lint --explain NAME">
      <ul>${kept.map((name) => html`<li key=${name}><code>${name}</code> <span class="dim">${why.get(name)}</span></li>`)}</ul>
      <p class="dim">A window without an engine, without a plan or with new threads judges less. <code>temper lint</code> names what could not be judged.</p>
    <//>
  `;
}
