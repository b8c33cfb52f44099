// Recommended requests and limits of all containers of the node.

import { html } from "../vendor/htm-preact.js";
import { Advice } from "../advice.js";

export const Rightsizing = () => html`<${Advice} isShown=${() => true} hasSavings=${true} />`;
