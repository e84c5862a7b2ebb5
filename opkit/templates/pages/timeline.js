// The timeline of a launch: a row for each core and pipe, with what it did, waited for, and who ended the wait.
"use strict";
(() => {
  const byId = (id) => document.getElementById(`opkit-${id}`);
  const canvas = byId("timeline"), axis = byId("axis"), tip = byId("tip"), told = byId("told");
  const shownCores = byId("cores"), find = byId("find"), scroller = canvas.parentElement;
  const ROW = 14, GAP = 8, FEW = 8, MOST_ARROWS = 400, TENTHS = 10;
  const settings = JSON.parse(byId("timeline-settings").textContent);
  const {colours, pipes, waits: waitColours, launchColour} = settings;
  const REASONS = {
    data: (cause) => `waits for ${cause}, which makes what it reads`,
    buffer: (cause) => `waits for ${cause}, which still has its buffer`,
    barrier: () => "waits at a barrier",
    cores: (cause, core) => core >= 0 ? `waits for ${data.cores[core]}` : "waits for other cores",
  };
  const reasons = Object.keys(REASONS);

  // What is drawn. The launch stands before the first instruction, at cycles below 0.
  let data, first, length, rows = [], view = [0, 1], arrowCount = 0;
  // What a user has asked for: rows that match a search, the chosen instruction, lines marked from outside, a stretch.
  let matches = null, matchAt = -1, chosen = null, marked = new Set(), measured = null, isMeasuring = false;
  const listeners = {choose: [], view: []};
  const tell = (kind, value) => { for (const listener of listeners[kind]) listener(value); };

  // The page's colours, light or dark.
  const colour = (name) => getComputedStyle(canvas.closest(".opkit")).getPropertyValue(name).trim();
  const label = () => canvas.clientWidth < 600 ? 92 : 150;
  const span = () => view[1] - view[0];
  const plotWidth = () => canvas.clientWidth - label();
  const toPixel = (cycle) => label() + (cycle - view[0]) / span() * plotWidth();
  const toCycle = (pixel) => view[0] + (pixel - label()) / plotWidth() * span();
  const middle = () => (view[0] + view[1]) / 2;

  // Columns of numbers to objects' arrays: starts are differences, times tenths of a cycle.
  function decode(columns) {
    const count = columns.start.length, start = new Float64Array(count), end = new Float64Array(count);
    // The latest end so far: instructions of a row begin in order, but may end in another.
    const reach = new Float64Array(count);
    let at = 0;
    for (let i = 0; i < count; ++i) {
      at += columns.start[i];
      start[i] = at / TENTHS;
      end[i] = (at + columns.length[i]) / TENTHS;
      reach[i] = Math.max(end[i], i ? reach[i - 1] : -Infinity);
    }
    return {...columns, n: count, start, end, reach};
  }

  function show(launch) {
    data = launch;
    first = -(data.launch || 0);
    length = data.end - first;
    data.decoded ??= data.rows.map((row) => ({
      core: row.core, pipe: row.pipe,
      events: decode(row.events), waits: decode(row.waits), spans: decode(row.spans),
    }));
    view = [first, data.end];
    chosen = measured = null;
    marked = new Set();
    told.textContent = data.merged ? "There are more instructions than a page can hold: neighbours are drawn as one." : "";
    search();
    layOut();
  }

  function coresShown() {
    const all = data.cores.map((_, core) => core);
    if (shownCores.value === "all") return new Set(all);
    if (shownCores.value === "few") return new Set(all.slice(0, FEW));
    return new Set(all.sort((a, b) => data.cycles[b] - data.cycles[a]).slice(0, FEW));
  }

  function layOut() {
    const cores = coresShown();
    rows = [];
    let top = 4;
    for (const row of data.decoded) {
      if (!cores.has(row.core)) continue;
      if (rows.length && rows[rows.length - 1].core !== row.core) top += GAP;
      row.top = top;
      rows.push(row);
      top += ROW;
    }
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.style.height = `${top + 4}px`;
    for (const [target, height] of [[canvas, top + 4], [axis, 22]]) {
      target.width = width * ratio;
      target.height = height * ratio;
      target.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    draw();
  }

  // The first of a row that ends behind a cycle.
  function firstAt(items, cycle) {
    let low = 0, high = items.n;
    while (low < high) {
      const at = (low + high) >> 1;
      if (items.reach[at] < cycle) low = at + 1; else high = at;
    }
    return low;
  }

  function draw() {
    const pen = canvas.getContext("2d"), width = canvas.clientWidth, left = label();
    const [quiet, stripe, ink, mark] = ["--quiet", "--stripe", "--ink", "--mark"].map(colour);
    pen.clearRect(0, 0, width, canvas.clientHeight);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const isPicking = matches || marked.size;
    for (const row of rows) {
      pen.fillStyle = quiet;
      const name = data.cores[row.core];
      pen.fillText(`${left < 100 ? name.replace("block ", "") : name}  ${row.pipe}`, 4, row.top + ROW / 2);
      pen.fillStyle = stripe;
      pen.fillRect(left, row.top, width - left, ROW - 2);
      box(pen, row, first, 0, launchColour, 0.35);
      for (const i of visible(row.spans)) box(pen, row, row.spans.start[i], row.spans.end[i], colours.S, 0.45);
      for (const i of visible(row.waits)) hatch(pen, row, i);
      drawEvents(pen, row, width, left, isPicking, ink);
    }
    drawArrows(pen, ink);
    if (chosen) outline(pen, chosen.row, chosen.row.events.start[chosen.i], chosen.row.events.end[chosen.i], ink);
    if (measured) {
      const [a, b] = [...measured].sort((x, y) => x - y).map(toPixel);
      pen.fillStyle = mark;
      pen.globalAlpha = 0.18;
      pen.fillRect(a, 0, b - a, canvas.clientHeight);
      pen.globalAlpha = 1;
      for (const x of [a, b]) pen.fillRect(x, 0, 1, canvas.clientHeight);
    }
    drawAxis(width, quiet);
    tell("view", view);
  }

  function drawEvents(pen, row, width, left, isPicking, ink) {
    const {events} = row;
    let painted = -1;
    for (let i = firstAt(events, view[0]); i < events.n && events.start[i] <= view[1]; ++i) {
      const line = events.line[i], isPicked = isPicking && (marked.has(line) || matches?.lines.has(line));
      const from = Math.max(left, toPixel(events.start[i]));
      const to = Math.min(width, Math.max(toPixel(events.end[i]), from + (isPicked ? 2 : 0.6)));
      if ((to <= painted && !isPicked) || to < left) continue;
      painted = Math.max(to, painted);
      pen.fillStyle = colours[row.pipe];
      pen.globalAlpha = isPicking && !isPicked ? 0.18 : line % 2 ? 0.72 : 1;
      const gap = to - from > 3 ? 1 : 0;
      pen.fillRect(from, row.top, Math.max(0.6, to - from - gap), ROW - 2);
      // Of neighbours that stand for one, only the busy part is full.
      if (events.count && events.count[i] > 1) {
        const busy = events.busy[i] / TENTHS / Math.max(1e-9, events.end[i] - events.start[i]);
        pen.globalAlpha = 1;
        pen.fillStyle = colour("--track");
        pen.fillRect(from, row.top, to - from - gap, (ROW - 2) * (1 - Math.min(1, busy)));
      }
      pen.globalAlpha = 1;
      if (isPicked) {
        pen.fillStyle = ink;
        pen.fillRect(from, row.top + ROW - 3, Math.max(1, to - from - gap), 1);
      }
      const name = data.lines[line].name;
      if (to - from > 7 * name.length) {
        pen.fillStyle = "#fff";
        pen.fillText(name, from + 3, row.top + ROW / 2 - 1);
      }
    }
  }

  // What of a row's stretches is in view, without those that nobody can see.
  function visible(items) {
    const least = 0.4 * span() / plotWidth(), found = [];
    for (let i = firstAt(items, view[0]); i < items.n && items.start[i] <= view[1]; ++i) {
      if (items.end[i] - items.start[i] >= least && items.end[i] >= view[0]) found.push(i);
    }
    return found;
  }

  function box(pen, row, start, end, fill, alpha) {
    const left = Math.max(label(), toPixel(start)), right = Math.min(canvas.clientWidth, toPixel(end));
    if (right <= left) return null;
    pen.globalAlpha = alpha;
    pen.fillStyle = fill;
    pen.fillRect(left, row.top, right - left, ROW - 2);
    pen.globalAlpha = 1;
    return [left, right];
  }

  function outline(pen, row, start, end, ink) {
    const left = Math.max(label(), toPixel(start)), right = Math.min(canvas.clientWidth, Math.max(toPixel(end), left + 2));
    if (right < left) return;
    pen.strokeStyle = ink;
    pen.lineWidth = 2;
    pen.strokeRect(left - 1, row.top - 1, right - left + 2, ROW);
  }

  function hatch(pen, row, i) {
    const {waits} = row, place = box(pen, row, waits.start[i], waits.end[i], colour("--track"), 1);
    if (!place) return;
    pen.save();
    pen.beginPath();
    pen.rect(place[0], row.top, place[1] - place[0], ROW - 2);
    pen.clip();
    pen.strokeStyle = waitColours[reasons[waits.reason[i]]];
    pen.lineWidth = marked.has(waits.line[i]) ? 2.5 : 1;
    pen.beginPath();
    for (let x = place[0] - ROW; x < place[1]; x += 6) {
      pen.moveTo(x, row.top + ROW);
      pen.lineTo(x + ROW, row.top);
    }
    pen.stroke();
    pen.restore();
  }

  // From the pipe, or the core, that ends a wait to the pipe that goes on; only where single ones can be told apart.
  function drawArrows(pen, ink) {
    const arrows = [], place = new Map(), firsts = new Map();
    for (const row of rows) {
      place.set(`${row.core} ${row.pipe}`, row);
      if (!firsts.has(row.core)) firsts.set(row.core, row);
    }
    for (const row of rows) {
      for (const i of visible(row.waits)) {
        const {waits} = row, end = waits.end[i], core = waits.core ? waits.core[i] : -1;
        const other = core >= 0 && core !== row.core;
        const from = other ? place.get(`${core} ${row.pipe}`) ?? firsts.get(core) : place.get(`${row.core} ${pipes[waits.cause[i]]}`);
        if (from && from !== row && end >= view[0] && end <= view[1]) arrows.push([toPixel(end), from, row]);
      }
      if (arrows.length > MOST_ARROWS) break;
    }
    arrowCount = arrows.length > MOST_ARROWS ? 0 : arrows.length;
    if (!arrowCount) return;
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 0.8;
    for (const [x, from, to] of arrows) {
      const down = to.top > from.top, tail = from.top + (down ? ROW - 2 : 0), head = to.top + (down ? 0 : ROW - 2);
      pen.beginPath();
      pen.moveTo(x, tail);
      pen.lineTo(x, head);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x, head);
      pen.lineTo(x - 2.5, head + (down ? -5 : 5));
      pen.lineTo(x + 2.5, head + (down ? -5 : 5));
      pen.fill();
    }
  }

  function drawAxis(width, quiet) {
    const pen = axis.getContext("2d");
    pen.clearRect(0, 0, width, 22);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = quiet;
    const total = span() / data.mhz, most = Math.max(2, Math.floor(plotWidth() / 120));
    let step = Math.pow(10, Math.ceil(Math.log10(total / most)));
    for (const part of [5, 2]) if (total / (step / part) <= most) { step /= part; break; }
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let at = Math.ceil(view[0] / data.mhz / step) * step; at * data.mhz <= view[1]; at += step) {
      const x = toPixel(at * data.mhz);
      pen.fillRect(x, 16, 1, 6);
      const text = `${at.toFixed(digits)} us`;
      if (x + 3 + pen.measureText(text).width < width) pen.fillText(text, x + 3, 12);
    }
  }

  function look(start, size) {
    size = Math.min(length, Math.max(20, size));
    start = Math.min(Math.max(first, start), data.end - size);
    view = [start, start + size];
    draw();
  }
  const zoom = (factor, centre) => {
    const size = Math.min(length, Math.max(20, span() * factor));
    look(centre - (centre - view[0]) / span() * size, size);
  };
  const pan = (share) => look(view[0] + share * span(), span());
  const all = () => look(first, length);

  const rowAt = (y) => rows.find((item) => y >= item.top && y < item.top + ROW);
  function eventAt(x, y) {
    const row = rowAt(y);
    if (!row || x < label()) return null;
    const slack = 1.5 * span() / plotWidth(), cycle = toCycle(x), {events} = row;
    let found = null;
    for (let i = firstAt(events, cycle - slack); i < events.n && events.start[i] <= cycle + slack; ++i) {
      if (events.end[i] >= cycle - slack) found = {row, i};
    }
    return found;
  }

  const time = (cycles) => (cycles / data.mhz).toFixed(3);
  const stretch = (start, end) => `${time(start)} us + ${time(end - start)} us, ${Math.round(end - start)} cycles`;
  function eventText({row: {events, pipe}, i}) {
    const {name, where} = data.lines[events.line[i]], count = events.count ? events.count[i] : 1;
    const start = events.start[i], end = events.end[i], size = events.bytes ? events.bytes[i] : 0;
    const head = count > 1 ? `${count} instructions, the longest ${name}  ${where}` : `${name}  ${where}`;
    const busy = count > 1 ? `\n${pipe} busy ${Math.round(10 * events.busy[i] / (end - start))} % of it` : "";
    return `${head}\n${stretch(start, end)}${busy}` + (size ? `\n${size} bytes` : "");
  }

  // What stands at a place: an instruction, a wait with its reason, the launch, or nothing.
  function textAt(x, y) {
    const found = eventAt(x, y);
    if (found) return eventText(found);
    const row = rowAt(y);
    if (!row || x < label()) return "";
    const cycle = toCycle(x);
    if (cycle < 0) return `launch: ${time(data.launch)} us until the cores begin`;
    const inside = (items) => visible(items).find((i) => items.start[i] <= cycle && cycle <= items.end[i]);
    const wait = inside(row.waits);
    if (wait !== undefined) {
      const {waits} = row, core = waits.core ? waits.core[wait] : -1, line = data.lines[waits.line[wait]];
      const before = line ? `\nbefore ${line.name}  ${line.where}` : "";
      return `${row.pipe} ${REASONS[reasons[waits.reason[wait]]](pipes[waits.cause[wait]], core)}\n` +
        stretch(waits.start[wait], waits.end[wait]) + before;
    }
    return inside(row.spans) !== undefined ? "S issues instructions" : "";
  }

  // Chooses an instruction, brings it into view and says what it is.
  function choose(found, {isQuiet = false} = {}) {
    chosen = found;
    if (!found) { told.textContent = ""; draw(); return; }
    const {row, i} = found, {start, end} = row.events, size = end[i] - start[i];
    if (end[i] < view[0] || start[i] > view[1] || size < 3 * span() / plotWidth()) {
      const wide = Math.min(span(), Math.max(40 * size, 200));
      look(start[i] + size / 2 - wide / 2, wide);
    } else draw();
    if (row.top < scroller.scrollTop || row.top > scroller.scrollTop + scroller.clientHeight - ROW) {
      scroller.scrollTop = row.top - scroller.clientHeight / 2;
    }
    told.textContent = `${data.cores[row.core]} ${row.pipe}: ${eventText(found)}`;
    if (!isQuiet) tell("choose", row.events.line[i]);
  }

  function step(by) {
    if (!chosen) { const row = rows.find((item) => item.events.n); return row && choose({row, i: 0}); }
    const i = Math.min(chosen.row.events.n - 1, Math.max(0, chosen.i + by));
    return choose({row: chosen.row, i});
  }
  function stepRow(by) {
    if (!chosen) return step(0);
    const busy = rows.filter((row) => row.events.n), at = busy.indexOf(chosen.row) + by;
    if (at < 0 || at >= busy.length) return null;
    const row = busy[at], i = Math.min(row.events.n - 1, firstAt(row.events, chosen.row.events.start[chosen.i]));
    return choose({row, i});
  }

  // All words must stand in an instruction's name, place or pipe.
  function search() {
    const words = find.value.toLowerCase().split(" ").filter(Boolean);
    matches = null;
    matchAt = -1;
    if (words.length) {
      const lines = new Set(), places = [];
      data.lines.forEach((line, at) => {
        const text = `${line.name} ${line.where} ${line.pipe}`.toLowerCase();
        if (words.every((word) => text.includes(word))) lines.add(at);
      });
      for (const row of data.decoded) {
        for (let i = 0; i < row.events.n; ++i) if (lines.has(row.events.line[i])) places.push({row, i});
      }
      places.sort((a, b) => a.row.events.start[a.i] - b.row.events.start[b.i]);
      matches = {lines, places};
    }
    byId("found").textContent = matches ? `${matches.places.length} found` : "";
  }
  function nextMatch(by) {
    const places = matches?.places.filter(({row}) => rows.includes(row)) ?? [];
    if (!places.length) return;
    matchAt = (matchAt + by + places.length) % places.length;
    byId("found").textContent = `${matchAt + 1} of ${places.length}`;
    choose(places[matchAt]);
  }

  function tellMeasured() {
    const [a, b] = [...measured].sort((x, y) => x - y), by = new Map();
    for (const row of rows) {
      let until = a, busy = 0;
      const {events} = row;
      for (let i = firstAt(events, a); i < events.n && events.start[i] < b; ++i) {
        const from = Math.max(until, events.start[i]), to = Math.min(b, events.end[i]);
        if (to > from) { busy += to - from; until = to; }
      }
      const sum = by.get(row.pipe) ?? [0, 0];
      by.set(row.pipe, [sum[0] + busy, sum[1] + b - a]);
    }
    const shares = [...by].map(([pipe, [busy, whole]]) => `${pipe} ${Math.round(100 * busy / (whole || 1))} %`);
    told.textContent = `${stretch(a, b)}; busy, mean of the cores shown: ${shares.join(", ")}`;
  }
  function measure(isOn) {
    isMeasuring = isOn;
    byId("measure").setAttribute("aria-pressed", String(isOn));
    if (!isOn) measured = null;
    draw();
  }

  // Mouse, pen and fingers: one moves, two zoom; with Shift, or while measuring, one measures.
  const fingers = new Map();
  let drag = null;
  const place = (event) => {
    const at = canvas.getBoundingClientRect();
    return {x: event.clientX - at.left, y: event.clientY - at.top};
  };
  function grip() {
    const xs = [...fingers.values()].map((finger) => finger.x);
    const centre = xs.reduce((sum, x) => sum + x, 0) / xs.length;
    return {centre, apart: xs.length > 1 ? Math.max(10, Math.max(...xs) - Math.min(...xs)) : 0};
  }
  const hold = () => { drag = {...drag, ...grip(), view: [...view]}; };
  canvas.addEventListener("pointerdown", (event) => {
    const {x, y} = place(event);
    fingers.set(event.pointerId, {x, y});
    // One that has gone already cannot be followed outside.
    try { canvas.setPointerCapture(event.pointerId); } catch { /* it moves inside then */ }
    drag = {begin: {x, y}, isMeasure: (event.shiftKey || isMeasuring) && fingers.size === 1, hasMoved: false};
    hold();
    if (drag.isMeasure) measured = [toCycle(x), toCycle(x)];
  });
  canvas.addEventListener("pointermove", (event) => {
    const {x, y} = place(event);
    if (!fingers.has(event.pointerId)) { hover(event, x, y); return; }
    fingers.set(event.pointerId, {x, y});
    if (Math.abs(x - drag.begin.x) > 3 || fingers.size > 1) drag.hasMoved = true;
    if (!drag.hasMoved) return;
    if (drag.isMeasure) { measured = [measured[0], toCycle(x)]; tellMeasured(); draw(); return; }
    const {centre, apart} = grip(), held = drag.view[1] - drag.view[0];
    const size = Math.min(length, Math.max(20, apart && drag.apart ? held * drag.apart / apart : held));
    const cycle = drag.view[0] + (drag.centre - label()) / plotWidth() * held;
    look(cycle - (centre - label()) / plotWidth() * size, size);
  });
  const release = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && !drag.hasMoved) {
      if (drag.isMeasure) measured = null;
      const found = eventAt(drag.begin.x, drag.begin.y);
      choose(found);
      if (!found) told.textContent = textAt(drag.begin.x, drag.begin.y);
    }
    if (fingers.size) hold();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  function hover(event, x, y) {
    const text = event.pointerType === "touch" ? "" : textAt(x, y);
    tip.style.display = text ? "block" : "none";
    if (!text) return;
    tip.textContent = text;
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 12, window.innerWidth - 330))}px`;
    tip.style.top = `${event.clientY + 12}px`;
  }
  // Without Ctrl the wheel is the page's; sideways it moves.
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, toCycle(Math.max(label(), place(event).x)));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / plotWidth());
    else return;
    event.preventDefault();
  }, {passive: false});

  const ZOOM = 1.5, MOVE = 0.15;
  const KEYS = {
    w: () => zoom(1 / ZOOM, chosen ? Math.min(view[1], Math.max(view[0], chosen.row.events.start[chosen.i])) : middle()),
    s: () => zoom(ZOOM, middle()), a: () => pan(-MOVE), d: () => pan(MOVE),
    0: all, m: () => measure(!isMeasuring), "/": () => find.focus(),
    f: () => {
      if (!chosen) return;
      const {start, end} = chosen.row.events, size = end[chosen.i] - start[chosen.i];
      look(start[chosen.i] - size / 2, 2 * size);
    },
    n: () => nextMatch(1), N: () => nextMatch(-1),
    arrowleft: () => step(-1), arrowright: () => step(1), arrowup: () => stepRow(-1), arrowdown: () => stepRow(1),
    escape: () => { measure(false); marked = new Set(); choose(null); tell("choose", -1); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !canvas.isConnected) return;
    const {target} = event, isOurs = target === document.body || target === scroller || target.closest?.(".opkit-tools");
    if (!isOurs || ["INPUT", "SELECT"].includes(target.tagName)) {
      if (target === find && event.key === "Escape") { find.value = ""; search(); draw(); scroller.focus(); }
      if (target === find && event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
      return;
    }
    // Arrows belong to the page until the timeline has the focus.
    if (event.key.startsWith("Arrow") && target !== scroller) return;
    const action = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  });
  byId("in").addEventListener("click", () => zoom(0.5, middle()));
  byId("out").addEventListener("click", () => zoom(2, middle()));
  byId("fit").addEventListener("click", all);
  byId("measure").addEventListener("click", () => measure(!isMeasuring));
  byId("next").addEventListener("click", () => nextMatch(1));
  byId("previous").addEventListener("click", () => nextMatch(-1));
  find.addEventListener("input", () => { search(); draw(); });
  shownCores.addEventListener("change", layOut);
  const again = () => { if (canvas.isConnected) layOut(); };
  window.addEventListener("resize", again);
  window.addEventListener("opkit-theme", again);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);

  // For the rest of the page, for tests and for the curious; cycles.
  window.opkitTimeline = {
    show, look, textAt,
    view: () => [...view], rows: () => rows.length, arrows: () => arrowCount,
    chosen: () => chosen && eventText(chosen), left: label,
    on: (kind, listener) => listeners[kind].push(listener),
    // Marks lines, and chooses the longest of their instructions among the cores shown.
    mark: (lines) => {
      marked = new Set(lines);
      let longest = null;
      const size = ({row, i}) => row.events.end[i] - row.events.start[i];
      for (const row of rows) {
        for (let i = 0; i < row.events.n; ++i) {
          if (marked.has(row.events.line[i]) && (!longest || size({row, i}) > size(longest))) longest = {row, i};
        }
      }
      choose(longest, {isQuiet: true});
    },
  };
  const given = byId("timeline-data");
  if (given) show(JSON.parse(given.textContent));
})();
