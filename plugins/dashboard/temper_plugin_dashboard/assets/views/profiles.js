// Workload profiles of the node's pods, and profiles on trial.

import { html, useState } from "../vendor/htm-preact.js";
import { act, isSignedIn } from "../agent.js";
import { moment, percent, podName, text } from "../format.js";
import { Confirm, Loaded, Panel, PodLink, Table, useDocument } from "../parts.js";

export function Profiles({ look, observation, actions }) {
  return html`
    <${Panel} title="Profiles of pods" path="observe" command="temper profiles list">
      <${Loaded} from=${observation}>
        ${(seen) => html`
          <${Table}
            caption="The profile of each pod"
            rows=${seen.pods}
            keyOf=${(row) => row.uid || `${row.namespace}/${row.pod}`}
            empty="The agent knows no pods here."
            columns=${[
              { name: "Profile", value: (row) => row.profile, show: (row) => text(row.profile) },
              { name: "Pod", value: (row) => podName(row), show: (row) => html`<${PodLink} ...${row} />` },
              { name: "Coverage", value: (row) => row.profile_coverage, show: (row) => percent(row.profile_coverage), isNumber: true, help: "Share of the pod's CPU time that the profile's groups name" },
              { name: "Why", value: (row) => row.profile_reason, show: (row) => text(row.profile_reason), isLong: true },
            ]}
          />
        `}
      <//>
    <//>
    <${Trials} look=${look} actions=${actions} />
  `;
}

function Trials({ look, actions }) {
  const [asked, setAsked] = useState(0);
  const [ending, setEnding] = useState(null);
  const [problem, setProblem] = useState("");
  const trials = useDocument("trials", `${look}/${asked}`);
  const end = async () => {
    const { id } = ending;
    setEnding(null);
    try {
      await act("DELETE", `trials/${encodeURIComponent(id)}`);
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
    setAsked(asked + 1);
  };
  return html`
    <${Panel} title="Profiles on trial" path="trials">
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <${Loaded} from=${trials}>
        ${(document) => html`
          <${Table}
            caption="Trials in force"
            rows=${document.trials}
            keyOf=${(row) => row.id}
            empty="No profile is on trial."
            columns=${[
              { name: "Profile", value: (row) => row.profile },
              { name: "Pods", value: (row) => row.pods.join(", ") },
              { name: "Begun by", value: (row) => row.owner },
              { name: "Ends (UTC)", value: (row) => row.until, show: (row) => moment(row.until) },
              { name: "Actions", value: () => "", show: (row) => actions && html`<button type="button" disabled=${!isSignedIn()} onClick=${() => setEnding(row)}>End</button>` },
            ]}
          />
        `}
      <//>
    <//>
    ${ending && html`<${Confirm} question=${`End the trial of ${ending.profile}?`} label="End the trial" onYes=${end} onNo=${() => setEnding(null)} />`}
  `;
}
