// Pods of all nodes, found by words.

import { html, useState } from "../vendor/htm-preact.js";
import { Loaded, Panel, useDocument } from "../parts.js";
import { FleetPodTable } from "../fleet-pod-table.js";

export function FleetPods({ look }) {
  const [words, setWords] = useState("");
  const path = `fleet/pods?find=${encodeURIComponent(words)}`;
  const pods = useDocument(path, look);
  return html`
    <${Panel} title="Pods" path=${path}>
      <label class="filter">Words of name, tier, profile or node <input type="search" value=${words} onInput=${(event) => setWords(event.target.value)} /></label>
      <${Loaded} from=${pods}>
        ${(document) => html`<${FleetPodTable} document=${document} hasNode=${true} empty=${words ? "No pod has all of these words." : "No agent tells of a pod."} />`}
      <//>
    <//>
  `;
}
