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
  const unjudged = (document.unjudged ?? []).filter(({ invariant }) => !broken.has(invariant));
  const left = new Set(unjudged.map(({ invariant }) => invariant));
  const kept = document.invariants.filter((name) => !broken.has(name) && !left.has(name));
  const item = (name) => html`<li key=${name}><code>${name}</code> <span class="dim">${why.get(name)}</span></li>`;
  return html`
    <${Panel} title=${`Kept: ${kept.length} of ${document.invariants.length} invariants`} path="violations" command="temper lint --explain NAME">
      <ul>${kept.map(item)}</ul>
      <p class="dim">Windows with a change of mode, plan or engine, with a pause of the machine, or with new threads judge less.</p>
    <//>
    <${Panel} title=${`Not judged: ${unjudged.length}`} path="violations" command="temper lint --explain NAME">
      ${unjudged.length === 0 && html`<p class="empty">Each invariant can be judged in this mode.</p>`}
      ${[...new Set(unjudged.map((each) => each.why))].map(
        (reason) => html`<p key=${reason}>Because ${reason}:</p>
          <ul>${unjudged.filter((each) => each.why === reason).map((each) => item(each.invariant))}</ul>`,
      )}
    <//>
  `;
}
