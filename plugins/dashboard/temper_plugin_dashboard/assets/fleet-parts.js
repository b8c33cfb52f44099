// Parts that views of the fleet share.

import { html } from "./vendor/htm-preact.js";
import { moment, podName } from "./format.js";

const LEVELS = { answers: "ok", slow: "warning", "other version": "warning", away: "error" };
export const ORDER = ["away", "slow", "other version", "answers"];
export const MODES = { __proto__: null, enforcing: "enforcing", reloading: "changing the engine", safe_mode: "safe mode", observe_only: "only observing" };

export const NodeState = ({ state, why, since }) => html`
  <span class=${`state ${LEVELS[state] ?? ""}`}>${state}</span>
  ${since !== null && html` <span class="dim">since <time datetime=${new Date(since * 1000).toISOString()}>${moment(since)}</time></span>`}
  ${why && html`<br /><span class="dim">${why}</span>`}
`;

export const NodeLink = ({ node }) => html`<a href=${`#/node/${encodeURIComponent(node)}`}>${node}</a>`;

export const nodePage = (node) => `node/${encodeURIComponent(node)}/`;

// The pod on the page of its node.
export const FleetPodLink = ({ node, namespace, pod }) =>
  html`<a href=${`${nodePage(node)}#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`}>${podName({ namespace, pod })}</a>`;
