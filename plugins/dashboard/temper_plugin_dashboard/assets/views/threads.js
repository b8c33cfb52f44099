// The busiest threads of the node.

import { html } from "../vendor/htm-preact.js";
import { Loaded, Panel, useDocument } from "../parts.js";
import { ThreadTable } from "../thread-table.js";

const PATH = "observe?top=500";

export function Threads({ look }) {
  const observation = useDocument(PATH, look);
  return html`
    <${Panel} title="Busiest threads" path=${PATH} command="temper top">
      <${Loaded} from=${observation}>
        ${(seen) => html`
          <${ThreadTable} threads=${seen.threads} hasPod=${true} hasPlan=${seen.generation > 0} />
          <p class="dim">Threads below ${(seen.observing.least_s * 1000).toFixed(1)} ms of CPU time in the window are summed up: ${seen.observing.unlisted}.</p>
        `}
      <//>
    <//>
  `;
}
