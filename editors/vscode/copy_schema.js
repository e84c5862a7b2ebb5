// The schema of prototypes is opkit's own: it is copied when the extension is packaged.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const source = path.join(__dirname, "..", "..", "opkit", "schema", "op.schema.json");
fs.copyFileSync(source, path.join(__dirname, "op.schema.json"));
