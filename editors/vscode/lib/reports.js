// What reports of opkit say line by line. Nothing here needs the editor.
"use strict";

/** The findings of `opkit check --json`, one entry each: file, line from 1, text, whether it is a note. */
function findingRows(report) {
  return report.findings
    .filter((finding) => finding.location)
    .map((finding) => ({
      file: finding.location.file,
      line: finding.location.line,
      id: finding.id,
      isNote: finding.tool === "notecheck",
      text: [finding.message, finding.help].filter(Boolean).join("\n"),
      cases: finding.cases ?? [],
      other: finding.other,
    }));
}

/**
 * The source lines of `opkit profile --json`: by file the cycles that all instructions of each line
 * keep their pipes busy, the share of the kernel's, and what they are. Throws where the kernel faulted.
 */
function profileRows(report) {
  if (report.faulted) throw new Error(report.fault);
  const total = report.lines.reduce((sum, row) => sum + row.cycles, 0);
  const byLine = new Map();
  for (const row of report.lines) {
    const key = `${row.file}:${row.line}`;
    const known = byLine.get(key) ?? { file: row.file, line: row.line, cycles: 0, bytes: 0, parts: [] };
    known.cycles += row.cycles;
    known.bytes += row.bytes;
    const conflicts = row.conflict_cycles ? `, ${row.conflict_cycles} of them bank conflicts` : "";
    known.parts.push(`${row.count} x ${row.instruction} on ${row.pipe}: ${Math.round(row.cycles)} cycles${conflicts}`);
    byLine.set(key, known);
  }
  return [...byLine.values()].map((row) => ({ ...row, share: total ? row.cycles / total : 0 }));
}

/** What stands behind a line: `12.3 %  V 4567 cycles`. */
function annotation(row) {
  const bytes = row.bytes ? `, ${row.bytes} bytes` : "";
  return `${(100 * row.share).toFixed(1)} %, ${Math.round(row.cycles)} cycles${bytes}`;
}

/** The line that is shown for the whole launch. */
function summary(report) {
  return `${report.kernel}: ${report.task_us.toFixed(2)} us of ${report.chip} by the model, bound by ${report.bound_by}`;
}

module.exports = { annotation, findingRows, profileRows, summary };
