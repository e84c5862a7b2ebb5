// Starts opkit and reads its JSON.
"use strict";

const { spawn } = require("node:child_process");

/**
 * Runs opkit; resolves to the report that it prints as JSON. Rejects with what opkit says where there
 * is none; of a kernel that does not compile the error has the compiler's `diagnostics`.
 *
 * `started` is called with a function that ends the process, for a Cancel button.
 */
function runJson(command, options, folder, started = () => {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...options, "--json"], { cwd: folder });
    let printed = "";
    let errors = "";
    child.stdout.on("data", (data) => (printed += data));
    child.stderr.on("data", (data) => (errors += data));
    child.on("error", (error) => {
      const missing = `"${command}" cannot be started (${error.code}): pip install opkit, or set opkit.command`;
      reject(new Error(error.code === "ENOENT" ? missing : error.message));
    });
    child.on("close", (code, signal) => {
      if (signal) return reject(new Error(`opkit ${options[0]} was ended by ${signal}`));
      let report;
      try {
        report = JSON.parse(printed);
      } catch {
        return reject(new Error(errors.trim() || `opkit ${options[0]} ended with exit code ${code}`));
      }
      if (code > 1 || report.error) {
        const said = report.error ?? {};
        const text = [said.message, said.help].filter(Boolean).join(": ") || errors.trim();
        return reject(Object.assign(new Error(text), { diagnostics: said.diagnostics ?? [] }));
      }
      return resolve(report);
    });
    started(() => child.kill("SIGTERM"));
  });
}

module.exports = { runJson };
