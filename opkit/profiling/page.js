// The timeline of the page: one row a core and pipe; the wheel zooms, dragging pans, hovering names an instruction.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("opkit-timeline-data").textContent);
  const canvas = document.getElementById("opkit-timeline");
  const axis = document.getElementById("opkit-axis");
  const tip = document.getElementById("opkit-tip");
  const shownCores = document.getElementById("opkit-cores");
  const ROW = 14, GAP = 8, LABEL = 150, FEW = 8;
  let rows = [], view = [0, data.end], drag = null;
  // The page's colours, light or dark.
  const colour = (name) => getComputedStyle(document.querySelector(".opkit")).getPropertyValue(name).trim();

  function layOut() {
    const limit = shownCores.value === "all" ? data.cores.length : Math.min(FEW, data.cores.length);
    rows = [];
    let top = 4;
    for (const row of data.rows) {
      if (row.core >= limit) continue;
      if (rows.length && rows[rows.length - 1].core !== row.core) top += GAP;
      rows.push({...row, top});
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
    drawAxis(width);
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
    const length = Math.min(data.end, Math.max(20, span() * factor));
    const share = (centre - view[0]) / span();
    const start = Math.min(Math.max(0, centre - share * length), data.end - length);
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
      const start = Math.min(Math.max(0, drag.view[0] + moved), data.end - length);
      view = [start, start + length];
      draw();
      return;
    }
    const found = eventAt(event.offsetX, event.offsetY);
    tip.style.display = found ? "block" : "none";
    if (!found) return;
    const [start, end, line, bytes] = found.event;
    const where = data.lines[line];
    tip.textContent = `${where.name}  ${where.where}\n${(start / data.mhz).toFixed(3)} us + ` +
      `${((end - start) / data.mhz).toFixed(3)} us, ${Math.round(end - start)} cycles` +
      (bytes ? `\n${bytes} bytes` : "");
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - 320)}px`;
    tip.style.top = `${event.clientY + 12}px`;
  });
  const middle = () => (view[0] + view[1]) / 2;
  document.getElementById("opkit-in").addEventListener("click", () => zoom(0.5, middle()));
  document.getElementById("opkit-out").addEventListener("click", () => zoom(2, middle()));
  document.getElementById("opkit-fit").addEventListener("click", () => { view = [0, data.end]; draw(); });
  shownCores.addEventListener("change", layOut);
  window.addEventListener("resize", layOut);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // What is in view, in cycles: for tests and for the curious.
  window.opkitTimeline = {view: () => [...view], rows: () => rows.length, eventAt};
  layOut();
})();
