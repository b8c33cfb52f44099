// The trainings that run now: how far each is, and its abort.

import { html, useState } from "./vendor/htm-preact.js";
import { act, isSignedIn } from "./agent.js";
import { count, duration, gain, moment } from "./format.js";
import { Confirm, Fact, Panel, Table } from "./parts.js";

export function RunningTraining({ run, actions, onChange }) {
  const [isAsking, setIsAsking] = useState(false);
  const [problem, setProblem] = useState("");
  const title = `Training of ${run.workload} now`;
  const confirmed = async () => {
    setIsAsking(false);
    try {
      await act("DELETE", `training/runs/${encodeURIComponent(run.id)}`);
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
    onChange();
  };
  const abort = actions && html`<button type="button" class="danger" disabled=${!isSignedIn() || run.abort !== ""} onClick=${() => setIsAsking(true)}>Abort the training</button>`;
  return html`
    <${Panel} title=${title} path="training" command="temper train results" aside=${abort}>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${run.abort && html`<p class="problem">It ends: ${run.abort}</p>`}
      <${Progress} run=${run} />
      <dl class="facts">
        <${Fact} name="Now" value=${run.phase || "begins"} note=${run.blocks ? `block ${run.block} of at most ${run.blocks}` : ""} />
        <${Fact} name="Arm" value=${run.arm || "–"} note=${run.waiting ? `waits: ${run.waiting}` : ""} />
        <${Fact} name="Time left" value=${run.left_s === null ? "–" : `at most ${duration(run.left_s)}`} note="at the pace so far. It ends earlier if trials are decided earlier" />
        <${Fact} name="Measured" value=${count(run.measured)} note=${`${run.metric}, ${count(run.engines_used)} engines started`} />
        <${Fact} name="Profile" value=${run.profile} note=${run.pods.join(", ")} />
        <${Fact} name="Began" value=${moment(run.begun_at)} note="UTC" />
      </dl>
      <${Ended} trials=${run.ended} title=${title} />
    <//>
    ${isAsking &&
    html`<${Confirm}
      question=${`Abort the training of ${run.workload}?`}
      detail="Its trial and its benchmark end within seconds, and the pods get their former treatment. The same command continues it."
      label="Abort"
      onYes=${confirmed}
      onNo=${() => setIsAsking(false)}
    />`}
  `;
}

function Progress({ run }) {
  const part = run.blocks ? (run.block - 1) / run.blocks : 0;
  const done = run.trial ? Math.min(run.trial - 1 + part, run.trials) : 0;
  return html`<p><progress max=${run.trials} value=${done} aria-label="Trials"></progress> ${run.ended.length} of at most ${run.trials} trials have ended</p>`;
}

function Ended({ trials, title }) {
  if (!trials.length) return null;
  return html`
    <${Table}
      caption=${`Trials that have ended: ${title}`}
      rows=${trials.map((trial, index) => ({ ...trial, number: index + 1 }))}
      keyOf=${(row) => row.number}
      hasFilter=${false}
      columns=${[
        { name: "Trial", value: (row) => row.number, isNumber: true },
        { name: "Change", value: (row) => row.change },
        { name: "Verdict", value: (row) => row.verdict, show: (row) => html`<span class=${row.verdict === "kept" ? "state ok" : ""}>${row.verdict}</span>` },
        { name: "Gain", value: (row) => row.gain, show: (row) => gain(row.gain), isNumber: true, help: "Median over blocks. Positive is better" },
        { name: "Blocks", value: (row) => row.blocks, isNumber: true },
      ]}
    />
  `;
}
