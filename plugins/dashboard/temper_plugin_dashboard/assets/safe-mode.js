// The kill switch of this node.

import { html, useState } from "./vendor/htm-preact.js";
import { act, isSignedIn } from "./agent.js";
import { Confirm, useDocument } from "./parts.js";

// The name of an instrument is its own.
const REQUESTER = "dashboard-user";

export function SafeModeSwitch({ mode }) {
  const [asked, setAsked] = useState(0);
  const [isAsking, setIsAsking] = useState(false);
  const [problem, setProblem] = useState("");
  const { data } = useDocument("safe-mode", `${mode}/${asked}`);
  if (!data) return null;
  const isOurs = REQUESTER in (data.requests ?? {});
  const confirmed = async (form) => {
    setIsAsking(false);
    const body = { requested: !isOurs, requester: REQUESTER };
    if (!isOurs) body.reason = String(form.get("reason"));
    try {
      await act("PUT", "safe-mode", body);
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
    setAsked(asked + 1);
  };
  const words = isOurs ? "Withdraw the request for safe mode" : "Request safe mode";
  return html`
    <button type="button" class=${isOurs ? "" : "danger"} disabled=${!isSignedIn()} onClick=${() => setIsAsking(true)}>${words}</button>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
    ${isAsking &&
    html`<${Confirm}
      question=${`${words}?`}
      detail=${isOurs
        ? "Safe mode ends when no request is left."
        : "The engine ends, and the kernel's stock scheduler runs all threads of this node until the request is withdrawn."}
      label=${isOurs ? "Withdraw" : "Request safe mode"}
      onYes=${confirmed}
      onNo=${() => setIsAsking(false)}
    >
      ${!isOurs && html`<label>Reason <input name="reason" required maxlength="500" /></label>`}
    <//>`}
  `;
}
