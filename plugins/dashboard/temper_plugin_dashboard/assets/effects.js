// The measured effect of each profile in force.

import { html } from "./vendor/htm-preact.js";
import { figure, gain, text } from "./format.js";
import { Loaded, Panel, Table, useDocument } from "./parts.js";

const LEVELS = { __proto__: null, better: "ok", worse: "failed", "not measured": "unknown" };

// A row for each figure, and one for a profile without any.
const rowsOf = ({ profiles }) =>
  profiles.flatMap((profile) => {
    const { evidence } = profile;
    const figures = evidence.figures.length ? evidence.figures : [null];
    return figures.map((measured, index) => ({ profile, evidence, measured, key: `${profile.id}/${profile.source}/${index}` }));
  });

// How much better the value with the profile is, as a ratio. The two values have different roles if lower is better.
function betterBy({ tiers_only, profile, better }) {
  const [before, after] = better === "higher" ? [profile, tiers_only] : [tiers_only, profile];
  return after > 0 ? before / after - 1 : null;
}

const effectOf = ({ evidence, measured }) => measured?.effect ?? evidence.effect ?? "not measured";
const valueOf = (name) => ({ measured }) => measured?.[name];
const written = (name) => ({ measured }) => (measured ? `${figure(measured[name])} ${measured.unit}` : "–");

export function Effects({ look }) {
  const profiles = useDocument("dashboard/profiles", look);
  return html`
    <${Panel} title="Measured effect of profiles in force" path="dashboard/profiles" command="temper profiles show ID">
      <${Loaded} from=${profiles}>
        ${(document) => html`
          <${Table}
            caption="The effect of each profile, compared with the tier alone"
            rows=${rowsOf(document)}
            keyOf=${(row) => row.key}
            empty="No profile is in force here."
            columns=${[
              { name: "Profile", value: ({ profile }) => profile.id, show: ({ profile }) => html`${profile.id}<br /><span class="dim">${profile.source}</span>` },
              { name: "Pods", value: ({ profile }) => profile.pods.length, show: ({ profile }) => html`<details><summary>${profile.pods.length}</summary>${profile.pods.join(", ")}</details>`, isNumber: true },
              { name: "Effect", value: effectOf, show: (row) => html`<${EffectOf} row=${row} />` },
              { name: "Measure", value: ({ measured }) => measured?.measure, show: ({ measured }) => (measured ? html`${measured.measure}${measured.load && html`<br /><span class="dim">${measured.load}</span>`}` : "–") },
              { name: "Better by", value: ({ measured }) => measured && betterBy(measured), show: ({ measured }) => (measured ? gain(betterBy(measured)) : "–"), isNumber: true, help: "The ratio of both values. Negative is worse" },
              { name: "Tier alone", value: valueOf("tiers_only"), show: written("tiers_only"), isNumber: true },
              { name: "With the profile", value: valueOf("profile"), show: written("profile"), isNumber: true },
              { name: "Spread", value: valueOf("spread"), show: written("spread"), isNumber: true, help: "Largest difference between runs of one arm. A smaller difference between the arms means nothing" },
              { name: "Measured on", value: ({ evidence }) => evidence.date, show: ({ evidence }) => html`<${Place} evidence=${evidence} />`, isLong: true },
            ]}
          />
        `}
      <//>
    <//>
  `;
}

function EffectOf({ row }) {
  const effect = effectOf(row);
  const { expired } = row.profile;
  return html`<span class=${`state ${LEVELS[effect] ?? ""}`}>${effect}</span>${expired && html`<br /><span class="problem">expired on ${expired}</span>`}`;
}

function Place({ evidence }) {
  const words = [evidence.date, evidence.machine, evidence.kernel, evidence.engine].filter(Boolean).join(", ");
  const how = evidence.command || evidence.source;
  return html`${text(words)}${how && html`<br /><code>${how}</code>`}`;
}
