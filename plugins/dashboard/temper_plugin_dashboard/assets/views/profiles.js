// Workload profiles of the node's pods, and profiles on trial.

import { html, useState } from "../vendor/htm-preact.js";
import { act, isSignedIn } from "../agent.js";
import { moment, percent, podName, text } from "../format.js";
import { Effects } from "../effects.js";
import { ProfileReload } from "../profile-reload.js";
import { Confirm, Loaded, Panel, PodLink, Table, useDocument } from "../parts.js";

export function Profiles({ look, observation, actions }) {
  return html`
    <${Panel} title="Profiles of pods" path="observe" command="temper profiles list" aside=${actions && html`<div class="session"><${ProfileReload} /></div>`}>
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
    <${Effects} look=${look} />
    <${Trials} look=${look} actions=${actions} pods=${observation.data?.pods ?? []} />
  `;
}

function Trials({ look, actions, pods }) {
  const [isBeginning, setIsBeginning] = useState(false);
  const [asked, setAsked] = useState(0);
  const [ending, setEnding] = useState(null);
  const [problem, setProblem] = useState("");
  const trials = useDocument("trials", `${look}/${asked}`);
  const attempt = async (method, path, body) => {
    try {
      await act(method, path, body);
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
    setAsked(asked + 1);
  };
  const end = () => {
    const { id } = ending;
    setEnding(null);
    return attempt("DELETE", `trials/${encodeURIComponent(id)}`);
  };
  const begin = (form) => {
    setIsBeginning(false);
    const body = { profile: String(form.get("profile")), pods: form.getAll("pods").map(String), seconds: Number(form.get("seconds")) };
    return attempt("POST", "trials", body);
  };
  return html`
    <${Panel}
      title="Profiles on trial"
      path="trials"
      aside=${actions && html`<button type="button" disabled=${!isSignedIn() || !pods.length} onClick=${() => setIsBeginning(true)}>Begin a trial</button>`}
    >
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <p class="dim">A file of the profile directory takes effect when it is edited, without a trial and without a restart.</p>
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
    ${isBeginning &&
    html`<${Confirm}
      question="Begin a trial"
      detail="The profile is in force for the chosen pods until the trial ends. It takes precedence over every other profile of theirs."
      label="Begin"
      onYes=${begin}
      onNo=${() => setIsBeginning(false)}
    >
      <label>Profile (TOML) <textarea name="profile" rows="10" required spellcheck=${false}></textarea></label>
      <label>Pods <select name="pods" multiple required>${pods.map((pod) => html`<option value=${podName(pod)}>${podName(pod)}</option>`)}</select></label>
      <label>Seconds <input name="seconds" type="number" min="1" max="3600" value="600" required /></label>
    <//>`}
    ${ending && html`<${Confirm} question=${`End the trial of ${ending.profile}?`} label="End the trial" onYes=${end} onNo=${() => setEnding(null)} />`}
  `;
}
