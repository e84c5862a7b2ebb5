// The timeline of the page: one row a core and pipe; the wheel zooms, dragging pans, hovering names an instruction.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("opkit-timeline-data").textContent);
  const canvas = document.getElementById("opkit-timeline");
  const axis = document.getElementById("opkit-axis");
  const tip = document.getElementById("opkit-tip");
  const shownCores = document.getElementById("opkit-cores");
  const ROW = 14, GAP = 8, LABEL = 150, FEW = 8;
  // The launch stands before the first instruction, at cycles below 0.
  const FIRST = -(data.launch || 0), LENGTH = data.end - FIRST, MOST_ARROWS = 400;
  let arrowCount = 0, rows = [], view = [FIRST, data.end], drag = null;
  // The page's colours, light or dark.
  const colour = (name) => getComputedStyle(document.querySelector(".opkit")).getPropertyValue(name).trim();

  function layOut() {
    const limit = shownCores.value === "all" ? data.cores.length : Math.min(FEW, data.cores.length);
    rows = [];
    let top = 4;
    for (const row of data.rows) {
      if (row.core >= limit) continue;
      if (rows.length && rows[rows.length - 1].core !== row.core) top += GAP;
      rows.push({waits: [], spans: [], ...row, top});
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

  const span = () => view[1] - view[0];
  const plotWidth = () => canvas.clientWidth - LABEL;
  const toPixel = (cycle) => LABEL + (cycle - view[0]) / span() * plotWidth();
  const toCycle = (pixel) => view[0] + (pixel - LABEL) / plotWidth() * span();

  // The first event of a row that ends behind a cycle; events of a row begin in order.
  function firstAt(events, cycle) {
    let low = 0, high = events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (events[middle][1] < cycle) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 2);
  }

  function draw() {
    const pen = canvas.getContext("2d");
    const width = canvas.clientWidth;
    pen.clearRect(0, 0, width, canvas.clientHeight);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (const row of rows) {
      pen.fillStyle = colour("--quiet");
      pen.fillText(`${data.cores[row.core]}  ${row.pipe}`, 4, row.top + ROW / 2);
      pen.fillStyle = colour("--stripe");
      pen.fillRect(LABEL, row.top, width - LABEL, ROW - 2);
      box(pen, row, FIRST, 0, data.launchColour, 0.35);
      for (const [start, end] of visible(row.spans)) box(pen, row, start, end, data.colours.S, 0.45);
      for (const [start, end] of visible(row.waits)) hatch(pen, row, start, end);
      let painted = -1;
      for (let i = firstAt(row.events, view[0]); i < row.events.length; ++i) {
        const [start, end, line] = row.events[i];
        if (start > view[1]) break;
        const left = Math.max(LABEL, toPixel(start));
        const right = Math.min(width, Math.max(toPixel(end), left + 0.6));
        if (right <= painted || right < LABEL) continue;
        painted = right;
        pen.fillStyle = data.colours[row.pipe];
        pen.globalAlpha = line % 2 ? 0.72 : 1;
        pen.fillRect(left, row.top, Math.max(0.6, right - left - (right - left > 3 ? 1 : 0)), ROW - 2);
        pen.globalAlpha = 1;
        const name = data.lines[line].name;
        if (right - left > 7 * name.length) {
          pen.fillStyle = "#fff";
          pen.fillText(name, left + 3, row.top + ROW / 2 - 1);
        }
      }
    }
    drawArrows(pen);
    drawAxis(width);
  }

  // What of a row's stretches is in view, without those that nobody can see.
  function visible(stretches) {
    const least = 0.4 * span() / plotWidth(), found = [];
    for (let i = firstAt(stretches, view[0]); i < stretches.length && stretches[i][0] <= view[1]; ++i) {
      if (stretches[i][1] - stretches[i][0] >= least && stretches[i][1] >= view[0]) found.push(stretches[i]);
    }
    return found;
  }

  function box(pen, row, start, end, fill, alpha) {
    const left = Math.max(LABEL, toPixel(start)), right = Math.min(canvas.clientWidth, toPixel(end));
    if (right <= left) return null;
    pen.globalAlpha = alpha;
    pen.fillStyle = fill;
    pen.fillRect(left, row.top, right - left, ROW - 2);
    pen.globalAlpha = 1;
    return [left, right];
  }

  function hatch(pen, row, start, end) {
    const place = box(pen, row, start, end, colour("--track"), 1);
    if (!place) return;
    pen.save();
    pen.beginPath();
    pen.rect(place[0], row.top, place[1] - place[0], ROW - 2);
    pen.clip();
    pen.strokeStyle = colour("--quiet");
    pen.lineWidth = 0.6;
    pen.beginPath();
    for (let x = place[0] - ROW; x < place[1]; x += 6) {
      pen.moveTo(x, row.top + ROW);
      pen.lineTo(x + ROW, row.top);
    }
    pen.stroke();
    pen.restore();
  }

  // From the pipe whose work ends a wait to the pipe that goes on; only where single ones can be told apart.
  function drawArrows(pen) {
    const arrows = [];
    for (const row of rows) {
      for (const [, end, , cause] of visible(row.waits)) {
        const from = rows.find((other) => other.core === row.core && other.pipe === cause);
        if (from && from !== row && end >= view[0] && end <= view[1]) arrows.push([toPixel(end), from, row]);
      }
      if (arrows.length > MOST_ARROWS) break;
    }
    arrowCount = arrows.length > MOST_ARROWS ? 0 : arrows.length;
    if (!arrowCount) return;
    pen.strokeStyle = pen.fillStyle = colour("--ink");
    pen.lineWidth = 0.8;
    for (const [x, from, to] of arrows) {
      const down = to.top > from.top, tail = from.top + (down ? ROW - 2 : 0), tip = to.top + (down ? 0 : ROW - 2);
      pen.beginPath();
      pen.moveTo(x, tail);
      pen.lineTo(x, tip);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x, tip);
      pen.lineTo(x - 2.5, tip + (down ? -5 : 5));
      pen.lineTo(x + 2.5, tip + (down ? -5 : 5));
      pen.fill();
    }
  }

  function drawAxis(width) {
    const pen = axis.getContext("2d");
    pen.clearRect(0, 0, width, 22);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colour("--quiet");
    const total = span() / data.mhz;
    let step = Math.pow(10, Math.floor(Math.log10(total / 4)));
    for (const factor of [5, 2]) if (total / (step * factor) >= 4) { step *= factor; break; }
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (let at = Math.ceil(view[0] / data.mhz / step) * step; at * data.mhz <= view[1]; at += step) {
      const x = toPixel(at * data.mhz);
      pen.fillRect(x, 16, 1, 6);
      const label = `${at.toFixed(digits)} us`;
      if (x + 3 + pen.measureText(label).width < width) pen.fillText(label, x + 3, 12);
    }
  }

  function zoom(factor, centre) {
    const length = Math.min(LENGTH, Math.max(20, span() * factor));
    const share = (centre - view[0]) / span();
    const start = Math.min(Math.max(FIRST, centre - share * length), data.end - length);
    view = [start, start + length];
    draw();
  }

  function eventAt(x, y) {
    const row = rows.find((item) => y >= item.top && y < item.top + ROW);
    if (!row || x < LABEL) return null;
    const slack = 1.5 * span() / plotWidth(), cycle = toCycle(x);
    for (let i = firstAt(row.events, cycle - slack); i < row.events.length; ++i) {
      const event = row.events[i];
      if (event[0] > cycle + slack) break;
      if (event[1] >= cycle - slack) return {row, event};
    }
    return null;
  }

  const time = (cycle) => (cycle / data.mhz).toFixed(3);
  const REASONS = {
    data: (cause) => `waits for ${cause}, which makes what it reads`,
    buffer: (cause) => `waits for ${cause}, which still has its buffer`,
    barrier: () => "waits at a barrier",
    cores: () => "waits for other cores",
  };

  // What stands at a place: an instruction, a wait with its reason, the launch, or nothing.
  function textAt(x, y) {
    const found = eventAt(x, y);
    if (found) {
      const [start, end, line, bytes] = found.event, where = data.lines[line];
      return `${where.name}  ${where.where}\n${time(start)} us + ${time(end - start)} us, ` +
        `${Math.round(end - start)} cycles` + (bytes ? `\n${bytes} bytes` : "");
    }
    const row = rows.find((item) => y >= item.top && y < item.top + ROW);
    if (!row || x < LABEL) return "";
    const cycle = toCycle(x);
    if (cycle < 0) return `launch: ${time(data.launch)} us until the cores begin`;
    const inside = ([start, end]) => start <= cycle && cycle <= end;
    const wait = visible(row.waits).find(inside);
    if (wait) {
      const [start, end, reason, cause] = wait;
      return `${row.pipe} ${REASONS[reason](cause)}\n${time(start)} us + ${time(end - start)} us, ` +
        `${Math.round(end - start)} cycles`;
    }
    return visible(row.spans).some(inside) ? "S issues instructions" : "";
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, toCycle(Math.max(LABEL, event.offsetX)));
  }, {passive: false});
  canvas.addEventListener("mousedown", (event) => { drag = {x: event.offsetX, view: [...view]}; });
  window.addEventListener("mouseup", () => { drag = null; });
  canvas.addEventListener("mouseleave", () => { tip.style.display = "none"; });
  canvas.addEventListener("mousemove", (event) => {
    if (drag) {
      const length = drag.view[1] - drag.view[0];
      const moved = (drag.x - event.offsetX) / plotWidth() * length;
      const start = Math.min(Math.max(FIRST, drag.view[0] + moved), data.end - length);
      view = [start, start + length];
      draw();
      return;
    }
    const text = textAt(event.offsetX, event.offsetY);
    tip.style.display = text ? "block" : "none";
    if (!text) return;
    tip.textContent = text;
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 320)}px`;
    tip.style.top = `${event.clientY + 12}px`;
  });
  const middle = () => (view[0] + view[1]) / 2;
  document.getElementById("opkit-in").addEventListener("click", () => zoom(0.5, middle()));
  document.getElementById("opkit-out").addEventListener("click", () => zoom(2, middle()));
  document.getElementById("opkit-fit").addEventListener("click", () => { view = [FIRST, data.end]; draw(); });
  shownCores.addEventListener("change", layOut);
  window.addEventListener("resize", layOut);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // What is in view, in cycles: for tests and for the curious.
  window.opkitTimeline = {view: () => [...view], rows: () => rows.length, arrows: () => arrowCount, textAt};
  layOut();
})();
