// Has the agent read its profile files again, and shows what it found.

import { html, useState } from "./vendor/htm-preact.js";
import { act, isSignedIn } from "./agent.js";
import { Confirm } from "./parts.js";

export function ProfileReload() {
  const [isAsking, setIsAsking] = useState(false);
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const confirmed = async () => {
    setIsAsking(false);
    setFound(null);
    try {
      setFound(await act("POST", "profiles/reload"));
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`
    <button type="button" disabled=${!isSignedIn()} onClick=${() => setIsAsking(true)}>Reload the profiles</button>
    <span role="status">${found && `${found.profiles} profiles are loaded. ${found.changed ? "Some have changed." : "None has changed."}`}</span>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
    ${found?.failures.length > 0 && html`<div class="problem" role="alert">Not loaded: <ul>${found.failures.map((each) => html`<li key=${`${each.source} ${each.profile}`}>${each.source}: ${each.reason}</li>`)}</ul></div>`}
    ${isAsking &&
    html`<${Confirm}
      question="Reload the profiles?"
      detail="The agent reads all files of its profile directory, and decides anew if one has changed. Threads of pods may get other treatments."
      label="Reload"
      onYes=${confirmed}
      onNo=${() => setIsAsking(false)}
    />`}
  `;
}
