// One pod: why it is where it is, its threads, its violations, and what it should request.

import { html } from "../vendor/htm-preact.js";
import { bytes, count, cpus, duration, moment, percent, podName, text } from "../format.js";
import { Fact, Loaded, Panel, TierName, useDocument } from "../parts.js";
import { Advice } from "../advice.js";
import { ThreadTable } from "../thread-table.js";
import { PodDetails } from "./pod-details.js";

const PATH = "observe?top=1000";

export function Pod({ look, rest, settings }) {
  const observation = useDocument(PATH, look);
  const [namespace, name] = rest;
  const subject = podName({ namespace, pod: name });
  const isIt = (row) => row.namespace === namespace && row.pod === name;
  return html`
    <p><a href="#/pods">All pods</a></p>
    <${Loaded} from=${observation}>
      ${(seen) => {
        const pod = seen.pods.find(isIt);
        if (!pod) return html`<p class="problem" role="alert">The pod ${subject} is not on this node now.</p>`;
        return html`
          <${PodFacts} pod=${pod} subject=${subject} pressure=${seen.pressure.pods[subject]} />
          <${Explanation} look=${look} pod=${subject} />
          <${Broken} violations=${seen.violations.filter((each) => each.subject.includes(subject))} />
          <${Panel} title="Threads" path=${PATH} command="temper top">
            ${[...new Set(seen.threads.filter(isIt).map((thread) => thread.container))].sort().map(
              (container) => html`<h3 key=${container}>${container ? `Container ${container}` : "Outside of containers"}</h3>
                <${ThreadTable} threads=${seen.threads.filter((thread) => isIt(thread) && thread.container === container)} hasPlan=${seen.generation > 0} />`,
            )}
            ${!seen.threads.some(isIt) && html`<p class="empty">None of its threads ran in the window.</p>`}
          <//>
        `;
      }}
    <//>
    <${Advice} isShown=${isIt} />
    ${namespace && observation.data && html`<${PodDetails} key=${subject} namespace=${namespace} name=${name} containers=${containersOf(observation.data, isIt)} settings=${settings} />`}
  `;
}

const containersOf = (seen, isIt) => [...new Set(seen.threads.filter(isIt).map((thread) => thread.container))].filter(Boolean).sort();

function PodFacts({ pod, subject, pressure }) {
  return html`
    <${Panel} title=${subject} path="observe" command=${`temper explain ${subject}`}>
      <dl class="facts">
        <${Fact} name="Tier" value=${html`<${TierName} tier=${pod.tier} />`} />
        <${Fact} name="Profile" value=${pod.profile || "none"} note=${pod.profile_reason} />
        <${Fact} name="Coverage" value=${percent(pod.profile_coverage)} note="CPU time that the profile's groups name" />
        <${Fact} name="CPU time" value=${`${cpus(pod.cpu_used)} CPUs`} note=${pod.quota_cores === null ? "cpu.max of its cgroup has no limit" : `limit ${cpus(pod.quota_cores)} (cpu.max of its cgroup)`} />
        <${Fact} name="Waiting" value=${cpus(pod.run_delay)} note="threads that waited for a CPU, on average" />
        <${Fact} name="Throttled" value=${percent(pod.throttled_ratio)} note=${`${duration(pod.throttled_s)} in the window`} level=${pod.throttled_ratio > 0.1 ? "bad" : ""} />
        <${Fact} name="Threads" value=${count(pod.threads)} />
        <${Fact} name="Memory" value=${bytes(pod.memory_bytes)} />
        <${Fact} name="CPU pressure" value=${percent(pressure?.cpu?.some.avg10)} note="some, last 10 s" />
      </dl>
    <//>
  `;
}

function Explanation({ look, pod }) {
  const explained = useDocument(`explain?pod=${encodeURIComponent(pod)}`, look);
  return html`
    <${Panel} title="Why it is there" path=${`explain?pod=${encodeURIComponent(pod)}`} command=${`temper explain ${pod}`}>
      <${Loaded} from=${explained}>
        ${(why) => html`
          <p>Tier <${TierName} tier=${why.tier} />: ${why.reason}</p>
          <p>Profile ${text(why.profile)}: ${why.profile_reason}</p>
          <ul>
            ${why.places.map(
              (place) => html`<li key=${place.layer}>
                <strong>${place.layer}</strong> (${place.kind}): ${place.threads}
                <span class="dim"> ${place.reason}</span>
              </li>`,
            )}
          </ul>
          ${why.notes.length > 0 && html`<h3>Notes</h3><ul>${why.notes.map((note) => html`<li>${note.message ?? note}</li>`)}</ul>`}
          ${why.changes.length > 0 && html`<h3>What would change it</h3><ul>${why.changes.map((change) => html`<li>${change}</li>`)}</ul>`}
        `}
      <//>
    <//>
  `;
}

function Broken({ violations }) {
  if (!violations.length) return null;
  return html`
    <${Panel} title="Broken promises" path="violations" command="temper lint">
      <ul>
        ${violations.map(
          (each) => html`<li key=${each.id}><strong>${each.invariant}</strong> since ${moment(each.since)}: ${each.message} <em>${each.fix}</em></li>`,
        )}
      </ul>
    <//>
  `;
}
