"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { debugArguments, resolveFile } = require("../lib/arguments");
const { annotation, findingRows, profileRows, summary } = require("../lib/reports");
const { createEditor, load } = require("./editor");

const manifest = require("../package.json");

/** Returns a project of one kernel, and an "opkit" that prints a report, whatever it is asked. */
function project(report, code = 0) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "opkit-vscode-"));
  process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));
  fs.mkdirSync(path.join(folder, "op_kernel"));
  const kernel = path.join(folder, "op_kernel", "add.cpp");
  fs.writeFileSync(kernel, "// a kernel\n");
  const command = path.join(folder, "opkit");
  const asked = path.join(folder, "asked.txt");
  const script = `#!/bin/sh\necho "$@" >> ${asked}\ncat <<'END'\n${JSON.stringify(report)}\nEND\nexit ${code}\n`;
  fs.writeFileSync(command, script, { mode: 0o755 });
  return { folder, kernel, command, asked: () => fs.readFileSync(asked, "utf8").trim().split("\n") };
}

const finding = {
  id: "RACE-RAW", tool: "racecheck", message: "V reads what MTE2 writes", help: "wait", cases: ["a"],
  location: { file: "op_kernel/add.cpp", line: 7 },
  other: { file: "op_kernel/add.cpp", line: 3, instruction: "DataCopy" },
};
const note = { id: "NOTE-X", tool: "notecheck", message: "rounded down", help: "", location: { file: "op_kernel/add.cpp", line: 9 }, other: null };
const clean = { clean: true, findings: [] };

test("a launch configuration becomes the arguments of opkit debug", () => {
  assert.deepEqual(debugArguments({ project: "/p", operator: "add", case: "c", chip: "Ascend310P3" }), [
    "debug", "--dap", "--chip", "Ascend310P3", "--op", "add", "--case", "c", "/p",
  ]);
  assert.deepEqual(debugArguments({ program: ["./add", "1024"] }), ["debug", "--dap", "--", "./add", "1024"]);
  assert.throws(() => debugArguments({ program: "./add" }), /"program" is a list/);
});

test("a report's file is the one of the nearest folder above", () => {
  const { folder, kernel } = project(clean);
  assert.equal(resolveFile(path.join(folder, "op_kernel"), "op_kernel/add.cpp"), kernel);
  assert.equal(resolveFile(folder, "op_kernel/nowhere.cpp"), undefined);
  assert.equal(resolveFile(folder, "/elsewhere/x.cpp"), "/elsewhere/x.cpp");
});

test("findings become rows, notes apart, those without a line left out", () => {
  const rows = findingRows({ findings: [finding, note, { ...finding, location: null }] });
  assert.deepEqual(rows.map((row) => [row.id, row.line, row.isNote, row.text]), [
    ["RACE-RAW", 7, false, "V reads what MTE2 writes\nwait"],
    ["NOTE-X", 9, true, "rounded down"],
  ]);
});

test("the instructions of a line are one row with their share", () => {
  const line = (number, instruction, cycles, bytes) => ({
    file: "a.cpp", line: number, instruction, pipe: "V", count: 2, cycles, bytes, conflict_cycles: 0,
  });
  const rows = profileRows({ lines: [line(5, "Add", 30, 0), line(5, "Mul", 45, 0), line(8, "DataCopy", 25, 64)] });
  assert.deepEqual(rows.map((row) => [row.line, row.cycles, row.share]), [[5, 75, 0.75], [8, 25, 0.25]]);
  assert.equal(annotation(rows[0]), "75.0 %, 75 cycles");
  assert.equal(annotation(rows[1]), "25.0 %, 25 cycles, 64 bytes");
  assert.deepEqual(profileRows({ lines: [] }), []);
  const report = { kernel: "add", task_us: 3.25, chip: "Ascend910B2", bound_by: "V", fault: "" };
  assert.equal(summary(report), "add: 3.25 us of Ascend910B2 by the model, bound by V");
  assert.throws(() => profileRows({ faulted: true, fault: "out of bounds" }), /out of bounds/);
});

test("check shows findings at their lines and clears what was there", async () => {
  const found = project({ clean: false, findings: [finding, note] }, 1);
  const editor = createEditor();
  editor.settings.command = found.command;
  load(editor);
  editor.kept.open(found.kernel);
  editor.kept.diagnostics.set("old.cpp", []);
  await editor.kept.commands["opkit.check"]();
  assert.deepEqual([...editor.kept.diagnostics.keys()], [found.kernel]);
  const [race, told] = editor.kept.diagnostics.get(found.kernel);
  assert.deepEqual([race.range.startLine, race.severity, race.code], [6, 0, "RACE-RAW"]);
  assert.deepEqual([race.relatedInformation[0].location.range.startLine, told.severity], [2, 2]);
  assert.deepEqual(found.asked(), ["check --json"]);
  await editor.kept.commands["opkit.clear"]();
  assert.equal(editor.kept.diagnostics.size, 0);
});

test("a kernel that does not compile shows the compiler's lines", async () => {
  const diagnostics = [{ file: "op_kernel/add.cpp", line: 4, severity: "error", message: "no DeQu" }];
  const found = project({ error: { message: "add.cpp does not compile", help: null, diagnostics } }, 1);
  const editor = createEditor();
  editor.settings.command = found.command;
  load(editor);
  editor.kept.open(found.kernel);
  await editor.kept.commands["opkit.check"]();
  const [shown] = editor.kept.diagnostics.get(found.kernel);
  assert.deepEqual([shown.range.startLine, shown.message, shown.source], [3, "no DeQu", "opkit build"]);
  assert.deepEqual(editor.kept.errors, ["opkit check: add.cpp does not compile"]);
});

test("times stand behind lines until the file is edited", async () => {
  const row = { file: "op_kernel/add.cpp", line: 2, instruction: "Add", pipe: "V", count: 4, cycles: 100, bytes: 0, conflict_cycles: 40 };
  const found = project({ kernel: "add", task_us: 3, chip: "Ascend910B2", bound_by: "V", fault: "", lines: [row] });
  const editor = createEditor();
  editor.settings.command = found.command;
  load(editor);
  const shown = editor.kept.open(found.kernel);
  await editor.kept.commands["opkit.profile"]();
  assert.equal(shown.decorations[0].renderOptions.after.contentText, "100.0 %, 100 cycles");
  assert.equal(shown.decorations[0].hoverMessage, "4 x Add on V: 100 cycles, 40 of them bank conflicts");
  assert.match(editor.kept.status[0], /3.00 us of Ascend910B2/);
  editor.kept.listeners.change({ document: shown.document, contentChanges: [] });
  assert.equal(shown.decorations.length, 1);
  editor.kept.listeners.change({ document: shown.document, contentChanges: [{}] });
  assert.equal(shown.decorations.length, 0);
});

test("what cannot be done is said", async () => {
  const editor = createEditor();
  load(editor);
  await editor.kept.commands["opkit.check"]();
  assert.match(editor.kept.errors.pop(), /open a file of an operator project first/);
  const found = project({ error: { message: "no operator here", help: "go elsewhere" } }, 2);
  editor.kept.open(found.kernel);
  editor.settings.command = path.join(found.folder, "nothing");
  await editor.kept.commands["opkit.check"]();
  assert.match(editor.kept.errors.pop(), /cannot be started \(ENOENT\): pip install opkit/);
  editor.settings.command = found.command;
  await editor.kept.commands["opkit.profile"]();
  assert.equal(editor.kept.errors.pop(), "opkit profile: no operator here: go elsewhere");
});

test("a cancelled check ends its process and says nothing", async () => {
  const found = project(clean);
  fs.writeFileSync(found.command, "#!/bin/sh\nexec tail -f /dev/null\n", { mode: 0o755 });
  const editor = createEditor();
  editor.settings.command = found.command;
  editor.kept.cancelAtOnce = true;
  load(editor);
  editor.kept.open(found.kernel);
  await editor.kept.commands["opkit.check"]();
  assert.deepEqual([editor.kept.errors, editor.kept.status], [[], []]);
});

test("a saved kernel is checked where that is wanted, other files are not", async () => {
  const found = project(clean);
  const editor = createEditor();
  editor.settings.command = found.command;
  load(editor);
  const { document } = editor.kept.open(found.kernel);
  editor.kept.listeners.save(document);
  editor.settings.checkOnSave = true;
  editor.kept.listeners.save({ uri: { fsPath: path.join(found.folder, "op_host", "add.cpp") } });
  assert.equal(fs.existsSync(path.join(found.folder, "asked.txt")), false);
  const ran = new Promise((resolve) => {
    const check = editor.kept.commands["opkit.check"];
    editor.kept.commands["opkit.check"] = () => check().then(resolve);
  });
  editor.kept.listeners.save(document);
  await ran;
  assert.deepEqual(found.asked(), ["check --json"]);
});

test("without a launch.json the project of the open file is debugged", () => {
  const found = project(clean);
  const editor = createEditor();
  load(editor);
  editor.kept.open(found.kernel);
  const given = editor.kept.configurations.resolveDebugConfiguration(undefined, {});
  assert.deepEqual([given.type, given.project], ["opkit", path.dirname(found.kernel)]);
  const kept = { type: "opkit", program: ["./a"] };
  assert.equal(editor.kept.configurations.resolveDebugConfiguration(undefined, kept), kept);
  const described = editor.kept.adapter.createDebugAdapterDescriptor({ configuration: given });
  assert.deepEqual([described.command, described.args], ["opkit", ["debug", "--dap", path.dirname(found.kernel)]]);
});

test("the manifest names what the extension registers, and files that exist", () => {
  const editor = createEditor();
  load(editor);
  const named = manifest.contributes.commands.map((row) => row.command).sort();
  assert.deepEqual(Object.keys(editor.kept.commands).sort(), named);
  assert.ok(fs.existsSync(path.join(__dirname, "..", manifest.main)));
  const properties = manifest.contributes.debuggers[0].configurationAttributes.launch.properties;
  const known = ["project", "operator", "case", "chip", "program", "stopOnEntry"];
  assert.deepEqual(Object.keys(properties), known);
});
