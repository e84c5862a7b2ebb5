// What opkit is started with. Nothing here needs the editor.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

/** The arguments of `opkit debug` for a launch configuration. */
function debugArguments(configuration) {
  const options = ["debug", "--dap"];
  if (configuration.chip) options.push("--chip", configuration.chip);
  if (configuration.program) {
    if (!Array.isArray(configuration.program) || configuration.program.length === 0) {
      throw new Error('"program" is a list: the program, then its arguments');
    }
    return [...options, "--", ...configuration.program];
  }
  if (configuration.operator) options.push("--op", configuration.operator);
  if (configuration.case) options.push("--case", configuration.case);
  if (configuration.project) options.push(configuration.project);
  return options;
}

/**
 * The file that a report names, as an absolute path: reports name files from the project's folder,
 * which is the nearest folder above `start` that has the file. Undefined where none has.
 */
function resolveFile(start, file) {
  if (path.isAbsolute(file)) return file;
  for (let folder = path.resolve(start); ; folder = path.dirname(folder)) {
    const found = path.join(folder, file);
    if (fs.existsSync(found)) return found;
    if (folder === path.dirname(folder)) return undefined;
  }
}

module.exports = { debugArguments, resolveFile };
