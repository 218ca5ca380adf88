// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
// Asks for state.json every 2 s, and shows it. Names from the network become text, never markup.

import { drawFabric, isOut, rate, share } from "./picture.js";

const INTERVAL_MS = 2000;
const ANSWER_MS = 5000;
const COLOURS = [
  "#2463b0", "#c2410c", "#15803d", "#9333ea", "#be185d", "#0e7490", "#a16207", "#4d7c0f",
];
const colours = new Map();
const hiddenJobs = new Set();
let shown = null;
let answeredAt = null;

function make(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// A job keeps its colour, and two have the same one only if there are more jobs than colours.
function colourOf(name, names) {
  if (!colours.has(name)) {
    const taken = new Set(names.map((other) => colours.get(other)));
    const free = COLOURS.find((colour) => !taken.has(colour));
    colours.set(name, free ?? COLOURS[colours.size % COLOURS.length]);
  }
  return colours.get(name);
}

function fill(id, headings, rows, none) {
  const head = make("tr", {}, ...headings.map(([text, className]) => make("th", { className, scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, i) => {
    const made = make("td", { className: headings[i][1] ?? "" });
    made.append(...[cell].flat());
    return made;
  })));
  if (rows.length === 0) {
    body.push(make("tr", {}, make("td", { className: "none", colSpan: headings.length }, none)));
  }
  document.getElementById(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

function stateCell(state, isGood, reason) {
  const cell = [make("span", { className: isGood ? "good" : "bad" }, state)];
  if (reason) cell.push(make("div", { className: "reason" }, reason));
  return cell;
}

function jobCell(job) {
  const box = make("input", { type: "checkbox", checked: !hiddenJobs.has(job.name) });
  box.setAttribute("aria-label", `show the trees of ${job.name}`);
  box.addEventListener("change", () => {
    if (box.checked) hiddenJobs.delete(job.name);
    else hiddenJobs.add(job.name);
    drawPicture();
  });
  const swatch = make("span", { className: "swatch" });
  swatch.style.backgroundColor = job.colour;
  return make("label", {}, box, swatch, job.name);
}

function pathCell(job) {
  const roots = job.trees.map((tree) => tree.root).join(", ");
  const number = job.trees.length === 1 ? "tree" : "trees";
  const texts = { switch: `${job.trees.length} ${number}, root ${roots}`, host: "between the hosts", "": "–" };
  const cell = [texts[job.path] ?? job.path];
  if (job.reason) cell.push(make("div", { className: "reason" }, job.reason));
  return cell;
}

function showJobs(jobs) {
  const headings = [["job"], ["state"], ["workers", "number"], ["path"], ["slots", "number"], ["rate", "number"]];
  fill("jobs", headings, jobs.map((job) => [
    jobCell(job),
    stateCell(job.state, job.missing.length === 0,
      job.missing.length === 0 ? "" : `without worker ${job.missing.join(", ")}`),
    String(job.num_workers),
    pathCell(job),
    String(job.trees.reduce((sum, tree) => sum + tree.slots, 0)),
    rate(job.tree_bits_per_s),
  ]), "no job is waiting or running");
}

function showSwitches(switches) {
  const headings = [["switch"], ["state"], ["slots in use", "number"], ["slots", "number"]];
  fill("switches", headings, switches.map((each) => [
    each.name, stateCell(each.state, each.state === "ready", each.error), String(each.used_slots), String(each.slots),
  ]), "no switch");
}

function shareCell(link) {
  const used = share(link);
  if (used === null) return "–";
  const bar = make("meter", { min: 0, max: 1, value: Math.min(used, 1), low: 0.5, high: 0.8, optimum: 0 });
  bar.setAttribute("aria-hidden", "true");
  return [bar, ` ${Math.round(100 * used)} %`];
}

function showLinks(links) {
  const headings = [["link"], ["state"], ["forward", "number"], ["backward", "number"], ["rate", "number"], ["use", "number"]];
  fill("links", headings, links.map((link) => [
    link.name,
    link.state ? stateCell(link.state, link.state === "up") : "–",
    rate(link.forward_bits_per_s),
    rate(link.backward_bits_per_s),
    rate(link.rate_bits_per_s),
    shareCell(link),
  ]), "no link");
}

function drawPicture() {
  const jobs = shown.jobs.filter((job) => !hiddenJobs.has(job.name));
  drawFabric(document.getElementById("picture"), shown, jobs);
}

function count(number, word, plural = `${word}s`) {
  return `${number} ${number === 1 ? word : plural}`;
}

function summary(state) {
  const away = state.switches.filter((each) => each.state !== "ready").length;
  const bad = state.links.filter(isOut).length;
  const parts = [
    `${count(state.switches.length, "switch", "switches")}${away ? `, ${away} not ready` : ""}`,
    `${count(state.hosts.length, "host")}`,
    `${count(state.links.length, "link")}${bad ? `, ${bad} out of use` : ""}`,
    `${count(state.jobs.length, "job")}`,
  ];
  return parts.join(" · ");
}

function notify(text) {
  const notice = document.getElementById("notice");
  notice.textContent = text;
  notice.hidden = !text;
}

function show(state) {
  const names = state.jobs.map((job) => job.name);
  for (const name of colours.keys()) if (!names.includes(name)) colours.delete(name);
  for (const job of state.jobs) job.colour = colourOf(job.name, names);
  shown = state;
  document.getElementById("summary").textContent = state.is_leader ? summary(state) : "standing by";
  if (!state.is_leader) notify("This controller stands by: another one leads. Its own page shows the fabric.");
  else notify(state.is_database_up ? "" : "The controller cannot write its database.");
  // Rebuilt rows would take the focus from a checkbox.
  const focused = document.activeElement?.getAttribute("aria-label");
  showJobs(state.jobs);
  showSwitches(state.switches);
  showLinks(state.links);
  drawPicture();
  if (focused) document.querySelector(`[aria-label=${CSS.escape(focused)}]`)?.focus();
}

async function refresh() {
  try {
    const answer = await fetch("state.json", { signal: AbortSignal.timeout(ANSWER_MS) });
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    show(await answer.json());
    answeredAt = new Date();
    document.body.classList.remove("is-old");
  } catch (error) {
    const since = answeredAt === null ? "" : ` What is shown is of ${answeredAt.toLocaleTimeString()}.`;
    notify(`The controller does not answer (${error.message}).${since}`);
    document.body.classList.add("is-old");
  }
  setTimeout(refreshIfVisible, INTERVAL_MS);
}

// A page that nobody sees asks for nothing.
function refreshIfVisible() {
  if (!document.hidden) refresh();
  else document.addEventListener("visibilitychange", refreshIfVisible, { once: true });
}

refreshIfVisible();
