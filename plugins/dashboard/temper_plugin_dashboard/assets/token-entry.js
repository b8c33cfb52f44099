// The entry of a token of the agents, which acting needs.

import { html, useState } from "./vendor/htm-preact.js";
import { isSignedIn, read, signIn, signOut } from "./agent.js";
import { Confirm, Notice } from "./parts.js";

const LIFE = "It stays in this page's memory for 15 minutes after the last action, and is gone with a reload.";

const DEFAULT_FILE = "/etc/temper/token";
const RIGHT = { has_token: true };

// What the agent says of its tokens. One of an earlier version says nothing.
const told = (acting) => (acting ? read(acting).catch(() => RIGHT) : Promise.resolve(RIGHT));

// acting: the path that tells whether the agent has a token, none on the page of a cluster.
export function TokenEntry({ acting, onChange }) {
  const [asking, setAsking] = useState(null);
  if (isSignedIn()) {
    const left = () => {
      signOut();
      onChange();
    };
    return html`<button type="button" onClick=${left}>Forget the token</button>`;
  }
  const entered = (form) => {
    signIn(String(form.get("token")).trim());
    setAsking(null);
    onChange();
  };
  const ask = async () => setAsking(await told(acting));
  const end = () => setAsking(null);
  return html`
    <button type="button" onClick=${ask}>Enter a token to act</button>
    ${asking && (asking.has_token ? html`<${Entry} onYes=${entered} onNo=${end} />` : html`<${NoToken} ...${asking} onClose=${end} />`)}
  `;
}

const Entry = ({ onYes, onNo }) => html`
  <${Confirm} question="Enter a token" detail=${`One of [server] token_file. ${LIFE}`} label="Use it" onYes=${onYes} onNo=${onNo}>
    <label>Token <input name="token" type="password" required minlength="16" autocomplete="off" /></label>
  <//>
`;

const quoted = (path) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

function NoToken({ why_not: why, token_file: file, onClose }) {
  const path = quoted(file || DEFAULT_FILE);
  return html`
    <${Notice} title="This agent has no token" onClose=${onClose}>
      <p>So this page can only read: <span class="problem">${why}</span>.</p>
      <p>As root on the node, make a token${file ? " in place of that file. The agent reads it without a restart" : ""}:</p>
      <pre tabindex="0">install -D -m 600 /dev/null ${path}${"\n"}openssl rand -hex 32 >${path}</pre>
      ${!file &&
      html`<p>Name the file in the agent's settings, such as <code>/etc/temper/agent.toml</code>, and restart the agent:</p>
        <pre tabindex="0">[server]${"\n"}token_file = "${DEFAULT_FILE}"</pre>`}
      <p>In a cluster the chart's value <code>agent.token.create=true</code> does this. On the node <code>temper safe-mode on</code> needs no token.</p>
    <//>
  `;
}
