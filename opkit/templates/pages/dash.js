// The dashboard: asks for the state once a second and draws the view that the address names. Text only ever becomes text.
"use strict";
(() => {
  const parts = JSON.parse(document.getElementById("opkit-dash-data").textContent);
  const content = document.getElementById("content"), nav = document.getElementById("nav");
  const live = document.getElementById("live"), pause = document.getElementById("pause");
  const drawing = document.getElementById("drawing"), charts = document.getElementById("charts"), bell = document.getElementById("alerts");
  const KEPT = 120, PERIOD_MS = 1000, HISTORY_MS = 5000, HOURS = {hour: 1, day: 24, week: 168, "30 days": 720};
  let state = null, drawn = "", paused = false;
  const past = new Map();

  // Elements as values; patch() changes the page to them and keeps focus and scroll where they are.
  const h = (tag, attributes, ...children) => ({tag, attributes: attributes || {}, children: children.flat(9).filter((c) => c !== null && c !== undefined && c !== "")});
  const SVG = new Set(["svg", "path", "line", "circle", "text", "title", "rect"]);
  function make(item) {
    if (typeof item !== "object") return document.createTextNode(String(item));
    const element = SVG.has(item.tag) ? document.createElementNS("http://www.w3.org/2000/svg", item.tag) : document.createElement(item.tag);
    for (const [name, value] of Object.entries(item.attributes)) element.setAttribute(name, value);
    for (const child of item.children) element.append(make(child));
    return element;
  }
  function patch(parent, items) {
    items.forEach((item, index) => {
      const old = parent.childNodes[index];
      if (old === undefined) { parent.append(make(item)); return; }
      if (typeof item !== "object") {
        if (old.nodeType !== Node.TEXT_NODE) old.replaceWith(make(item)); else if (old.data !== String(item)) old.data = String(item);
        return;
      }
      if (old.nodeType !== Node.ELEMENT_NODE || old.localName !== item.tag) { old.replaceWith(make(item)); return; }
      for (const {name} of [...old.attributes]) if (!(name in item.attributes)) old.removeAttribute(name);
      for (const [name, value] of Object.entries(item.attributes)) if (old.getAttribute(name) !== String(value)) old.setAttribute(name, value);
      patch(old, item.children);
    });
    while (parent.childNodes.length > items.length) parent.lastChild.remove();
  }

  const number = (value, digits = 3) => value === null || value === undefined ? "" : Number(Number(value).toPrecision(digits)).toLocaleString("en", {maximumFractionDigits: 6});
  const time = (us) => us === null || us === undefined ? "" : us >= 1e6 ? `${number(us / 1e6)} s` : us >= 1e3 ? `${number(us / 1e3)} ms` : `${number(us)} us`;
  const size = (bytes) => !bytes ? "" : bytes >= 1 << 30 ? `${number(bytes / (1 << 30))} GiB` : bytes >= 1 << 20 ? `${number(bytes / (1 << 20))} MiB` : bytes >= 1024 ? `${number(bytes / 1024)} KiB` : `${bytes} B`;
  const energy = (uj) => !uj ? "" : uj >= 1e6 ? `${number(uj / 1e6)} J` : uj >= 1e3 ? `${number(uj / 1e3)} mJ` : `${number(uj)} uJ`;
  const percent = (share) => `${number(100 * share)} %`;
  const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const tone = (kind, text) => h("span", {class: `state ${kind}`}, text);
  const link = (to, text) => h("a", {href: `#${to}`}, text);
  function table(columns, rows, caption) {
    const right = (name) => name.startsWith(">") ? {class: "number"} : {};
    const cells = (row) => row.map((cell, i) => h("td", right(columns[i]), cell));
    return h("div", {class: "wide", tabindex: "0", role: "group", "aria-label": caption || columns.map((name) => name.replace(/^>/, "")).filter(Boolean).join(", ")}, h("table", {}, caption ? h("caption", {class: "quiet"}, caption) : null,
      h("thead", {}, h("tr", {}, columns.map((name) => h("th", {...right(name), scope: "col"}, name.replace(/^>/, ""))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row))))));
  }
  const bar = (share, label) => h("span", {class: "track", role: "img", "aria-label": label}, h("span", {class: "fill", style: `width:${Math.min(100, 100 * share)}%;background:var(--mark)`}));
  const facts = (items) => h("div", {class: "facts"}, items.map(([name, value]) => h("div", {}, h("b", {}, value || "–"), h("span", {}, name))));
  function line(values, label) {
    const known = values.filter((v) => Number.isFinite(v));
    if (known.length < 2) return h("span", {class: "quiet"}, "…");
    const most = Math.max(...known) || 1, step = 180 / Math.max(1, KEPT - 1), begin = 180 - step * (values.length - 1);
    const path = values.map((v, i) => `${i ? "L" : "M"}${(begin + i * step).toFixed(1)} ${(27 - 25 * (v || 0) / most).toFixed(1)}`).join("");
    return h("svg", {class: "line", width: 180, height: 30, role: "img", "aria-label": label}, h("path", {d: path}));
  }
  // An interval around 1 on a logarithmic axis from a quarter to four.
  function interval(bounds) {
    const x = (v) => 100 + 95 * Math.max(-1, Math.min(1, Math.log(v) / Math.log(4)));
    const marks = [h("line", {class: "one", x1: 100, x2: 100, y1: 0, y2: 18})];
    if (bounds && bounds[0] !== null) marks.push(h("line", {x1: x(bounds[1]), x2: x(bounds[2]), y1: 9, y2: 9}), h("circle", {cx: x(bounds[0]), cy: 9, r: 4}));
    const text = bounds && bounds[0] !== null ? `${number(bounds[0])}, ${number(bounds[1])} to ${number(bounds[2])}` : "not yet";
    return [h("svg", {class: "interval", width: 200, height: 18, role: "img", "aria-label": text}, marks), h("span", {class: "quiet"}, ` ${text}`)];
  }
  const breaker = (v) => v.retired ? tone("quiet", "retired") : v.problem ? tone("bad", "does not load") : v.breaker === "open" ? tone("bad", `out, ${Math.ceil(v.breaker_seconds_left)} s`) :
    v.breaker === "trial" ? tone("warn", "on trial") : v.ready ? tone("good", "in") : tone("warn", "loading");
  const failures = (map) => { const text = Object.entries(map).map(([kind, count]) => `${count} ${kind}`).join(", "); return text ? tone("bad", text) : ""; };
  const calls = (operator) => sum(operator.versions.map((v) => v.answers)) + operator.reference.answers;

  function remember() {
    for (const operator of state.service ? state.service.operators : []) {
      const row = past.get(operator.operator) || {at: null, calls: 0, rate: [], p99: [], memory: []};
      const now = state.service.time, total = calls(operator);
      if (row.at !== null && now > row.at) row.rate.push((total - row.calls) / (now - row.at));
      row.p99.push(Math.max(...operator.versions.map((v) => v.p99_us || 0)));
      row.memory.push(sum(operator.versions.map((v) => v.memory_bytes)));
      for (const values of [row.rate, row.p99, row.memory]) while (values.length > KEPT) values.shift();
      row.at = now; row.calls = total;
      past.set(operator.operator, row);
    }
  }

  const views = {
    operators() {
      const service = state.service;
      if (!service) return [h("h2", {}, "Operators"), h("p", {}, state.problem || "No service is looked at; give opkit dash --service URL.")];
      const busy = (o) => sum(o.versions.map((v) => v.device_us));
      const most = Math.max(1e-9, ...service.operators.map(busy));
      const ordered = [...service.operators].sort((a, b) => busy(b) - busy(a) || calls(b) - calls(a));
      return [
        h("h2", {}, "Operators by modelled device time"),
        facts([["state", service.ready ? tone("good", "ready") : tone("bad", "not ready")], ["answers", number(sum(ordered.map(calls)), 6)], ["device time, modelled", time(sum(ordered.map(busy)))],
          ["energy, estimate", energy(sum(ordered.flatMap((o) => o.versions.map((v) => v.energy_uj))))], ["up for", time(1e6 * (service.time - service.started_at))]]),
        table(["operator", "device time, modelled", ">", ">answers", ">answers/s", "p99", "memory", "versions"], ordered.map((o) => {
          const row = past.get(o.operator) || {rate: [], p99: [], memory: []};
          return [link(`operator/${o.operator}`, o.operator), bar(busy(o) / most, "share"), time(busy(o)), number(calls(o), 6), row.rate.length ? number(row.rate.at(-1)) : "",
            [line(row.p99, "p99 latency"), time(row.p99.at(-1))], [line(row.memory, "memory of the workers"), size(row.memory.at(-1))],
            o.versions.map((v, i) => [i ? ", " : "", v.version, " ", breaker(v)])];
        })),
        h("p", {class: "quiet"}, `Energy: ${service.energy_model}.`)];
    },
    operator(name) {
      const o = state.service && state.service.operators.find((item) => item.operator === name);
      if (!o) return [h("h2", {}, name), h("p", {}, "There is no such operator.")];
      const d = o.deployment, row = past.get(name) || {rate: [], p99: [], memory: []};
      const shapes = o.versions.flatMap((v) => v.shapes.map((s) => ({...s, version: v.version}))).sort((a, b) => b.answers * b.device_us - a.answers * a.device_us);
      return [
        h("h2", {}, name),
        facts([["answers/s", [line(row.rate, "answers a second"), number(row.rate.at(-1))]], ["p99", [line(row.p99, "p99 latency"), time(row.p99.at(-1))]], ["memory", [line(row.memory, "memory"), size(row.memory.at(-1))]]]),
        h("h2", {}, "Versions"),
        table(["version", "content", "state", ">share", ">answers", "failures", ">p50", ">p99", ">checked", ">unchecked", ">memory", ">device time, modelled", ">energy, estimate"],
          [...o.versions.map((v) => [v.is_default ? h("b", {}, v.version) : v.version, h("code", {}, v.digest.slice(0, 12)), breaker(v), percent(v.share), number(v.answers, 6), failures(v.failures), time(v.p50_us), time(v.p99_us),
            number(v.checked, 6), number(v.unchecked, 6), size(v.memory_bytes), time(v.device_us), energy(v.energy_uj)]),
          ["CPU reference", "", o.reference.ready ? tone("good", "ready") : tone("warn", o.reference.problem || "loading"), "", number(o.reference.answers, 6), failures(o.reference.failures), time(o.reference.p50_us), time(o.reference.p99_us), "", "", "", "", ""]]),
        o.versions.filter((v) => v.breaker_reason || v.problem).map((v) => h("p", {}, h("b", {}, v.version), ": ", v.problem || v.breaker_reason)),
        h("p", {class: "quiet"}, `Checked against the reference: ${percent(o.checks.sample_rate)} of all answers, the first ${o.checks.first_calls} of each shape, and every NaN that no input brought. Choice: ${d.choice}; shares by ${d.by}.`),
        o.experiment ? [h("h2", {}, "A/B"),
          table(["version", ">share", ">calls", ">failures", "failure rate", "latency, geometric mean"], o.experiment.arms.map((a) => [a.version, percent(a.share), number(a.calls, 6), number(a.failures),
            `${percent(a.error_rate[0])} (${percent(a.error_rate[1])} to ${percent(a.error_rate[2])})`, a.latency_us ? `${time(a.latency_us[0])}${a.latency_us[1] === null ? "" : ` (${time(a.latency_us[1])} to ${time(a.latency_us[2])})`}` : ""])),
          o.experiment.verdicts.map((v) => h("p", {}, v.better ? tone(v.better === v.version ? "good" : "warn", `${v.better} is better: `) : "", v.text, h("br"), interval(v.latency_ratio), h("span", {class: "quiet"}, ` of ${v.against}'s time, ${percent(o.experiment.confidence)} at all times`)))] : null,
        Object.keys(o.shadow).length ? [h("h2", {}, "Shadow calls"), table(["version", ">calls", ">same bits", ">right", ">wrong", ">nobody can tell", ">failed", ">left out", ">largest difference", "last problem"],
          Object.entries(o.shadow).map(([label, s]) => [label, number(s.calls), number(s.same_bits), number(s.right), s.wrong ? tone("bad", s.wrong) : "0", number(s.unjudged), number(s.failed), number(s.left_out), number(s.largest_difference), s.last_problem.slice(0, 200)]))] : null,
        h("h2", {}, "Shapes"),
        table(["version", "shapes, rounded up", ">answers", ">failures", ">p50", ">p99", ">device time, modelled", ">energy, estimate"], shapes.map((s) => [s.version, h("code", {}, s.shapes), number(s.answers, 6), s.failures || "", time(s.p50_us), time(s.p99_us), time(s.device_us || null), energy(s.energy_uj)])),
        Object.keys(o.choice).length ? [h("h2", {}, "Chosen"), table(["shapes", "why"], Object.entries(o.choice).map(([shape, why]) => [h("code", {}, shape), why]))] : null];
    },
    events() {
      const rows = state.service ? [...state.service.events].reverse() : [];
      const rest = (e) => Object.entries(e).filter(([k]) => !["time", "level", "event", "operator", "version"].includes(k)).map(([k, v]) => `${k}: ${typeof v === "object" ? JSON.stringify(v) : v}`).join("; ");
      return [h("h2", {}, "Events"), rows.length ? table(["time", "event", "operator", "version", "what"], rows.map((e) => [clock(e.time), e.level === "info" ? e.event : tone("warn", e.event), e.operator || "", e.version || "", rest(e).slice(0, 400)])) : h("p", {}, "Nothing has happened yet.")];
    },
    alerts() {
      const rows = state.alerts || [];
      return [h("h2", {}, "Alerts"), rows.length ? table(["", "what"], rows.map((a) => [tone(a.level, a.level === "bad" ? "look" : "note"), link(a.view, a.text)])) : h("p", {}, "Nothing deserves a look.")];
    },
    history(wanted) {
      const spans = Object.keys(HOURS).map((name) => h("a", {href: `#history/${name}`, ...(name === (wanted || "day") ? {"aria-current": "true"} : {})}, name));
      return [h("h2", {}, "History"), h("p", {class: "spans"}, "the last ", spans.flatMap((a, i) => i ? [" · ", a] : [a])),
        history && history.length ? null : h("p", {}, "Nothing has been seen yet.")];
    },
    files() {
      const what = (f) => f.problem ? tone("bad", f.problem) : f.kind === "profile" || f.kind === "trace" ? `${f.kernel}: ${time(f.task_us)} modelled` : f.kind === "test" ? (f.passed ? tone("good", "passed") : tone("bad", "failed")) :
        f.kind === "check" ? (f.clean ? tone("good", "clean") : tone("bad", `${f.findings.length} findings`)) : "";
      return [h("h2", {}, "Files"), state.files.length ? table(["file", "kind", "changed", "what"], state.files.map((f, i) => [link(`file/${i}`, f.name), f.kind, f.changed_at ? clock(f.changed_at) : "", what(f)])) : h("p", {}, "None; opkit dash FILES shows what profile, test, check and tune wrote with --json, and traces.")];
    },
    file(index) {
      const f = state.files[Number(index)];
      if (!f) return [h("p", {}, "There is no such file.")];
      const head = h("h2", {}, `${f.kind}: ${f.name}`);
      if (f.problem) return [head, h("p", {class: "bad"}, f.problem)];
      if (f.kind === "profile") return [head,
        facts([["task, modelled", time(f.task_us)], ["band", f.band_percent === null ? "unknown" : `± ${f.band_percent} %`], ["bound by", f.bound_by], ["blocks", f.block_dim], ["UB used", size(f.ub_bytes_used)], ["global memory read", size(f.gm_read_bytes)], ["written", size(f.gm_write_bytes)]]),
        h("p", {class: "quiet"}, `${f.kernel} on ${f.chip}${f.case ? `, ${f.case}` : ""}; a model, not a measurement`),
        table(["pipe", "busy", ">", ">time"], f.pipes.map((p) => [p.name || p.pipe, bar(p.utilisation, `${p.name || p.pipe} busy`), percent(p.utilisation), time(p.mean_us)])),
        f.advice.length ? [h("h2", {}, "What to change first"), table([">would save", "pattern", "line", "why, and what to do"], f.advice.map((a) => [`${time(a.gain_us)} (${number(a.gain_percent)} %)`, a.pattern, h("code", {}, a.where), `${a.finding}; ${a.change}`]))] : null,
        h("h2", {}, "Hottest lines"), table(["line", "pipe", "instruction", ">times", ">cycles"], f.lines.map((l) => [h("code", {}, l.where), l.pipe, l.instruction, number(l.count, 6), number(l.cycles, 6)]))];
      if (f.kind === "test") return [head, facts([["verdict", f.passed ? tone("good", "passed") : tone("bad", "failed")], ["standard", f.standard], ...Object.entries(f.counts).map(([name, count]) => [name, String(count)])]),
        table(["case", "verdict", ">launch", "message"], f.cases.map((c) => [c.name, c.verdict.startsWith("pass") ? tone("good", c.verdict) : tone("bad", c.verdict), `${number(c.milliseconds)} ms`, c.message.slice(0, 300)])), f.left_out ? h("p", {}, `${f.left_out} more cases passed or failed likewise`) : null];
      if (f.kind === "check") return [head, facts([["verdict", f.clean ? tone("good", "clean") : tone("bad", `${f.findings.length} findings`)], ["cases", String(f.cases)]]),
        f.findings.length ? table(["class", "where", "kernel", ">times", "what", "help"], f.findings.map((x) => [h("code", {}, x.id), h("code", {}, x.where), x.kernel, number(x.count), x.message, x.help])) : null];
      if (f.kind === "trace") return [head, facts([["task, modelled", time(f.task_us)], ["kernel", f.kernel], ["chip", f.chip], ["blocks", f.block_dim]])];
      return [head, f.reports.map((r) => { const most = Math.max(...r.trials.map((t) => t.task_us || 0), 1e-9); return [
        h("h2", {}, `${r.name} on ${r.chip}`),
        facts([["best, modelled", time(r.best_us)], ["of the start", number(r.ratio)], ["start", time(r.start_us)], ["candidates", `${number(r.candidates, 6)} of ${number(r.space, 6)}, ${r.searched}`], ["relieves", r.relief || "no single pipe"]]),
        table(["candidate", ">time, modelled", "", "does not count"], r.trials.map((t) => [t.values, t.task_us === null ? "" : time(t.task_us), t.task_us === null ? "" : bar(t.task_us / most, "time"), t.wrong ? tone("bad", t.wrong.slice(0, 200)) : ""]))]; })];
    },
  };

  // The timeline of `opkit profile --html`, drawn by its own script when a trace is looked at.
  function timeline(view) {
    const file = view[0] === "file" && state.files[Number(view[1])], wanted = file && file.timeline ? `${file.name} ${file.changed_at}` : "";
    if (wanted === drawn) return;
    drawn = wanted;
    drawing.replaceChildren();
    drawing.hidden = !wanted;
    if (!wanted) return;
    drawing.innerHTML = parts.timeline;
    const data = document.createElement("script"), script = document.createElement("script");
    data.type = "application/json"; data.id = "opkit-timeline-data"; data.textContent = JSON.stringify(file.timeline);
    script.textContent = parts.timelineScript;
    drawing.append(data, script);
  }

  // One chart a series, all with one time axis; points of what was seen, joined where it is dense.
  let history = parts.history, asked = 0, plots = [], titled = "";
  function draw(view) {
    const isWanted = view[0] === "history";
    charts.hidden = !isWanted;
    if (!isWanted) return;
    if (!parts.state && Date.now() - asked > HISTORY_MS) {
      asked = Date.now();
      fetch("api/history").then((answer) => answer.json()).then((found) => { history = found; show(); }).catch(() => {});
    }
    const last = Date.now() / 1000, first = last - 3600 * (HOURS[view[1]] || HOURS.day);
    const names = (history || []).map((s) => `${s.name} ${charts.clientWidth}`).join("\n");
    if (charts.dataset.names !== names) {
      for (const plot of plots) plot.destroy();
      charts.replaceChildren();
      plots = (history || []).map((s) => {
        const box = document.createElement("div"), title = document.createElement("h3");
        title.textContent = `${s.name}, ${s.unit}`;
        box.append(title);
        charts.append(box);
        const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim(), edge = colour("--edge");
        const axis = {stroke: colour("--ink"), grid: {stroke: edge, width: 1}, ticks: {stroke: edge, width: 1}};
        return new uPlot({
          width: Math.max(200, box.clientWidth), height: 150, cursor: {sync: {key: "history"}},
          scales: {y: {range: (_, low, high) => [Math.min(0, low), high > 0 ? 1.05 * high : 1]}},
          axes: [axis, {...axis, size: 60}],
          series: [{}, {label: s.unit, stroke: colour("--mark"), width: 1.5, points: {show: s.times.length < 60}}],
        }, [[], []], box);
      });
      charts.dataset.names = names;
    }
    (history || []).forEach((s, i) => {
      plots[i].setData([s.times, s.values], false);
      plots[i].setScale("x", {min: first, max: last});
    });
  }

  function show() {
    const view = decodeURIComponent(location.hash.slice(1)).split("/"), name = Object.hasOwn(views, view[0]) ? view[0] : state.service || !state.files.length ? "operators" : "files";
    const at = (to, text) => h("a", {href: `#${to}`, ...(to === view.join("/") || (to === name && view.length < 2) ? {"aria-current": "page"} : {})}, text);
    const operators = state.service ? state.service.operators.map((o) => at(`operator/${o.operator}`, o.operator)) : [];
    patch(nav, [at("operators", "operators"), ...operators, at("events", "events"), at("history", "history"), at("files", `files (${state.files.length})`)]);
    patch(content, views[name](view.slice(1).join("/")).flat(9).filter(Boolean));
    timeline([name, ...view.slice(1)]);
    draw([name, ...view.slice(1)]);
    const alerts = state.alerts || [], bad = alerts.filter((a) => a.level === "bad").length;
    bell.hidden = !alerts.length;
    bell.textContent = `${alerts.length} alert${alerts.length === 1 ? "" : "s"}`;
    bell.className = bad ? "bad" : "warn";
    const title = bad ? `(${bad}) opkit` : "opkit";
    if (title !== titled) document.title = titled = title;
  }

  async function ask() {
    if (!paused) {
      try {
        const answer = await fetch("api/state");
        if (!answer.ok) throw new Error(`status ${answer.status}`);
        state = await answer.json();
        remember();
        show();
        live.textContent = state.problem ? state.problem : `live, ${clock(Date.now() / 1000)}`;
        live.className = state.problem ? "bad" : "quiet";
      } catch (error) {
        live.textContent = `no answer: ${error.message}`;
        live.className = "bad";
      }
    }
    setTimeout(ask, PERIOD_MS);
  }
  function toggle() {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "go on" : "pause";
    live.textContent = paused ? "paused" : "";
  }
  pause.addEventListener("click", toggle);
  window.addEventListener("keydown", (event) => {
    if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) toggle();
  });
  window.addEventListener("resize", () => { if (state && !charts.hidden) show(); });
  window.addEventListener("opkit-theme", () => { charts.dataset.names = ""; if (state) show(); });
  window.addEventListener("hashchange", () => { if (state) show(); content.focus(); });
  if (parts.state) { state = parts.state; remember(); show(); } else ask();
})();
