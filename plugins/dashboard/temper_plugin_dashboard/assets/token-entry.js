// The entry of a token of the agents, which acting needs.

import { html, useState } from "./vendor/htm-preact.js";
import { isSignedIn, signIn, signOut } from "./agent.js";
import { Confirm } from "./parts.js";

export function TokenEntry({ onChange }) {
  const [isAsking, setIsAsking] = useState(false);
  if (isSignedIn()) {
    const left = () => {
      signOut();
      onChange();
    };
    return html`<button type="button" onClick=${left}>Forget the token</button>`;
  }
  const entered = (form) => {
    signIn(String(form.get("token")).trim());
    setIsAsking(false);
    onChange();
  };
  return html`
    <button type="button" onClick=${() => setIsAsking(true)}>Enter a token to act</button>
    ${isAsking &&
    html`<${Confirm}
      question="Enter a token"
      detail="One of [server] token_file. It stays in this page's memory for 15 minutes after the last action, and is gone with a reload."
      label="Use it"
      onYes=${entered}
      onNo=${() => setIsAsking(false)}
    >
      <label>Token <input name="token" type="password" required minlength="16" autocomplete="off" /></label>
    <//>`}
  `;
}
