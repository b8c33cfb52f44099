// What happened on the node, and who acted.

import { html, useState } from "../vendor/htm-preact.js";
import { moment, text } from "../format.js";
import { Loaded, Panel, Table, useDocument } from "../parts.js";

export function Events({ look }) {
  const [isAudit, setIsAudit] = useState(false);
  const events = useDocument("events", look);
  const chosen = html`
    <label><input type="checkbox" checked=${isAudit} onChange=${(event) => setIsAudit(event.target.checked)} /> Only actions (audit)</label>`;
  return html`
    <${Panel} title="Events" path="events" command="temper events" aside=${chosen}>
      <${Loaded} from=${events}>
        ${(document) => html`
          <${Table}
            caption="Events, newest first"
            rows=${document.events.filter((event) => !isAudit || event.requester || event.outcome)}
            keyOf=${(row) => row.number}
            sort=${[0, true]}
            empty=${isAudit ? "Nobody has acted." : "Nothing has happened."}
            columns=${[
              { name: "When (UTC)", value: (row) => row.number, show: (row) => html`<time datetime=${new Date(row.at * 1000).toISOString()}>${moment(row.at)}</time>` },
              { name: "Level", value: (row) => row.level, show: (row) => html`<span class=${`state ${row.level}`}>${row.level}</span>` },
              { name: "Event", value: (row) => row.kind },
              { name: "Subject", value: (row) => row.subject, show: (row) => text(row.subject) },
              { name: "Reason", value: (row) => row.reason, show: (row) => text(row.reason), isLong: true },
              { name: "Who", value: (row) => row.requester, show: (row) => text(row.requester) },
              { name: "Outcome", value: (row) => row.outcome, show: (row) => text(row.outcome) },
              { name: "Source", value: (row) => row.source },
            ]}
          />
        `}
      <//>
    <//>
  `;
}
