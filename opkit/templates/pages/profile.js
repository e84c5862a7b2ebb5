// The profile's page: launches, source lines and the timeline that belong together, and rates of memory over the time.
"use strict";
(() => {
  const launches = JSON.parse(document.getElementById("opkit-launches").textContent);
  const chooser = document.getElementById("opkit-launch"), home = document.getElementById("opkit-memory");
  const parts = [...document.querySelectorAll(".launch")];
  let now = Math.max(0, parts.findIndex((part) => !part.hidden)), plot = null, isFollowing = false;
  if (parts.length) now = Number(parts[now].dataset.launch);

  const ofLaunch = (selector) => parts.filter((part) => Number(part.dataset.launch) === now)
    .flatMap((part) => [...part.querySelectorAll(selector)]);

  function choose(row, {isFar = false} = {}) {
    for (const old of document.querySelectorAll("tr.chosen")) old.classList.remove("chosen");
    if (!row) return;
    row.classList.add("chosen");
    const box = row.closest(".code");
    if (isFar) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  }

  for (const part of parts) {
    part.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-lines]");
      if (!row || !event.target.closest("button")) return;
      choose(row);
      opkitTimeline.mark(row.dataset.lines.split(",").map(Number));
      document.querySelector(".opkit-lanes").scrollIntoView({block: "nearest"});
    });
  }
  opkitTimeline.on("choose", (line) => {
    choose(ofLaunch("tr[data-lines]").find((row) => row.dataset.lines.split(",").includes(String(line))), {isFar: true});
  });

  // The chart stands below the timeline and shows the same stretch of time.
  const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
  function draw() {
    plot?.destroy();
    plot = null;
    const {memory} = launches[now], isStill = !memory;
    document.getElementById("opkit-still").hidden = !isStill;
    if (isStill) return;
    const inks = [colour("--bad"), colour("--good"), colour("--mark")], ink = colour("--ink"), edge = colour("--edge");
    const axis = {stroke: ink, grid: {stroke: edge, width: 1}, ticks: {stroke: edge, width: 1}};
    const [from, to] = opkitTimeline.view().map((cycle) => cycle / launches[now].mhz);
    plot = new uPlot({
      width: Math.max(200, home.clientWidth), height: 180, padding: [8, 0, 0, 0],
      cursor: {drag: {x: true, y: false}},
      scales: {x: {time: false, range: (_, low, high) => [low, high]}, y: {range: (_, low, high) => [0, high || 1]}},
      axes: [
        {...axis, values: (_, ticks) => ticks.map((tick) => `${tick} us`), space: 80},
        {...axis, label: "GB/s", size: opkitTimeline.left() - 30, labelSize: 30},
      ],
      series: [
        {label: "us"},
        ...memory.series.map(({name}, at) => ({label: `${name}, GB/s`, stroke: inks[at], width: 1.5, paths: uPlot.paths.stepped({align: 1})})),
      ],
      hooks: {
        setScale: [(chart, key) => {
          if (key !== "x" || isFollowing || !plot) return;
          const {min, max} = chart.scales.x, {mhz} = launches[now];
          opkitTimeline.look(min * mhz, (max - min) * mhz);
        }],
      },
    }, [memory.us, ...memory.series.map(({rates}) => rates)], home);
    follow([from * launches[now].mhz, to * launches[now].mhz]);
  }
  function follow([from, to]) {
    if (!plot) return;
    isFollowing = true;
    plot.batch(() => plot.setScale("x", {min: from / launches[now].mhz, max: to / launches[now].mhz}));
    isFollowing = false;
  }

  function show(at) {
    now = at;
    for (const part of parts) part.hidden = Number(part.dataset.launch) !== now;
    // Each file begins at its most expensive line.
    for (const box of ofLaunch(".code")) {
      const rows = [...box.querySelectorAll("tr[data-lines]")], share = (row) => Number(row.dataset.share);
      const hottest = rows.reduce((most, row) => share(row) > share(most) ? row : most);
      box.scrollTop = hottest.offsetTop - box.clientHeight / 3;
    }
    opkitTimeline.show(launches[now]);
    draw();
  }
  opkitTimeline.on("view", follow);
  chooser?.addEventListener("change", () => show(Number(chooser.value)));
  let wide = 0;
  new ResizeObserver(() => {
    if (home.clientWidth === wide) return;
    wide = home.clientWidth;
    draw();
  }).observe(home);
  window.addEventListener("opkit-theme", draw);
  show(now);
})();
