// One node: its state, its history, and its pods. Its own page has the rest.

import { html, useState } from "../vendor/htm-preact.js";
import { count, cpus, duration, moment, percent, text } from "../format.js";
import { Chart, Fact, Loaded, Panel, useDocument } from "../parts.js";
import { FleetPodTable } from "../fleet-pod-table.js";
import { MODES, NodeState, nodePage } from "../fleet-parts.js";
import { FleetActions } from "../fleet-actions.js";

const HOURS = [1, 6, 24, 72, 168, 336];

export function FleetNode({ fleet, look, name }) {
  return html`
    <p><a href="#/">All nodes</a></p>
    <${Loaded} from=${fleet}>
      ${(document) => {
        const node = document.nodes.find((each) => each.node === name);
        if (!node) return html`<p class="problem" role="alert">The cluster has no node ${name}.</p>`;
        return html`
          <${NodeFacts} node=${node} />
          ${document.actions && html`<${Panel} title="Actions" command=${`kubectl annotate node ${name} temper.codes/safe-mode-requested=true`}><${FleetActions} nodes=${[name]} kinds=${["request", "withdraw", "reload", "capture"]} /><//>`}
          <${History} name=${name} isThere=${document.has_history} />
          <${NodePods} name=${name} look=${look} />
        `;
      }}
    <//>
  `;
}

function NodeFacts({ node }) {
  const { seen } = node;
  return html`
    <${Panel} title=${node.node} path="fleet/nodes" command="kubectl temper status">
      <p><${NodeState} ...${node} /></p>
      <p><a href=${nodePage(node.node)}>The page of this node</a></p>
      ${seen &&
      html`<dl class="facts">
        <${Fact} name="Mode" value=${MODES[seen.mode] ?? text(seen.mode)} note=${seen.detail} />
        <${Fact} name="Violations" value=${count(seen.violations)} level=${seen.violations ? "bad" : ""} note=${html`<a href=${`${nodePage(node.node)}#/lint`}>lint</a>`} />
        <${Fact} name="CPU time of pods" value=${`${cpus(seen.pods_cpu)} of ${count(seen.cpus)} CPUs`} note=${`background ${cpus(seen.background_cpu)}`} />
        <${Fact} name="CPU pressure" value=${percent(seen.cpu_pressure)} note="some, last 10 s" />
        <${Fact} name="Engine" value=${seen.engine || "none"} note=${seen.generation ? `plan ${seen.generation}` : "no plan in force"} />
        <${Fact} name="Agent" value=${text(node.version)} note=${`pod ${text(node.pod)}`} />
        <${Fact} name="Answered" value=${moment(node.answered_at)} note=${`UTC, in ${duration(node.took_s)}`} />
      </dl>`}
    <//>
  `;
}

function History({ name, isThere }) {
  const [hours, setHours] = useState(6);
  const path = isThere ? `fleet/history?node=${encodeURIComponent(name)}&hours=${hours}` : null;
  const history = useDocument(path, 0);
  const chosen =
    isThere &&
    html`<label>History
      <select value=${hours} onChange=${(event) => setHours(Number(event.target.value))}>
        ${HOURS.map((each) => html`<option value=${each}>${duration(each * 3600)}</option>`)}
      </select>
    </label>`;
  return html`
    <${Panel} title="History" path=${path} aside=${chosen}>
      ${isThere
        ? html`<${Loaded} from=${history}>${(points) => html`<${Charts} key=${hours} points=${points} />`}<//>`
        : html`<p class="empty">No Prometheus is set. The server takes one by <code>--prometheus</code>, the chart by <code>dashboard.prometheus</code>.</p>`}
    <//>
  `;
}

function Charts({ points }) {
  const has = (name) => points[name].some((value) => value !== null);
  if (!["wait", "background_cpus", "violations"].some(has)) {
    return html`<p class="empty">The Prometheus has nothing of this node. Its label <code>instance</code> has to be the node's name.</p>`;
  }
  return html`<div class="charts">
    <${Chart} title="Share of time in which a task waited for a CPU (PSI)" times=${points.at} write=${percent} series=${[["some", points.wait, "--bad"]]} />
    <${Chart} title="CPU time of background work, in CPUs. A part of it is reclaimed" times=${points.at} write=${cpus} series=${[["background", points.background_cpus, "--good"]]} />
    <${Chart} title="Broken promises" times=${points.at} write=${count} series=${[["violations", points.violations, "--main"]]} />
  </div>`;
}

function NodePods({ name, look }) {
  const path = `fleet/pods?node=${encodeURIComponent(name)}`;
  const pods = useDocument(path, look);
  return html`
    <${Panel} title="Pods" path=${path}>
      <${Loaded} from=${pods}>
        ${(document) => html`<${FleetPodTable} document=${document} hasNode=${false} empty="The agent knows no pods there." />`}
      <//>
    <//>
  `;
}
