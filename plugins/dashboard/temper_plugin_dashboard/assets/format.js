// Numbers and times as text. A missing value is a dash.

const DASH = "–";
const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);
const orDash = (write) => (value) => (isMissing(value) ? DASH : write(value));

export const cpus = orDash((value) => value.toFixed(value < 10 ? 2 : 1));
export const percent = orDash((ratio) => `${(ratio * 100).toFixed(ratio < 0.1 ? 1 : 0)} %`);
export const count = orDash((value) => value.toLocaleString("en"));
export const text = orDash((value) => (value === "" ? DASH : String(value)));
export const millis = orDash((value) => (value >= 1000 ? `${value / 1000}` : `${value}m`));
// A ratio of 0.1 is 10 % more.
export const gain = orDash((ratio) => `${ratio < 0 ? "−" : "+"}${Math.abs(ratio * 100).toFixed(1)} %`);
export const figure = orDash((value) => Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 12 }));
export const watts = orDash((value) => `${value.toFixed(1)} W`);

export const bytes = orDash((value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 1024 && unit < units.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit && scaled < 100 ? scaled.toFixed(1) : Math.round(scaled)} ${units[unit]}`;
});

export const duration = orDash((seconds) => {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
});

export const moment = orDash((value) => {
  const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return date.toISOString().replace("T", " ").slice(0, 19);
});

// Workloads of a host without Kubernetes have no namespace.
export const podName = ({ namespace, pod }) => (namespace ? `${namespace}/${pod}` : pod);

// 0, 1, 2, 3, 7 as 0-3,7
export function cpuList(ids) {
  const parts = [];
  for (const id of [...ids].sort((a, b) => a - b)) {
    const last = parts[parts.length - 1];
    if (last && last[1] === id - 1) last[1] = id;
    else parts.push([id, id]);
  }
  return parts.map(([first, end]) => (first === end ? first : `${first}-${end}`)).join(",") || DASH;
}
