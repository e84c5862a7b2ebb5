// With OPKIT_PROJECT, a project whose kernel has a finding: the extension on the real opkit.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { test } = require("node:test");
const { createEditor, load } = require("./editor");

const kernel = process.env.OPKIT_KERNEL;
const settings = { skip: kernel ? false : "OPKIT_KERNEL names no kernel file" };

function opened() {
  const editor = createEditor();
  editor.settings.command = process.env.OPKIT_COMMAND;
  load(editor);
  return { editor, shown: editor.kept.open(kernel) };
}

test("check shows the finding at its line", settings, async () => {
  const { editor } = opened();
  await editor.kept.commands["opkit.check"]();
  assert.deepEqual(editor.kept.errors, []);
  const [found] = editor.kept.diagnostics.get(kernel);
  assert.match(found.message, /copies \d+ bytes of UB that nothing in this block has written/);
  assert.equal(found.source, "opkit check");
});

test("profile writes times beside the kernel's lines", settings, async () => {
  const { editor, shown } = opened();
  await editor.kept.commands["opkit.profile"]();
  assert.deepEqual(editor.kept.errors, []);
  assert.ok(shown.decorations.length > 3);
  assert.match(shown.decorations[0].renderOptions.after.contentText, /^\d+\.\d %, \d+ cycles/);
});

test("the adapter that is started speaks the protocol", settings, async (context) => {
  const { editor } = opened();
  const given = editor.kept.configurations.resolveDebugConfiguration(undefined, {});
  const described = editor.kept.adapter.createDebugAdapterDescriptor({ configuration: given });
  const child = spawn(described.command, described.args, { stdio: ["pipe", "pipe", "ignore"] });
  context.after(() => child.kill());
  const messages = reader(child.stdout);
  const send = (seq, command, argumentsOf = {}) => {
    const raw = JSON.stringify({ seq, type: "request", command, arguments: argumentsOf });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(raw)}\r\n\r\n${raw}`);
  };
  const until = async (wanted) => {
    for (;;) {
      // No loop over the generator: leaving one ends it.
      const { value, done } = await messages.next();
      if (done) throw new Error("the adapter has ended");
      if (wanted(value)) return value;
    }
  };
  send(1, "initialize", { adapterID: "opkit" });
  const { body } = await until((message) => message.request_seq === 1);
  assert.ok(body.supportsStepBack && body.supportsLogPoints && body.supportsDataBreakpoints);
  send(2, "launch", { stopOnEntry: true });
  await until((message) => message.event === "initialized");
  send(3, "configurationDone");
  assert.equal((await until((message) => message.event === "stopped")).body.reason, "entry");
  send(4, "disconnect");
  await until((message) => message.event === "terminated");
  await new Promise((resolve) => child.on("close", resolve));
});

/** Yields the messages of a stream. */
async function* reader(stream) {
  let data = Buffer.alloc(0);
  const iterator = stream[Symbol.asyncIterator]();
  for (;;) {
    const end = data.indexOf("\r\n\r\n");
    const length = end < 0 ? 0 : Number(/Content-Length: (\d+)/i.exec(data.subarray(0, end))[1]);
    if (end >= 0 && data.length >= end + 4 + length) {
      yield JSON.parse(data.subarray(end + 4, end + 4 + length));
      data = data.subarray(end + 4 + length);
      continue;
    }
    const { value, done } = await iterator.next();
    if (done) return;
    data = Buffer.concat([data, value]);
  }
}
