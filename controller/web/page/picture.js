// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
// Draws the fabric: switches and hosts at the places that the controller gives, links, trees.

const UNIT = 84;
const ROW = 104;
const MARGIN = 30;
const SWITCH = { width: 92, height: 34 };
const HOST = { width: 72, height: 24 };
const BUSY = 0.8;
const LEAST_SCALE = 0.55;
const BRANCH_GAP = 4;

export function rate(bitsPerSecond) {
  if (bitsPerSecond === null) return "–";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let value = bitsPerSecond;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 99.5 || unit === 0 ? Math.round(value) : value.toPrecision(2)} ${units[unit]}`;
}

// The larger share of its stated rate that a direction of a link uses; null: not known.
export function share(link) {
  const used = [link.forward_bits_per_s, link.backward_bits_per_s].filter((x) => x !== null);
  if (!link.rate_bits_per_s || used.length === 0) return null;
  return Math.max(...used) / link.rate_bits_per_s;
}

function element(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function title(text) {
  return element("title", {}, text);
}

function cut(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

// Positions in the drawing, by name: "switch s1", "host s1 h1".
class Drawing {
  constructor(state) {
    const all = [...state.switches, ...state.hosts];
    this.top = Math.max(1, ...all.map((each) => each.place.row));
    this.left = Math.min(0.5, ...all.map((each) => each.place.x));
    const right = Math.max(0.5, ...all.map((each) => each.place.x));
    this.width = (right - this.left) * UNIT + 2 * MARGIN + SWITCH.width;
    this.height = this.top * ROW + 2 * MARGIN + SWITCH.height + 14;
    this.points = new Map();
    for (const each of state.switches) this.points.set(`switch ${each.name}`, this.point(each.place));
    for (const each of state.hosts) {
      this.points.set(`host ${each.switch} ${each.name}`, this.point(each.place));
    }
    this.switches = state.switches;
  }

  point(place) {
    return {
      x: (place.x - this.left) * UNIT + MARGIN + SWITCH.width / 2,
      y: (this.top - place.row) * ROW + MARGIN + SWITCH.height / 2,
      row: place.row,
    };
  }

  ends(link) {
    const a = this.points.get(link.is_host ? `host ${link.b} ${link.a}` : `switch ${link.a}`);
    return [a, this.points.get(`switch ${link.b}`)];
  }

  // An arc passes above the switches between two of one row, a straight line joins others.
  path(link, offset) {
    const [a, b] = this.ends(link);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const dx = (-(b.y - a.y) / length) * offset;
    const dy = ((b.x - a.x) / length) * offset;
    const start = `M${a.x + dx} ${a.y + dy}`;
    const end = `${b.x + dx} ${b.y + dy}`;
    if (!this.isHidden(a, b)) return `${start} L${end}`;
    const rise = ROW * 0.9;
    return `${start} Q${(a.x + b.x) / 2 + dx} ${a.y - rise + dy} ${end}`;
  }

  isHidden(a, b) {
    const [left, right] = [Math.min(a.x, b.x), Math.max(a.x, b.x)];
    return a.row === b.row && this.switches.some((each) => {
      const point = this.points.get(`switch ${each.name}`);
      return point.row === a.row && point.x > left && point.x < right;
    });
  }
}

// Links between the same two switches lie side by side.
function parallelOffsets(links) {
  const groups = new Map();
  for (const link of links) {
    const ends = link.is_host ? link.key : [link.a, link.b].sort().join(" ");
    groups.set(ends, [...(groups.get(ends) ?? []), link]);
  }
  const offsets = new Map();
  for (const group of groups.values()) {
    group.forEach((link, i) => {
      const sign = link.a <= link.b ? 1 : -1;
      offsets.set(link, sign * (i - (group.length - 1) / 2) * 16);
    });
  }
  return offsets;
}

export function isOut(link) {
  return link.state === "down" || link.state === "dead";
}

function linkClass(link) {
  if (isOut(link)) return "link bad";
  return (share(link) ?? 0) >= BUSY ? "link busy" : "link";
}

function linkTitle(link) {
  const stated = link.rate_bits_per_s === null ? "" : ` of ${rate(link.rate_bits_per_s)}`;
  return `${link.name} ${link.state}\n${link.a} to ${link.b}: ${rate(link.forward_bits_per_s)}${stated}\n`
    + `${link.b} to ${link.a}: ${rate(link.backward_bits_per_s)}${stated}`;
}

function drawLinks(drawing, links, offsets) {
  return links.map((link) => element(
    "path",
    { class: linkClass(link), d: drawing.path(link, offsets.get(link)), "data-link": link.key },
    title(linkTitle(link)),
  ));
}

function drawTrees(drawing, links, offsets, jobs) {
  const byKey = new Map();
  for (const link of links) byKey.set(link.key, [...(byKey.get(link.key) ?? []), link]);
  const onLink = new Map();
  for (const job of jobs) {
    for (const tree of job.trees) {
      for (const key of tree.links) onLink.set(key, [...(onLink.get(key) ?? []), { job, tree }]);
    }
  }
  const drawn = [];
  for (const [key, branches] of onLink) {
    for (const link of byKey.get(key) ?? []) {
      branches.forEach(({ job, tree }, i) => {
        const offset = offsets.get(link) + (i - (branches.length - 1) / 2) * BRANCH_GAP;
        drawn.push(element(
          "path",
          {
            class: "branch", d: drawing.path(link, offset), stroke: job.colour,
            "data-job": job.name, "data-tree": tree.tree_id, "data-link": key,
          },
          title(`${job.name}, tree ${tree.tree_id} with root ${tree.root}\n${linkTitle(link)}`),
        ));
      });
    }
  }
  return drawn;
}

function box(point, size, className) {
  return element("rect", {
    class: className, x: point.x - size.width / 2, y: point.y - size.height / 2,
    width: size.width, height: size.height, rx: 5,
  });
}

function drawRoots(point, name, jobs) {
  const roots = jobs.flatMap((job) => job.trees.filter((tree) => tree.root === name).map(() => job));
  return roots.slice(0, 5).map((job, i) => {
    const size = { width: SWITCH.width + 7 + 6 * i, height: SWITCH.height + 7 + 6 * i };
    const ring = box(point, size, "root");
    ring.setAttribute("stroke", job.colour);
    ring.setAttribute("data-root", job.name);
    return ring;
  });
}

function drawSwitch(drawing, each, jobs) {
  const point = drawing.points.get(`switch ${each.name}`);
  const isReady = each.state === "ready";
  const below = isReady ? `${each.used_slots}/${each.slots} slots` : each.state;
  return element(
    "g", { "data-switch": each.name },
    ...drawRoots(point, each.name, jobs),
    box(point, SWITCH, isReady ? "node" : "node bad"),
    element("text", { x: point.x, y: point.y - 1 }, cut(each.name, 12)),
    element("text", { class: "small", x: point.x, y: point.y + 11 }, cut(below, 18)),
    title(`switch ${each.name}: ${each.state}\n${each.used_slots} of ${each.slots} slots used\n${each.error}`),
  );
}

function drawHost(drawing, each) {
  const point = drawing.points.get(`host ${each.switch} ${each.name}`);
  const workers = each.workers.length === 1 ? each.workers[0] : `${each.workers.length} workers`;
  return element(
    "g", { "data-host": each.name },
    box(point, HOST, "node"),
    element("text", { x: point.x, y: point.y + 4 }, cut(each.name, 11)),
    element("text", { class: "small", x: point.x, y: point.y + 24 },
      each.workers.length === 0 ? "" : cut(workers, 15)),
    title(`${each.name}, ${each.address}\n${each.workers.join("\n")}`),
  );
}

// `jobs` are those whose trees are shown, each with its colour.
export function drawFabric(svg, state, jobs) {
  const drawing = new Drawing(state);
  const offsets = parallelOffsets(state.links);
  svg.setAttribute("viewBox", `0 0 ${drawing.width} ${drawing.height}`);
  svg.style.maxWidth = `${drawing.width}px`;
  svg.style.minWidth = `${LEAST_SCALE * drawing.width}px`;
  svg.replaceChildren(
    ...drawLinks(drawing, state.links.filter((link) => !isOut(link)), offsets),
    ...drawTrees(drawing, state.links, offsets, jobs),
    ...drawLinks(drawing, state.links.filter(isOut), offsets), // else the trees would cover them
    ...state.switches.map((each) => drawSwitch(drawing, each, jobs)),
    ...state.hosts.map((each) => drawHost(drawing, each)),
  );
}
