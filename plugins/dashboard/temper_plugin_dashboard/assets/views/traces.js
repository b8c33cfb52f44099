// Captures of the scheduler's events: the one that runs, those that are kept, and a new one.

import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { act, download, isSignedIn } from "../agent.js";
import { bytes, count, duration, moment, podName, text } from "../format.js";
import { openInPerfetto } from "../perfetto.js";
import { Confirm, Loaded, Panel, Table, useDocument } from "../parts.js";

const RUNNING = ["recording", "writing"];

export function Traces({ look, actions, observation, settings }) {
  const [asked, setAsked] = useState(0);
  const [problem, setProblem] = useState("");
  const [question, setQuestion] = useState(null);
  const traces = useDocument("traces", `${look}/${asked}`);
  const again = () => setAsked((number) => number + 1);
  const isRunning = traces.data?.traces.some((trace) => RUNNING.includes(trace.state));
  useEffect(() => {
    const timer = isRunning ? setInterval(again, 1000) : 0;
    return () => clearInterval(timer);
  }, [isRunning]);
  const attempt = async (action) => {
    setQuestion(null);
    try {
      await action();
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
    again();
  };
  const capture = (form) =>
    attempt(() => {
      const body = { seconds: Number(form.get("seconds")) };
      if (form.get("pod")) body.pod = String(form.get("pod"));
      return act("POST", "trace", body);
    });
  const deletion = (trace) => ({
    question: `Delete the trace ${trace.id}?`,
    label: "Delete",
    onYes: () => attempt(() => act("DELETE", tracePath(trace))),
  });
  const perfetto = settings?.perfetto;
  const opening = (trace) => ({
    question: `Open the trace ${trace.id} in Perfetto?`,
    detail: `A new tab opens ${perfetto}, and this page gives it the trace, with the names of threads and pods in it.`,
    label: "Open",
    onYes: () => attempt(() => openInPerfetto(perfetto, tracePath(trace), traceFile(trace), `Temper ${trace.node} ${trace.id}`)),
  });
  const capturing = { question: "Capture a trace", label: "Capture", onYes: capture, isForm: true };
  return html`
    <${Panel}
      title="Traces"
      path="traces"
      command="temper trace list"
      aside=${actions && html`<button type="button" disabled=${!isSignedIn() || isRunning} onClick=${() => setQuestion(capturing)}>Capture a trace</button>`}
    >
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <${Loaded} from=${traces} missing="The plugin temper-plugin-tracer is not installed.">
        ${(document) => html`
          <${Table}
            caption="Traces, newest first"
            rows=${document.traces}
            keyOf=${(row) => row.id}
            sort=${[0, true]}
            empty="There is no trace."
            columns=${[
              { name: "Began (UTC)", value: (row) => row.began_at, show: (row) => moment(row.began_at) },
              { name: "State", value: (row) => row.state, show: (row) => html`<${Progress} trace=${row} />` },
              { name: "Selection", value: (row) => JSON.stringify(row.selection), show: (row) => selected(row.selection) },
              { name: "Length", value: (row) => row.seconds, show: (row) => duration(row.seconds), isNumber: true },
              { name: "Events", value: (row) => row.events, show: (row) => count(row.events), isNumber: true },
              { name: "Size", value: (row) => row.bytes, show: (row) => bytes(row.bytes), isNumber: true },
              { name: "Lost", value: (row) => row.lost, show: (row) => count(row.lost), isNumber: true },
              { name: "Recorded by", value: (row) => row.backend },
              { name: "Asked by", value: (row) => row.by },
              { name: "Actions", value: () => "", show: (row) => html`<${TraceActions} trace=${row} attempt=${attempt} onDelete=${() => setQuestion(deletion(row))} onOpen=${perfetto && (() => setQuestion(opening(row)))} actions=${actions} />` },
            ]}
          />
        `}
      <//>
      <p class="dim">
        A download opens in Perfetto: "Open trace file" at ui.perfetto.dev, or a copy of it in your own network. It reads the file in
        the browser and sends it nowhere.
        ${!perfetto && html`With the setting <code>[plugins.dashboard] perfetto</code>, the address of a Perfetto, this page has a button for it.`}
        On a terminal <code>temper trace fetch ID --out FILE</code> downloads one, and <code>temper trace analyze FILE</code> reports who waited for whom.
      </p>
    <//>
    ${question &&
    html`<${Confirm} ...${question} onNo=${() => setQuestion(null)}>
      ${question.isForm &&
      html`
        <label>Seconds <input name="seconds" type="number" min="0.1" max="30" step="0.1" value="5" required /></label>
        <label>Pod <select name="pod"><option value="">the whole node</option>${(observation.data?.pods ?? []).map((pod) => html`<option value=${podName(pod)}>${podName(pod)}</option>`)}</select></label>
      `}
    <//>`}
  `;
}

const selected = (selection) => (typeof selection === "string" ? selection : text(Object.values(selection ?? {}).filter(Boolean).join(" ")));

function Progress({ trace }) {
  if (trace.state !== "recording") return html`<span class=${`state ${trace.state}`}>${trace.state}</span> ${trace.reason && html`<span class="problem">${trace.reason}</span>`}`;
  const total = trace.elapsed_s + trace.remaining_s;
  return html`<progress max=${total} value=${trace.elapsed_s} aria-label="Recording"></progress> ${duration(trace.remaining_s)} left`;
}

const tracePath = (trace) => `trace/${encodeURIComponent(trace.id)}`;
const traceFile = (trace) => `${trace.id}.pftrace`;

function TraceActions({ trace, attempt, onDelete, onOpen, actions }) {
  if (!actions) return null;
  const isSigned = isSignedIn();
  const isFinished = trace.state === "finished";
  return html`
    ${isFinished && html`<button type="button" disabled=${!isSigned} onClick=${() => attempt(() => download(tracePath(trace), traceFile(trace)))}>Download</button>`}
    ${isFinished && onOpen && html` <button type="button" disabled=${!isSigned} onClick=${onOpen}>Open in Perfetto</button>`}
    ${" "}<button type="button" disabled=${!isSigned} onClick=${onDelete}>${trace.state === "recording" ? "End" : "Delete"}</button>
  `;
}
