// The node: mode, CPUs, pressure, charts, and what is wrong.

import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { read } from "../agent.js";
import { bytes, count, cpuList, cpus, duration, moment, percent, podName } from "../format.js";
import { Chart, Fact, Loaded, Panel, Table, useDocument } from "../parts.js";

const sum = (values) => values.reduce((total, value) => total + value, 0);

const MOST_POINTS = 720;
const SEVERITY = ["failed", "unknown", "warning", "ok"];

// The figures of the last windows. Each new snapshot adds those that are missing.
function useHistory(look) {
  const [state, setState] = useState({ data: undefined, error: null });
  const isReading = useRef(false);
  useEffect(() => {
    if (isReading.current) return;
    isReading.current = true;
    const times = state.data?.at ?? [];
    const since = times[times.length - 1] ?? 0;
    read(`dashboard/history?since=${since}`).then(
      (newer) =>
        setState(({ data }) => {
          const isNext = data?.at[data.at.length - 1] === (since || undefined);
          if (data && !isNext) return { data, error: null };
          const joined = Object.entries(newer).map(([name, column]) => [name, [...(data?.[name] ?? []), ...column].slice(-MOST_POINTS)]);
          return { data: Object.fromEntries(joined), error: null };
        }),
      (error) => setState(({ data }) => ({ data, error })),
    ).finally(() => {
      isReading.current = false;
    });
  }, [look]);
  return state;
}

export function Node({ look, observation }) {
  const history = useHistory(look);
  const checks = useDocument("checks", 0);
  return html`
    <${Loaded} from=${observation}>
      ${(seen) => html`
        <${Facts} seen=${seen} />
        ${seen.defects.length > 0 &&
        html`<${Panel} title="What does not work" path="observe" command="temper doctor">
          <ul>${seen.defects.map((defect) => html`<li key=${defect}>${defect}</li>`)}</ul>
        <//>`}
        ${seen.last_end &&
        html`<${Panel} title="How the last engine ended" path="observe" command="temper observe">
          <p>${seen.last_end.summary}</p><p>${seen.last_end.remedy}</p>
        <//>`}
        <${CpuMap} seen=${seen} />
      `}
    <//>
    <${Panel} title="The last 720 windows" path="dashboard/history">
      <${Loaded} from=${history}>
        ${(points) =>
          points.at.length < 2
            ? html`<p class="empty">The charts begin after two windows.</p>`
            : html`<div class="charts">
                <${Chart} title="CPU time, in CPUs" times=${points.at} write=${cpus} series=${[["all threads listed", points.cpu_used, "--main"], ["pods", points.pods_cpu_used, "--good"]]} />
                <${Chart} title="Share of time in which a task waited for a CPU (PSI)" times=${points.at} write=${percent} series=${[["some", points.cpu_pressure, "--bad"]]} />
                <${Chart} title="CPU time of the agent, as a share of one core" times=${points.at} write=${percent} series=${[["agent", points.overhead, "--main"]]} />
              </div>`}
      <//>
    <//>
    <${Panel} title="Checks of plugins" path="checks" command="temper doctor">
      <${Loaded} from=${checks}>
        ${(document) =>
          html`<${Table}
            caption="Checks of plugins"
            empty="No plugin has a check."
            rows=${document.checks}
            keyOf=${(row) => `${row.plugin}/${row.name}`}
            columns=${[
              { name: "State", value: (row) => SEVERITY.indexOf(row.state), show: (row) => html`<span class=${`state ${row.state}`}>${row.state}</span>` },
              { name: "Check", value: (row) => row.name },
              { name: "Detail", value: (row) => row.detail, isLong: true },
              { name: "Remedy", value: (row) => row.remedy, isLong: true },
              { name: "Plugin", value: (row) => row.plugin },
            ]}
          />`}
      <//>
    <//>
  `;
}

function Facts({ seen }) {
  const { overhead, pressure, machine } = seen;
  const own = sum(Object.values(overhead.cpu_ratio));
  const some = (resource) => pressure.node[resource]?.some.avg10 ?? null;
  return html`
    <${Panel} title="Now" path="observe" command="temper top">
      <dl class="facts">
        <${Fact} name="Window" value=${moment(seen.at)} note=${`UTC, ${duration(seen.window_s)} long`} />
        <${Fact} name="Engine" value=${seen.engine || "none"} note=${seen.generation ? `plan ${seen.generation}` : "no plan in force"} />
        <${Fact} name="Machine" value=${`${machine.cpus} CPUs`} note=${`cores: ${machine.cores}, caches: ${machine.llcs}, NUMA nodes: ${machine.numa_nodes}`} />
        <${Fact} name="CPU time" value=${`${cpus(sum(seen.threads.map((thread) => thread.cpu_used)))} CPUs`} note="of the threads listed" />
        <${Fact} name="Pods" value=${count(seen.pods.length)} note=${`${count(overhead.threads_seen)} threads on the node`} />
        <${Fact} name="Violations" value=${count(seen.violations.length)} level=${seen.violations.length ? "bad" : ""} note=${html`<a href="#/lint">lint</a>`} />
        <${Fact} name="CPU pressure" value=${percent(some("cpu"))} note="some, last 10 s" />
        <${Fact} name="Memory pressure" value=${percent(some("memory"))} note="some, last 10 s" />
        <${Fact} name="I/O pressure" value=${percent(some("io"))} note="some, last 10 s" />
        <${Fact} name="Agent" value=${`${(own * 100).toFixed(2)} %`} note=${`of one core, ${bytes(overhead.memory_bytes)}`} />
        <${Fact} name="Observed by" value=${seen.observing.tier} note=${seen.observing.reason || `every ${duration(seen.observing.period_s)}`} />
        <${Fact} name="Steering" value=${seen.steering.mode} note=${seen.steering.reason} />
      </dl>
    <//>
  `;
}

function CpuMap({ seen }) {
  const owner = new Map(seen.layers.flatMap((layer) => layer.cpus.map((cpu) => [cpu, layer])));
  const busiest = new Map();
  for (const thread of seen.threads) {
    if (thread.cpu === null || thread.tid === null) continue;
    const there = busiest.get(thread.cpu) ?? [];
    there.push(thread);
    busiest.set(thread.cpu, there);
  }
  return html`
    <${Panel} title="CPUs by core" path="observe" command="temper map">
      <ul class="cores">
        ${seen.machine.siblings.map(
          (core) => html`<li class="core" key=${core[0]}>
            ${core.map((cpu) => html`<${CpuTile} key=${cpu} cpu=${cpu} layer=${owner.get(cpu)} threads=${busiest.get(cpu) ?? []} />`)}
          </li>`,
        )}
      </ul>
      <p class="dim">Owned: ${seen.layers.filter((layer) => layer.cpus.length).map((layer) => `${layer.name} ${cpuList(layer.cpus)}`).join("; ") || "no layer owns a CPU"}.</p>
    <//>
  `;
}

function CpuTile({ cpu, layer, threads }) {
  const used = Math.min(1, sum(threads.map((thread) => thread.cpu_used)));
  return html`
    <div class=${`cpu ${layer?.tier ? `tier-${layer.tier}` : ""}`}>
      <strong>CPU ${cpu}</strong> <span class="dim">${layer?.name ?? "no owner"}</span>${" "}
      <span class="dim" title="CPU time of the threads that ran here last">${percent(used)}</span>
      <ol>
        ${threads.slice(0, 3).map(
          (thread) => html`<li key=${thread.tid} title=${thread.pod ? podName(thread) : thread.process}>
            <bdi>${thread.comm}</bdi> <span class="dim">${cpus(thread.cpu_used)}</span>
          </li>`,
        )}
      </ol>
    </div>
  `;
}
