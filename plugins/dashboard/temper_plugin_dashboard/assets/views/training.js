// Trainings: those that run now, and the results of others: what was tried, what was kept, and what others paid for it.

import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { count, cpus, figure, gain, moment, text } from "../format.js";
import { Fact, Loaded, Panel, Table, useDocument } from "../parts.js";
import { RunningTraining } from "../training-runs.js";

export function Training({ look, actions }) {
  const [asked, setAsked] = useState(0);
  const training = useDocument("training", `${look}/${asked}`);
  const again = () => setAsked((number) => number + 1);
  // An agent of an earlier version tells none.
  const running = training.data?.running ?? [];
  const isRunning = running.length > 0;
  useEffect(() => {
    const timer = isRunning ? setInterval(again, 2000) : 0;
    return () => clearInterval(timer);
  }, [isRunning]);
  return html`
    <${Loaded} from=${training} missing="The plugin temper-plugin-trainer is not installed.">
      ${(document) => html`
        ${running.map((run) => html`<${RunningTraining} key=${run.id} run=${run} actions=${actions} onChange=${again} />`)}
        ${document.results.length
          ? document.results.map((result) => html`<${Result} key=${`${result.at}/${result.workload}`} result=${result} />`)
          : html`<${Panel} title="Results of trainings" path="training" command="temper train results"><p class="empty">The agent keeps no result of a training.</p><//>`}
      `}
    <//>
  `;
}

function Result({ result }) {
  const unit = result.unit ? ` ${result.unit}` : "";
  const kept = result.trials.filter((trial) => trial.verdict === "kept").length;
  const title = `Training of ${result.workload}, ${moment(result.at)}`;
  const comparisons = [
    ...result.trials.map((trial, index) => ({ ...trial, name: String(index + 1) })),
    ...named("confirmation", result.confirmation),
    ...named("stock scheduler", result.against_stock),
  ];
  return html`
    <${Panel} title=${title} path="training" command="temper train results">
      <p class=${result.is_better ? "state ok" : ""}><strong>${result.verdict}</strong></p>
      ${result.stopped && html`<p class="problem">It ended early: ${result.stopped}</p>`}
      <dl class="facts">
        <${Fact} name="Profile" value=${result.profile} note=${result.pods.join(", ")} />
        <${Fact} name="Metric" value=${`${result.metric}${unit}`} note=${`${result.better} is better`} />
        <${Fact} name="Tier alone" value=${`${figure(result.baseline)}${unit}`} note=${`noise of a run ${result.noise === null ? "–" : `${(result.noise * 100).toFixed(1)} %`}`} />
        <${Fact} name="Kept" value=${`${kept} of ${result.trials.length} trials`} note=${`${count(result.measurements)} measurements, ${count(result.engines_used)} engines started`} />
        <${Fact} name="Measured on" value=${text(result.date)} note=${[result.mode, result.engine, result.machine, result.kernel].filter(Boolean).join(", ")} />
      </dl>
      <${Comparisons} rows=${comparisons} unit=${unit} title=${title} />
      <details><summary>Benchmark, and what could not be told</summary><p><code>${result.command}</code></p><ul>${result.unknown.map((line) => html`<li key=${line}>${line}</li>`)}</ul></details>
    <//>
  `;
}

const named = (name, comparison) => (comparison ? [{ ...comparison, name }] : []);

const value = (arm, unit) => html`${figure(arm.median)}${unit}<br /><span class="dim">spread ${figure(arm.spread)}</span>`;

const bounds = ({ low, high }) => `${low === null ? "unbounded" : gain(low)} to ${high === null ? "unbounded" : gain(high)}`;

function Comparisons({ rows, unit, title }) {
  return html`
    <${Table}
      caption=${`What was compared: ${title}`}
      rows=${rows}
      keyOf=${(row) => row.name}
      empty="Nothing was compared."
      columns=${[
        { name: "Trial", value: (row) => row.name },
        { name: "Change", value: (row) => row.candidate.change, show: (row) => html`${row.candidate.change}<br /><span class="dim">against ${row.against.change}</span>` },
        { name: "Verdict", value: (row) => row.verdict, show: (row) => html`<span class=${row.verdict === "kept" ? "state ok" : ""}>${row.verdict}</span>${row.why && html`<br /><span class="dim">${row.why}</span>`}`, isLong: rows.some((row) => row.why) },
        { name: "Gain", value: (row) => row.gain, show: (row) => html`${gain(row.gain)}<br /><span class="dim">${bounds(row)}</span>`, isNumber: true, help: "Median over blocks, with its 95 % interval. Positive is better" },
        { name: "With the change", value: (row) => row.candidate.median, show: (row) => value(row.candidate, unit), isNumber: true, help: "Median and spread of the measurements" },
        { name: "Without", value: (row) => row.against.median, show: (row) => value(row.against, unit), isNumber: true, help: "Median and spread of the measurements" },
        { name: "Others wait with it", value: (row) => row.candidate.others_wait, show: (row) => cpus(row.candidate.others_wait), isNumber: true, help: "CPUs that other pods waited for meanwhile: the price that neighbours pay" },
        { name: "And without", value: (row) => row.against.others_wait, show: (row) => cpus(row.against.others_wait), isNumber: true, help: "CPUs that other pods waited for meanwhile" },
        { name: "Blocks", value: (row) => row.blocks, show: (row) => html`${row.blocks}<br /><span class="dim">evidence ${figure(row.evidence)}</span>`, isNumber: true, help: "Pairs of measurements, and the evidence of the sequential test" },
      ]}
    />
  `;
}
