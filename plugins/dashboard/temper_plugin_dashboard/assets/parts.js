// Parts that several views share.

import { html, useEffect, useErrorBoundary, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { AgentError, read, show } from "./agent.js";
import { moment, podName } from "./format.js";
import { sessionKey } from "./session.js";

const remembered = new Map();

async function readWhileWanted(own, reader, load, setState) {
  const isCurrent = () => reader.current === own;
  while (own.isWanted && isCurrent()) {
    own.isWanted = false;
    try {
      const data = await load(own.path);
      remembered.set(own.path, data);
      if (isCurrent()) setState({ path: own.path, data, error: null });
    } catch (error) {
      if (isCurrent()) setState({ path: own.path, data: remembered.get(own.path), error });
    }
  }
  own.isReading = false;
}

// The document at a path, undefined until it is read. It is read again whenever look changes. The previous one stays until then.
// The next read waits for the answer to the last, so that an agent slower than its looks is still shown.
export function useDocument(path, look, load = read) {
  const [state, setState] = useState(() => ({ path, data: remembered.get(path), error: null }));
  const reader = useRef(null);
  useEffect(() => {
    if (path === null || (document.hidden && remembered.has(path))) return;
    if (reader.current?.path === path && reader.current.isReading) {
      reader.current.isWanted = true;
      return;
    }
    const own = { path, isReading: true, isWanted: true };
    reader.current = own;
    readWhileWanted(own, reader, load, setState);
  }, [path, look]);
  useEffect(
    () => () => {
      reader.current = null;
    },
    [],
  );
  return state.path === path ? state : { path, data: remembered.get(path), error: null };
}

// Says that its children cannot be shown, as after an update of the agent below an open page.
// They are tried again when the document that they are of changes.
export function Guarded({ of, children }) {
  const [error, forget] = useErrorBoundary();
  useEffect(forget, [of]);
  if (!error) return children;
  return html`<p class="problem" role="alert">This page cannot show what the agent answers (${error.message}). Reload the page.</p>`;
}

const Filled = ({ data, write }) => write(data);

// What a view shows of a document: the error, a line while it loads, or what children returns of it. An agent that has
// not looked at the node yet answers some paths with null.
export function Loaded({ from, missing, children }) {
  const { data, error } = from;
  const isAbsent = error instanceof AgentError && error.status === 404;
  if (isAbsent && missing) return html`<p class="empty">${missing} <span class="dim">(${error.message})</span></p>`;
  // The element keeps the place among its siblings while its content changes from one part to several.
  return html`<div class="group">
    ${error && html`<p class="problem" role="alert">${error.message}</p>`}
    ${data === undefined && !error && html`<p class="empty">Reading …</p>`}
    ${data === null && html`<p class="empty">The agent has nothing to show yet.</p>`}
    ${data !== undefined && data !== null && html`<${Guarded} of=${data}><${Filled} data=${data} write=${children} /><//>`}
  </div>`;
}

// Behind a session the source is read with its key, unless the browser is told to open a tab.
function showSource(event, path) {
  if (!sessionKey() || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(path);
}

export function Panel({ title, path, command, children, aside }) {
  return html`
    <section class="panel" aria-label=${title}>
      <header><h2>${title}</h2>${aside}</header>
      ${children}
      ${(path || command) &&
      html`<footer class="source">
        ${path && html`Source: <a href=${path} onClick=${(event) => showSource(event, path)}>/${path.replace(/^(\.\.\/)+/, "")}</a>`}${path && command && " · "}${command &&
        html`on a terminal: <code>${command}</code>`}
      </footer>`}
    </section>
  `;
}

export function Fact({ name, value, note, level }) {
  return html`<div class=${`fact ${level ?? ""}`}><dt>${name}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`;
}

export const TierName = ({ tier }) =>
  tier ? html`<span class=${`tier tier-${tier}`}>${tier}</span>` : html`<span class="dim">–</span>`;

export const PodLink = ({ namespace, pod }) =>
  html`<a href=${`#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`}>${podName({ namespace, pod })}</a>`;

// A bar behind a number: ratio from 0 to 1.
export function Bar({ ratio, children }) {
  const width = `${Math.max(0, Math.min(1, ratio || 0)) * 100}%`;
  return html`<span class="bar"><span class="fill" style=${{ width }}></span><span>${children}</span></span>`;
}

const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
  if (b === null || b === undefined) return 1;
  return String(a).localeCompare(String(b), "en", { numeric: true });
};

// A table that can be sorted by each column and filtered by text.
// columns: {name, value(row), show(row), isNumber, isLong, help}; sort: [index of a column, whether descending].
// In a narrow place each row is a stack of cells. Some browsers then drop the roles of a table, so they are written out.
export function Table({ caption, columns, rows, keyOf, sort = [0, false], most = 300, hasFilter = true, empty }) {
  const [[by, isDescending], setSort] = useState(sort);
  const [filter, setFilter] = useState("");
  const shown = useMemo(() => {
    const needle = filter.toLowerCase();
    const matching = needle
      ? rows.filter((row) => columns.some((column) => String(column.value(row) ?? "").toLowerCase().includes(needle)))
      : [...rows];
    const { value } = columns[by];
    return matching.sort((a, b) => (isDescending ? -1 : 1) * compare(value(a), value(b)));
  }, [rows, filter, by, isDescending]);
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  const chosen = (index) => setSort([index, index === by ? !isDescending : Boolean(columns[index].isNumber)]);
  return html`
    ${hasFilter &&
    rows.length > 5 &&
    html`<label class="filter">Filter <input type="search" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></label>`}
    <div class="scroll" role="group" aria-label=${caption} tabindex="0">
      <table role="table">
        <caption class="unseen">${caption}</caption>
        <thead>
          <tr role="row">
            ${columns.map(
              (column, index) => html`<th
                scope="col"
                role="columnheader"
                class=${column.isNumber ? "number" : ""}
                aria-sort=${index === by ? (isDescending ? "descending" : "ascending") : "none"}
              >
                <button type="button" title=${column.help ?? ""} onClick=${() => chosen(index)}>${column.name}</button>
              </th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${shown.slice(0, most).map(
            (row) => html`<tr role="row" key=${keyOf(row)}>
              ${columns.map(
                (column) => html`<td role="cell" data-name=${column.name} class=${column.isNumber ? "number" : column.isLong ? "long" : ""}>${(column.show ?? column.value)(row)}</td>`,
              )}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${shown.length > most && html`<p class="dim">${most} of ${shown.length} rows. The filter finds the others.</p>`}
  `;
}

// A dialog. Escape and its button that is not main close it. Without a label it only tells.
function Dialog({ title, close, label, onYes, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  const submitted = (event) => {
    event.preventDefault();
    onYes(new FormData(event.target));
  };
  return html`
    <dialog ref=${dialog} aria-label=${title} onClose=${onClose}>
      <form onSubmit=${submitted}>
        <h2>${title}</h2>
        ${children}
        <p class="buttons">
          <button type="button" onClick=${() => dialog.current.close()}>${close}</button>
          ${label && html`<button type="submit" class="main">${label}</button>`}
        </p>
      </form>
    </dialog>
  `;
}

// A question before an action. Escape and a click on Cancel answer no.
export const Confirm = ({ question, detail, label, onYes, onNo, children }) => html`
  <${Dialog} title=${question} close="Cancel" label=${label} onYes=${onYes} onClose=${onNo}>
    ${detail && html`<p>${detail}</p>`}
    ${children}
  <//>
`;

// What a reader has to know before an action is possible.
export const Notice = ({ title, onClose, children }) => html`<${Dialog} title=${title} close="Close" onClose=${onClose}>${children}<//>`;

// Charts of equal times; series: [name, values, colour].
export function Chart({ title, times, series, write }) {
  const place = useRef(null);
  const chart = useRef(null);
  const data = [times, ...series.map(([, values]) => values)];
  useEffect(() => {
    const colours = getComputedStyle(document.documentElement);
    const dim = colours.getPropertyValue("--dim");
    const line = colours.getPropertyValue("--line");
    const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const options = {
      width: place.current.clientWidth,
      height: 160,
      legend: { live: false },
      tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      cursor: { drag: { x: true, y: false } },
      scales: { y: { range: (_, low, high) => [0, Math.max(high, 0.01) * 1.1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((at) => moment(at).slice(11)) }, { ...axis, size: 60, values: (_, ticks) => ticks.map(write) }],
      series: [
        {},
        ...series.map(([label, , colour]) => ({
          label,
          stroke: colours.getPropertyValue(colour),
          width: 1.5,
          value: (_, value) => write(value),
          points: { show: false },
        })),
      ],
    };
    chart.current = new window.uPlot(options, data, place.current);
    const resized = new ResizeObserver(([entry]) => chart.current.setSize({ width: entry.contentRect.width, height: 160 }));
    resized.observe(place.current);
    return () => {
      resized.disconnect();
      chart.current.destroy();
    };
  }, []);
  useEffect(() => {
    chart.current?.setData(data);
  }, [times]);
  const last = series.map(([name, values]) => `${name} ${write(values[values.length - 1])}`).join(", ");
  return html`<figure><figcaption>${title}</figcaption><div ref=${place} role="img" aria-label=${`${title}: now ${last}`}></div></figure>`;
}
